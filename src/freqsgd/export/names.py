"""Names of tokens, such as titles of films, from a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from freqsgd.data.dataset import DataError
from freqsgd.data.files import read_file

__all__ = ["read_names"]


def read_names(path: Path) -> dict[str, str]:
    """The second column of a file by its first.

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
    """The cells of each line that is not blank, and the line's number."""
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
