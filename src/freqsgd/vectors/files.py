"""Files of vectors: named arrays (safetensors, npz), and word2vec's text and binary formats.

A file of word2vec has a line "words dimension", then the vectors: as text a line for each word, the
word and its numbers; as binary a word, a space and the bytes of its float32 numbers.
"""

from __future__ import annotations

import contextlib
import gzip
import mmap
import os
import re
import shutil
import tempfile
import warnings
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.files import writing
from freqsgd.runs import checkpoint
from freqsgd.vectors.names import ARRAY_FORMATS, choose

_LONGEST_HEADER = 1 << 32  # of a safetensors file, whose first 8 bytes are the header's length
_LONGEST_LINE = 1 << 20  # bytes
_SAMPLE = 1 << 16  # bytes that tell text from binary
_BLOCK = 1 << 25  # bytes of text that are parsed at a time
_NUMBER = np.dtype("<f4")
_GZIP = b"\x1f\x8b"
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_HALF_CHARACTER = re.compile(r"[\ud800-\udfff]")  # of a pair of surrogates, which is not UTF-8

Read = tuple[list[str], NDArray[np.float32]]  # words, and a row for each


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
        seen: dict[str, int] = {}
        for number, token in enumerate(tokens, start=first):
            if token in seen:
                raise ValueError(
                    f"{place} {number:,}: {token!r} is there already, as {place} {seen[token]:,}"
                )
            seen[token] = number
    finite = np.isfinite(matrix.max(1, initial=0)) & np.isfinite(matrix.min(1, initial=0))
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(
            f"{place} {row + first:,}: the vector of {tokens[row]!r} holds a number that is not "
            "finite"
        )


# ---- named arrays --------------------------------------------------------------------------------


def write_arrays(path: Path, format: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Write the arrays under their names."""
    if choose("format", format, ARRAY_FORMATS) == "safetensors":
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        checkpoint.save(path, tensors, {})
    else:
        with writing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)


def read_arrays(path: Path) -> dict[str, NDArray[Any]] | None:
    """Return the arrays of a file, by name; None if it is of another format."""
    try:
        with path.open("rb") as file:
            start = file.read(9)
        if start[8:] == b"{" and int.from_bytes(start[:8], "little") < _LONGEST_HEADER:
            tensors, _ = checkpoint.load(path)
            return {name: tensor.numpy() for name, tensor in tensors.items()}
        if not start.startswith(b"PK"):
            return None
        with np.load(path, allow_pickle=False) as packed:
            return dict(packed)
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"cannot read {path}: {error}") from error
    except Exception as error:  # a damaged zip file may raise anything
        raise DataError(f"{path} is damaged or not a file of vectors ({error})") from error


# ---- word2vec ------------------------------------------------------------------------------------


def write_word2vec(
    path: Path, format: str, tokens: Sequence[str], matrix: NDArray[np.float32]
) -> None:
    """Write the vectors in word2vec's text or binary format; white space in a token becomes "_".

    Raises:
        DataError: two tokens would look the same, or one cannot be written
    """
    words = _without_spaces(tokens)
    with writing(path) as temporary, temporary.open("wb") as file:
        file.write(f"{len(words)} {matrix.shape[1]}\n".encode())
        (_write_binary if format == "word2vec-bin" else _write_text)(file, words, matrix)


def _without_spaces(tokens: Sequence[str]) -> list[str]:
    """Return tokens whose white space became "_"."""
    origin: dict[str, str] = {}
    for token in tokens:
        if not token or _HALF_CHARACTER.search(token):
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


def read_word2vec(path: Path) -> Read:
    """Return the words and vectors of a file of either format, or of GloVe's, without sizes.

    Raises:
        DataError: it is cut short or damaged, or a word is there twice
    """
    try:
        with _unpacked(path) as file:
            count, dim, first_line = _sizes(file)
            left = os.fstat(file.fileno()).st_size - file.tell()
            if left < count * dim * 2:  # bytes of a digit and a space
                raise ValueError(f"it is too short for {count:,} vectors of dimension {dim}")
            if _is_binary(file, dim):
                words, matrix = _read_binary(file, count, dim)
                check_rows(words, matrix, "vector", 1)
            else:
                words, matrix = _read_text(file, count, dim, first_line)
                check_rows(words, matrix, "line", first_line)
            return words, matrix
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(f"{path} is not a file of vectors, or damaged: {error}") from error


def _sizes(file: BinaryIO) -> tuple[int, int, int]:
    """Go to the first vector; return the number of vectors, their dimension, and its line."""
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


def _is_binary(file: BinaryIO, dim: int) -> bool:
    """Tell whether the vectors that follow are bytes: no line of numbers, and not text either."""
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


@contextlib.contextmanager
def _unpacked(path: Path) -> Iterator[BinaryIO]:
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


def _write_binary(file: BinaryIO, words: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """Write each vector, and a line break after it as the original program does."""
    for word, row in zip(words, matrix.astype(_NUMBER, copy=False), strict=True):
        file.write(b"%b %b\n" % (word.encode(), row.tobytes()))


def _read_binary(file: BinaryIO, count: int, dim: int) -> Read:
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


def _write_text(file: BinaryIO, words: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """Write the lines; numbers are the shortest that give the same float32 again."""
    frame = pl.from_numpy(matrix).insert_column(0, pl.Series("word", words, pl.String))
    frame.write_csv(file, include_header=False, separator=" ", quote_style="never")


def _read_text(file: BinaryIO, count: int, dim: int, first_line: int) -> Read:
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
    """Return a row per line; None if one is not a word and so many numbers."""
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
