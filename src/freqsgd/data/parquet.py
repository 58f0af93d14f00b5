"""Read Parquet in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from freqsgd.data.blocks import Block
from freqsgd.data.dataset import DamagedFileError

__all__ = ["block_rows", "parquet_rows", "parquet_schema", "read_parquet"]

# A block costs a look at all of its row group, so that many small ones would be slow.
BLOCK_ROWS, _BLOCK_CELLS = 1 << 19, 1 << 24
# Polars panics over some damaged files.
_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def parquet_schema(path: Path) -> pl.Schema:
    """Names and types of the columns."""
    try:
        return pl.scan_parquet(path, glob=False).collect_schema()
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error


def parquet_rows(path: Path) -> int:
    """How many rows there are."""
    try:
        return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error


def read_parquet(path: Path, columns: Sequence[str], after: int = 0) -> Iterator[Block]:
    """Blocks of consecutive rows with the given columns as they are stored.

    Blocks that end at row ``after`` or before it are passed over.
    """
    rows, step = parquet_rows(path), block_rows(len(columns))
    scan = pl.scan_parquet(path, glob=False).select(columns)
    for start in range(after // step * step, rows, step):
        stop = min(start + step, rows)
        try:
            frame = scan.slice(start, step).collect()
        except _UNREADABLE as error:
            raise _unreadable(path, error, f", rows {start + 1:,} to {stop:,}") from error
        yield Block(frame, None, np.arange(start + 1, stop + 1), "row", [], stop / rows)


def block_rows(columns: int) -> int:
    """Of a block, a power of 2: blocks of few columns and of many take about the same memory."""
    most = _BLOCK_CELLS // max(columns, 1)
    return int(min(BLOCK_ROWS, 1 << max(most.bit_length() - 1, 0)))


def _unreadable(path: Path, error: BaseException, place: str = "") -> DamagedFileError:
    what = (str(error).strip() or "?").splitlines()[0]
    return DamagedFileError(
        f"{path}{place}: cannot be read as Parquet, it may be cut short or damaged ({what}); "
        "write or copy it again"
    )
