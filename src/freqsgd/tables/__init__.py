"""Tables of categories: from files, frames and streams to ids."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.tables.dataset import Dataset, Stream
    from freqsgd.tables.fields import ABSENT, RARE, Chunk, Field, Position, Splits
    from freqsgd.tables.generated.click_log import CLICKS_SMALL, ClickLog
    from freqsgd.tables.generated.clicks import ClickStream
    from freqsgd.tables.loading import load, open_stream
    from freqsgd.tables.spec import DataOptions, StreamOptions

__all__ = [
    "ABSENT",
    "CLICKS_SMALL",
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
        dataset="Dataset Stream",
        fields="ABSENT RARE Chunk Field Position Splits",
        loading="load open_stream",
        spec="DataOptions StreamOptions",
        **{"generated.click_log": "CLICKS_SMALL ClickLog", "generated.clicks": "ClickStream"},
    )
