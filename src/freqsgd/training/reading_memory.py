"""What reading a stream takes of memory, beside the model."""

from __future__ import annotations

from freqsgd.streams.clicks import ClickStream
from freqsgd.streams.stream import Stream
from freqsgd.training.memory_plan import MemoryPlan, memory_plan
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings

__all__ = ["reading_bytes", "stream_plan"]

# Blocks are read, encoded and learned from at the same time. These were measured.
_CELL = 80  # bytes a cell of a Parquet block, in the middle: integers took 25 to 60, text 55 to 120
_GENERATED_CELL = 32  # of a block of generated clicks, of which 5 are ids that wait
_TEXT = 12  # times the text of a block


def stream_plan(stream: Stream, rule: Rule, settings: Settings) -> MemoryPlan:
    """What one pass over a stream would take."""
    rows = stream.summary()["rows"]
    reading = reading_bytes(stream, rows)
    return memory_plan(stream.fields, rule, settings, examples=rows, reading=reading)


def reading_bytes(stream: Stream, rows: int | None) -> int:
    """About what the blocks take that are on their way.

    Args:
        stream: the examples
        rows: of all days; None if they are not known, as for text
    """
    from freqsgd.data.parquet import block_rows
    from freqsgd.data.text import BLOCK_BYTES
    from freqsgd.streams.click_log import BLOCK_ROWS

    if rows is None:
        return _TEXT * BLOCK_BYTES
    columns = sum(field.width for field in stream.fields)
    if isinstance(stream, ClickStream):
        return _GENERATED_CELL * columns * min(rows, BLOCK_ROWS)
    with_label = len(stream.fields) + 1
    return _CELL * columns * min(rows, block_rows(with_label))
