"""Files as word2vec writes them: a line "words dimension", then the vectors, as text or bytes."""

from __future__ import annotations

import os
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.data.files import writing
from freqsgd.export import word2vec_binary, word2vec_text
from freqsgd.export.checking import check_rows
from freqsgd.export.unpacked import unpacked

__all__ = ["read", "write"]

_LONGEST_LINE = 1 << 20  # bytes
_SAMPLE = 1 << 16  # bytes that tell one from the other
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def write(path: Path, format: str, tokens: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """Write the vectors in word2vec's text or binary format; white space in a token becomes "_".

    Raises:
        DataError: two tokens would look the same, or one cannot be written
    """
    words = _words(tokens)
    body = word2vec_binary if format == "word2vec-bin" else word2vec_text
    with writing(path) as temporary, temporary.open("wb") as file:
        file.write(f"{len(words)} {matrix.shape[1]}\n".encode())
        body.write(file, words, matrix)


def read(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """The words and vectors of a file of either format; GloVe's text has no first line of sizes.

    Raises:
        DataError: it is cut short or damaged, or a word is there twice
    """
    try:
        with unpacked(path) as file:
            count, dim, first_line = _sizes(file)
            if _bytes_left(file) < count * dim * 2:  # bytes of a digit and a space
                raise ValueError(f"it is too short for {count:,} vectors of dimension {dim}")
            if _is_binary(file, dim):
                words, matrix = word2vec_binary.read(file, count, dim)
                check_rows(words, matrix, "vector", 1)
            else:
                words, matrix = word2vec_text.read(file, count, dim, first_line)
                check_rows(words, matrix, "line", first_line)
            return words, matrix
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(f"{path} is not a file of vectors, or damaged: {error}") from error


def _sizes(file: BinaryIO) -> tuple[int, int, int]:
    """How many vectors there are, their dimension, and the line of the first; goes there."""
    marked = file.read(len(BOM_UTF8)) == BOM_UTF8
    start = len(BOM_UTF8) if marked else 0
    file.seek(start)
    first = file.readline(_LONGEST_LINE).split()
    if len(first) == 2 and all(number.isdigit() for number in first) and int(first[1]) > 0:
        return int(first[0]), int(first[1]), 2
    file.seek(start)
    if len(first) > 2 and _are_numbers(first[1:], len(first) - 1):
        count = sum(1 for line in file if not line.isspace())
        file.seek(start)
        return count, len(first) - 1, 1
    raise ValueError("its first line is not a number of vectors and their dimension")


def _bytes_left(file: BinaryIO) -> int:
    start = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(start)
    return end - start


def _is_binary(file: BinaryIO, dim: int) -> bool:
    """Whether the vectors that follow are bytes: no line of numbers, and not text either."""
    start = file.tell()
    sample = file.read(_SAMPLE)
    file.seek(start)
    if _are_numbers(sample.partition(b"\n")[0].split()[1:], dim):
        return False
    try:
        return _NO_TEXT.search(sample.decode()) is not None
    except UnicodeDecodeError:
        return True


def _are_numbers(texts: list[bytes], dim: int) -> bool:
    try:
        return len([float(text) for text in texts]) == dim
    except ValueError:
        return False


def _words(tokens: Sequence[str]) -> list[str]:
    """The tokens without white space."""
    origin: dict[str, str] = {}
    for token in tokens:
        if not token or _is_broken(token):
            raise DataError(
                f"the token {token!r} cannot be written here: use the format safetensors or npz"
            )
        word = re.sub(r"\s", "_", token)
        if word in origin:
            raise DataError(
                f"the tokens {origin[word]!r} and {token!r} would both be written as {word!r}: use "
                "the format safetensors or npz"
            )
        origin[word] = token
    return list(origin)


def _is_broken(token: str) -> bool:
    """Whether UTF-8 cannot hold it: half of a pair of surrogates is no character."""
    try:
        token.encode()
    except UnicodeEncodeError:
        return True
    return False
