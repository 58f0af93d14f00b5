"""How text files are laid out: what stands between cells, and what columns are called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from freqsgd.errors import DataError

_USUAL = (",", ";", "\t", "|", "::", " ")  # the last one stands in many names too
_STAND_IN = "\x1f"  # ASCII's own separator of units, which no text has
_TYPES = ("token", "token_seq", "float", "float_seq")
_EXAMPLES = "such as ';', '::' or tab"


@dataclass(frozen=True)
class Dialect:
    """How text files are laid out, where the file itself and the end of its name do not tell.

    Args:
        separator: what stands between cells, as it is; "tab" and "\\\\t" are a tab. None: what the
            end of a file's name tells
        columns: names of all columns, of files without a header. (): the first line names them

    Raises:
        DataError: nothing can be read with these
    """

    separator: str | None = None
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))  # a list, if it comes from JSON
        if self.separator in ("tab", "\\t"):
            object.__setattr__(self, "separator", "\t")
        if self.separator == "":
            raise DataError(f"--separator is empty: name what stands between cells, {_EXAMPLES}")
        if self.separator and any(char.isalnum() or char in '"\r\n\0' for char in self.separator):
            raise DataError(
                f"--separator {self.separator!r} cannot stand between cells: letters, digits, "
                f"quotes and line ends are parts of cells; use others, {_EXAMPLES}"
            )
        for place, name in enumerate(self.columns):
            if name == "":
                raise DataError(
                    f"--columns: name {place + 1} of {len(self.columns)} is empty; name all "
                    "columns of the file in their order, also those that are not used"
                )
            if name in self.columns[:place]:
                raise DataError(f"--columns names {name!r} twice: every column has its own name")

    def beside(self, remembered: Dialect) -> Dialect:
        """Return how to read a file, where others were read as a model remembers.

        Without any options as those were. Names alone keep the separator; a separator alone says
        that the first line names the columns.
        """
        if self == BY_NAME:
            return remembered
        if self.columns and self.separator is None:
            return Dialect(remembered.separator, self.columns)
        return self


BY_NAME = Dialect()
"""The end of a file's name tells the separator, its first line the columns."""


@dataclass(frozen=True)
class TextFormat:
    """Rows of text, one sample each."""

    separator: str
    quoted: bool = False  # cells in quotes may hold separators and newlines
    layouts: tuple[tuple[str, ...], ...] = ()  # of a known dataset's files without a header
    columns: tuple[str, ...] = ()  # names of the columns, for other files without a header
    typed: bool = False  # names are followed by types, as in RecBole's files: user_id:token

    @property
    def parsed_separator(self) -> str:
        """Of the text that is parsed, in which one byte stands for a longer separator."""
        return self.separator if len(self.separator.encode()) == 1 else _STAND_IN

    def spoken(self, dialect: Dialect) -> TextFormat:
        """Return the format of a file that is laid out as a dialect says."""
        separator = dialect.separator or self.separator
        quoted = (self.quoted or separator in (",", ";")) and len(separator.encode()) == 1
        return replace(self, separator=separator, quoted=quoted, columns=dialect.columns)


def split_type(name: str) -> tuple[str, str]:
    """Return the name of a column and its type, which may be "".

    Example:
        >>> split_type("user_id:token"), split_type("12:30")
        (('user_id', 'token'), ('12:30', ''))
    """
    plain, _, kind = name.rpartition(":")
    return (plain, kind) if plain and kind in _TYPES else (name, "")


def separator_hint(line: str, used: str, fits: Callable[[list[str]], bool]) -> str:
    """Return a sentence that names the separator that a line seems to have; "" if it has none.

    Args:
        line: the first one of a file
        used: the separator that it was read with
        fits: whether cells are those that are looked for; where none are, and the line has not the
            separator that was used, the most frequent usual one is named
    """
    others = [separator for separator in _USUAL if separator != used]
    found = [separator for separator in others if fits(_cells(line, separator))]
    if used in line:
        found = [separator for separator in found if separator != " "]
    elif not found:
        most = max((separator for separator in others if separator != " "), key=line.count)
        found = [most] if most in line else []
    if not found:
        return ""
    named = "tabs" if found[0] == "\t" else written(found[0])
    return f"The file seems to be separated by {named}: use --separator {written(found[0])}"


def written(separator: str) -> str:
    """Return a separator as it can be written on the command line."""
    return "tab" if separator == "\t" else f"'{separator}'"


def _cells(line: str, separator: str) -> list[str]:
    return [cell.strip('" ') for cell in line.split(separator)]
