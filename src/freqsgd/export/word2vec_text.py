"""Vectors as word2vec's text: a line per word, the word and its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["read", "write"]

_BLOCK = 1 << 25  # bytes that are parsed at a time


def write(file: BinaryIO, words: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """Write the lines; numbers are the shortest that give the same float32 again."""
    frame = pl.from_numpy(matrix).insert_column(0, pl.Series("word", words, pl.String))
    frame.write_csv(file, include_header=False, separator=" ", quote_style="never")


def read(file: BinaryIO, count: int, dim: int) -> tuple[list[str], NDArray[np.float32]]:
    """Read so many lines, which must be all."""
    words: list[str] = []
    matrix = np.empty((count, dim), np.float32)
    while block := file.read(_BLOCK) + file.readline():
        frame = _parse(block, dim)
        first, end = len(words), len(words) + len(frame)
        if end > count:
            raise ValueError(f"more than the {count:,} vectors that its first line says")
        matrix[first:end] = frame.drop("word").to_numpy()
        words += frame["word"].to_list()
    if len(words) < count:
        raise ValueError(f"{len(words):,} vectors where its first line says {count:,}")
    return words, matrix


def _parse(block: bytes, dim: int) -> pl.DataFrame:
    if not block.endswith(b"\n"):
        raise ValueError("its last line has no end, so it may be cut short")
    wrong = f"a line is not a word and {dim} numbers"
    try:
        frame = pl.read_csv(
            block.replace(b" \n", b"\n"),  # how the original program ends lines
            has_header=False,
            separator=" ",
            quote_char=None,
            schema={"word": pl.String(), **{str(k): pl.Float32() for k in range(dim)}},
        )
    except pl.exceptions.PolarsError as error:
        raise ValueError(wrong) from error
    if frame.null_count().sum_horizontal().item():
        raise ValueError(wrong)
    return frame
