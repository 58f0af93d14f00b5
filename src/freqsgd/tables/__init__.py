"""Tables of categories: from files, frames and streams to ids."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.tables.click_log import ClickLog
    from freqsgd.tables.clicks import ClickStream
    from freqsgd.tables.dataset import Dataset, Stream
    from freqsgd.tables.fields import ABSENT, RARE, Chunk, Field, Position, Splits
    from freqsgd.tables.loading import load, open_stream
    from freqsgd.tables.spec import DataOptions, StreamOptions

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
        click_log="ClickLog",
        clicks="ClickStream",
        dataset="Dataset Stream",
        fields="ABSENT RARE Chunk Field Position Splits",
        loading="load open_stream",
        spec="DataOptions StreamOptions",
    )
