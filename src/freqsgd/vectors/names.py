"""Names of tokens, fields and formats that a user gave."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from freqsgd.errors import DataError
from freqsgd.files import read_file

ARRAY_FORMATS = ("safetensors", "npz")
WORD2VEC_FORMATS = ("word2vec-text", "word2vec-bin")
VECTOR_FORMATS = (*ARRAY_FORMATS, *WORD2VEC_FORMATS)
FORMATS = (*VECTOR_FORMATS, "onnx")
"""What a model can be written as."""


class UnknownTokenError(DataError, KeyError):
    """There is no such token."""

    __str__ = Exception.__str__  # a KeyError's puts the message in quotes


def choose(kind: str, name: str | None, known: Sequence[str]) -> str:
    """Return the name, if it is known; without one, the only one that there is.

    Example:
        >>> choose("field", None, ["word"])
        'word'
    """
    if name is not None and name in known:
        return name
    listed = ", ".join(known)
    if name is not None:
        close = close_to(name, known)[:1]
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise DataError(f"there is no {kind} {name!r}{hint}; known: {listed}")
    if len(known) != 1:
        raise DataError(f"name the {kind}, there are several: {listed}")
    return known[0]


def close_to(name: str, known: Sequence[str]) -> list[str]:
    """Return up to three names spelled alike, of the first 100,000: more would take seconds."""
    folded = {one.casefold(): one for one in known[:100_000]}
    return [folded[one] for one in get_close_matches(name.casefold(), folded)]


def read_names(path: Path) -> dict[str, str]:
    """Return the second column of a file by its first.

    Columns are separated by ``::`` if the first line has it, else by a tab if it has one, else by a
    comma; the text is UTF-8 or else Latin-1.
    """
    try:
        content = read_file(path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if "\0" in text:
        raise DataError(f"{path}: this is not a file of text; expected tokens and their names")
    names = {}
    for number, row in _rows(path, text.replace("\r\n", "\n")):
        if len(row) < 2:
            raise DataError(f"{path}, line {number}: one column, expected a token and its name")
        names[row[0]] = row[1]
    return names


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each line that is not blank, and the line's number."""
    first = text.partition("\n")[0]
    separator = next((mark for mark in ("::", "\t") if mark in first), ",")
    if separator == ",":
        reader, start = csv.reader(io.StringIO(text), strict=True), 1
        try:
            for row in reader:
                if row:
                    yield reader.line_num, row
                start = reader.line_num + 1
        except csv.Error as error:
            raise DataError(
                f"{path}, line {start}: cannot be read as CSV ({error}); "
                "look for stray quotes there"
            ) from None
    else:
        lines = enumerate(text.split("\n"), start=1)
        yield from ((number, line.split(separator)) for number, line in lines if line)
