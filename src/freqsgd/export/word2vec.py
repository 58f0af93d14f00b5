"""Files as word2vec writes them: a line "words dimension", then the vectors, as text or bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.export import word2vec_binary, word2vec_text
from freqsgd.export.arrays import writing

__all__ = ["FORMATS", "read", "write"]

FORMATS = ("word2vec-text", "word2vec-bin")
_SAMPLE = 1 << 16  # bytes that tell one from the other
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def write(path: Path, format: str, tokens: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """Write the vectors in one of :data:`FORMATS`; white space in a token becomes "_".

    Raises:
        DataError: two tokens would look the same
    """
    words = _words(tokens)
    body = word2vec_binary if format == "word2vec-bin" else word2vec_text
    with writing(path) as temporary, temporary.open("wb") as file:
        file.write(f"{len(words)} {matrix.shape[1]}\n".encode())
        body.write(file, words, matrix)


def read(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """The words and vectors of a file of either format."""
    try:
        with path.open("rb") as file:
            count, dim = _header(file)
            if path.stat().st_size < count * dim * 2:  # bytes of a digit and a space
                raise ValueError(f"it is too short for {count:,} vectors of dimension {dim}")
            if _is_binary(file, dim):
                return word2vec_binary.read(file, count, dim)
            return word2vec_text.read(file, count, dim)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a file of vectors, or damaged: {error}") from error


def _header(file: BinaryIO) -> tuple[int, int]:
    try:
        count, dim = (int(number) for number in file.readline(100).split())
    except ValueError:
        count, dim = -1, -1
    if count < 0 or dim < 1:
        raise ValueError("its first line is not a number of vectors and their dimension")
    return count, dim


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
        word = re.sub(r"\s", "_", token)
        if word in origin:
            raise DataError(
                f"the tokens {origin[word]!r} and {token!r} would both be written as {word!r}: use "
                "the format safetensors or npz"
            )
        origin[word] = token
    return list(origin)
