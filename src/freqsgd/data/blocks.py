"""Consecutive rows of a file, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.formats import Parquet, TextFormat

__all__ = ["Block", "read_blocks"]


@dataclass(frozen=True)
class Block:
    """Rows of a file: the well-formed ones as columns, the malformed ones by place and reason."""

    frame: pl.DataFrame  # null and "" both mean that a value is missing
    numbers: NDArray[np.int64]  # of the line (in Parquet: of the row) where each row starts
    unit: str  # what the numbers count: "line" or "row"
    malformed: list[tuple[int, str, str]]  # number, place, reason
    done: float  # the part of the file that is read, from 0 to 1


def read_blocks(path: Path, form: TextFormat | Parquet, columns: Sequence[str]) -> Iterator[Block]:
    """All rows of a file in order, a bounded number at a time."""
    from freqsgd.data.parquet import read_parquet
    from freqsgd.data.text import read_text

    if isinstance(form, Parquet):
        return read_parquet(path, columns)
    return read_text(path, form, columns)
