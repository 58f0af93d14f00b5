"""Read Parquet in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from freqsgd.data.blocks import Block
from freqsgd.data.dataset import DataError

__all__ = ["parquet_schema", "read_parquet"]

BLOCK_ROWS = 1 << 18
# Polars panics over some damaged files.
_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def parquet_schema(path: Path) -> pl.Schema:
    """Names and types of the columns."""
    try:
        return pl.scan_parquet(path, glob=False).collect_schema()
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error


def read_parquet(path: Path, columns: Sequence[str]) -> Iterator[Block]:
    """Blocks of consecutive rows with the given columns as they are stored."""
    try:
        scan = pl.scan_parquet(path, glob=False)
        rows = int(scan.select(pl.len()).collect().item())
        for start in range(0, rows, BLOCK_ROWS):
            frame = scan.select(columns).slice(start, BLOCK_ROWS).collect()
            stop = start + len(frame)
            yield Block(frame, None, np.arange(start + 1, stop + 1), "row", [], stop / rows)
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: BaseException) -> DataError:
    what = (str(error).strip() or "?").splitlines()[0]
    return DataError(
        f"{path}: cannot be read as Parquet, it may be cut short or damaged ({what}); "
        "write or copy it again"
    )
