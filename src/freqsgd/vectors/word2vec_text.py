"""Vectors as word2vec's text: a line per word, the word and its numbers."""

from __future__ import annotations

import warnings
from codecs import BOM_UTF8
from collections.abc import Sequence
from typing import BinaryIO, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataWarning

__all__ = ["read", "write"]

_BLOCK = 1 << 25  # bytes that are parsed at a time


def write(file: BinaryIO, words: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """Write the lines; numbers are the shortest that give the same float32 again."""
    frame = pl.from_numpy(matrix).insert_column(0, pl.Series("word", words, pl.String))
    frame.write_csv(file, include_header=False, separator=" ", quote_style="never")


def read(
    file: BinaryIO, count: int, dim: int, first_line: int
) -> tuple[list[str], NDArray[np.float32]]:
    """Read so many lines, which must be all but for blank ones at the end.

    Between words and numbers are spaces or tabs, and lines may end with some.
    """
    words: list[str] = []
    matrix = np.empty((count, dim), np.float32)
    ended = True
    while block := file.read(_BLOCK) + file.readline():
        ended = block.endswith(b"\n")
        if not (lines := block.rstrip()):
            continue
        frame = _parse(lines, dim, first_line + len(words))
        first, end = len(words), len(words) + len(frame)
        if end > count:
            raise ValueError(f"more than the {count:,} vectors that its first line says")
        matrix[first:end] = frame.drop("word").to_numpy()
        words += frame["word"].to_list()
    if len(words) < count:
        raise ValueError(f"{len(words):,} vectors where its first line says {count:,}")
    if not ended:
        warnings.warn(
            f"the last line of the vectors, that of {words[-1]!r}, has no end: its last number may "
            "be cut short",
            DataWarning,
            stacklevel=2,
        )
    return words, matrix


def _parse(lines: bytes, dim: int, first_line: int) -> pl.DataFrame:
    frame = _frame(lines, dim)
    if frame is None and b"\t" in lines:  # which is tried second, for a word may hold one
        lines = lines.replace(b"\t", b" ")
        frame = _frame(lines, dim)
    if frame is None:
        _name_the_line(lines, dim, first_line)
    return frame


def _frame(lines: bytes, dim: int) -> pl.DataFrame | None:
    """A row per line; None if one is not a word and so many numbers."""
    plain = lines.replace(b"\r\n", b"\n").replace(b" \n", b"\n")  # the original's lines end so
    try:
        frame = pl.read_csv(
            # the mark is a part of the first word here, but polars takes one away
            BOM_UTF8 + plain if plain.startswith(BOM_UTF8) else plain,
            has_header=False,
            separator=" ",
            quote_char=None,
            schema={"word": pl.String(), **{str(k): pl.Float32() for k in range(dim)}},
        )
    except pl.exceptions.PolarsError:
        return None
    return None if frame.null_count().sum_horizontal().item() else frame


def _name_the_line(lines: bytes, dim: int, first_line: int) -> NoReturn:
    for number, line in enumerate(lines.split(b"\n"), start=first_line):
        word, *numbers = line.rstrip().split(b" ")
        shown = line[:40].decode("utf-8", "replace")
        try:
            whole = bool(word.decode()) and len([float(number) for number in numbers]) == dim
        except ValueError:
            whole = False
        if not whole:
            raise ValueError(f"line {number:,} is not a word and {dim} numbers: {shown!r}")
    raise ValueError(f"a line is not a word and {dim} numbers")
