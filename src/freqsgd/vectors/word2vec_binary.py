"""Vectors as word2vec's binary format: a word, a space and the bytes of its float32 numbers."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["read", "write"]

_NUMBER = np.dtype("<f4")


def write(file: BinaryIO, words: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """Write each vector, and a line break after it as the original program does."""
    for word, row in zip(words, matrix.astype(_NUMBER, copy=False), strict=True):
        file.write(b"%b %b\n" % (word.encode(), row.tobytes()))


def read(file: BinaryIO, count: int, dim: int) -> tuple[list[str], NDArray[np.float32]]:
    """Read so many vectors, which must be all; those of gensim have no line breaks."""
    place, size = file.tell(), dim * _NUMBER.itemsize
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        words: list[str] = []
        matrix = np.empty((count, dim), np.float32)
        for row in matrix:
            space = data.find(b" ", place)
            if space < 0 or space + 1 + size > len(data):
                raise ValueError(f"it ends within vector {len(words) + 1:,} of {count:,}")
            words.append(data[place:space].lstrip(b"\n").decode())
            row[:] = np.frombuffer(data, _NUMBER, dim, space + 1)
            place = space + 1 + size
        if data[place:].strip(b"\n"):
            raise ValueError(f"it goes on after its {count:,} vectors")
    return words, matrix
