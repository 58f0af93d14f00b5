"""Tables of categories: from files, frames and streams to ids."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.tables.click_log import ClickLog
    from freqsgd.tables.clicks import ClickStream
    from freqsgd.tables.dataset import Dataset
    from freqsgd.tables.fields import ABSENT, RARE, Field, Splits
    from freqsgd.tables.loading import load, open_stream
    from freqsgd.tables.spec import DataOptions, StreamOptions
    from freqsgd.tables.stream import Chunk, Position, Stream

__all__ = [
    "ABSENT",
    "RARE",
    "Chunk",
    "ClickLog",
    "ClickStream",
    "DataOptions",
    "Dataset",
    "Field",
    "Position",
    "Splits",
    "Stream",
    "StreamOptions",
    "load",
    "open_stream",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ABSENT": "freqsgd.tables.fields",
            "Chunk": "freqsgd.tables.stream",
            "ClickLog": "freqsgd.tables.click_log",
            "ClickStream": "freqsgd.tables.clicks",
            "DataOptions": "freqsgd.tables.spec",
            "Dataset": "freqsgd.tables.dataset",
            "Field": "freqsgd.tables.fields",
            "Position": "freqsgd.tables.stream",
            "RARE": "freqsgd.tables.fields",
            "Splits": "freqsgd.tables.fields",
            "Stream": "freqsgd.tables.stream",
            "StreamOptions": "freqsgd.tables.spec",
            "load": "freqsgd.tables.loading",
            "open_stream": "freqsgd.tables.loading",
        },
    )
