"""Files as word2vec writes them: a line "words dimension", then the vectors, as text or bytes."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import tempfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.files import writing
from freqsgd.vectors import word2vec_binary, word2vec_text

__all__ = ["check_rows", "read", "unpacked", "write"]

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


_GZIP = b"\x1f\x8b"


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read; one of gzip becomes a temporary one, which can be mapped too."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        if not packed:
            yield file
            return
        with tempfile.TemporaryFile() as plain:
            with gzip.open(file) as content:
                shutil.copyfileobj(content, plain)
            plain.seek(0)
            yield cast(BinaryIO, plain)


def check_rows(
    tokens: Sequence[str], matrix: NDArray[np.float32], place: str = "row", first: int = 0
) -> None:
    """Refuse a token that is there twice, and vectors that are not finite.

    Args:
        tokens: the text of each row
        matrix: the rows
        place: what a row is called
        first: the number of the first one
    """
    if len(set(tokens)) < len(tokens):
        _name_the_second(tokens, place, first)
    finite = np.isfinite(matrix.max(1, initial=0)) & np.isfinite(matrix.min(1, initial=0))
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(
            f"{place} {row + first:,}: the vector of {tokens[row]!r} holds a number that is not "
            "finite"
        )


def _name_the_second(tokens: Sequence[str], place: str, first: int) -> None:
    seen: dict[str, int] = {}
    for number, token in enumerate(tokens, start=first):
        if token in seen:
            raise ValueError(
                f"{place} {number:,}: {token!r} is there already, as {place} {seen[token]:,}"
            )
        seen[token] = number
