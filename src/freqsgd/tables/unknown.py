"""Values that a model does not know: counted, warned of, and refused where they show a mistake."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.tables.columns import MISSING, Column
from freqsgd.tables.tokens import UNKNOWN, TokenTable

SHARE = 0.5
"""The share of a column's values that may be unknown without a warning."""
ENOUGH = 100
"""The values of a column that must be unknown before anything is refused."""
FEW = 10
"""The values of a column from which on a warning is given: fewer may be rows of new users.

Values that the model knows in another spelling are warned of however few they are.
"""
_LOOKED_AT = 100  # unknown values that are compared with known ones
_SHOWN = 5  # columns that are warned of

Texts = Callable[[int, NDArray[np.int64], NDArray[np.int64]], list[str]]
"""Given a field, rows, and columns of the field's codes: the texts of these values."""


@dataclass
class _Seen:
    """The values of a column so far; missing ones are not counted."""

    known: int = 0
    unknown: int = 0
    example: str | None = None  # an unknown value of a block in which more than SHARE were unknown
    twin: str | None = None  # a known value that differs from the example in how it is written


@dataclass
class UnknownValues:
    """Counts the values of each column that a dictionary does not know.

    Missing values are not counted. Numbers are known by their bins.

    Args:
        place: where the values are, for messages; "" for a frame
    """

    place: str = ""
    _columns: Sequence[Column] = ()
    _table: TokenTable | None = None
    _missing: NDArray[np.int32] | None = None  # the code of a missing value in each column of codes
    _seen: list[_Seen] = field(default_factory=list)

    def add(
        self, codes: NDArray[np.int32], columns: Sequence[Column], table: TokenTable, texts: Texts
    ) -> None:
        """Count the values of more rows, whose codes were looked up in the table.

        Raises:
            DataError: there are values enough, and all so far are unknown: those of all columns,
                or those of one column, of which the table knows another spelling
        """
        if not self._seen:
            self._columns, self._table = columns, table
            self._seen = [_Seen() for _ in columns]
            nothing = pl.Series([MISSING])
            missing = [table.code_texts(nothing, n, add=False)[0] for n in range(len(columns))]
            self._missing = np.repeat(missing, [column.width for column in columns])
        starts = np.cumsum([0, *(column.width for column in columns)])
        is_unknown = codes == UNKNOWN
        is_known = (codes >= 0) & (codes != self._missing)
        unknown, known = (
            np.add.reduceat(flags.sum(0), starts[:-1]).tolist() for flags in (is_unknown, is_known)
        )
        for n, seen in enumerate(self._seen):
            seen.known += known[n]
            seen.unknown += unknown[n]
            if seen.example is None and unknown[n] > SHARE * (unknown[n] + known[n]):
                rows, places = np.nonzero(is_unknown[:, starts[n] : starts[n + 1]])
                self._choose_example(n, texts(n, rows[:_LOOKED_AT], places[:_LOOKED_AT]))
        self._check()

    def warn(self) -> None:
        """Warn of columns whose values are mostly unknown."""
        for message in self.messages():
            warnings.warn(message, DataWarning, stacklevel=3)

    def messages(self) -> list[str]:
        """What to warn of, once all rows are read."""
        found = [
            n
            for n, (column, seen) in enumerate(zip(self._columns, self._seen, strict=True))
            if not column.is_number
            and (seen.unknown >= FEW or seen.twin is not None)
            and seen.unknown > SHARE * (seen.unknown + seen.known)
        ]
        more = len(found) - _SHOWN
        rest = [f"{self._where()}so it is with {more:,} other columns"] if more > 0 else []
        return [self._message(n) for n in found[:_SHOWN]] + rest

    def _message(self, n: int) -> str:
        seen = self._seen[n]
        total = seen.known + seen.unknown
        return (
            f"{self._where()}{seen.unknown:,} of {total:,} values ({seen.unknown / total:.0%}) of "
            f"column {self._columns[n].name!r} are unknown to the model, {self._compared(n)}"
        )

    def _check(self) -> None:
        nowhere = [n for n, seen in enumerate(self._seen) if seen.unknown and not seen.known]
        many = [n for n in nowhere if self._seen[n].unknown >= ENOUGH]
        for n in many:
            if self._seen[n].twin is not None:
                raise DataError(
                    f"{self._where()}none of the first {self._seen[n].unknown:,} values of column "
                    f"{self._columns[n].name!r} is known to the model, {self._compared(n)}"
                )
        if many and not any(seen.known for seen in self._seen):
            named = [n for n in many if not self._columns[n].is_number] or many
            raise DataError(
                f"{self._where()}the model knows no value of any column, so all rows would get the "
                f"same prediction; column {self._columns[named[0]].name!r} has values "
                f"{self._compared(named[0])}; is this the right file?"
            )

    def _where(self) -> str:
        return f"{self.place}: " if self.place else ""

    def _compared(self, n: int) -> str:
        """An unknown value of a column beside a known one."""
        seen = self._seen[n]
        known = seen.twin or self._most_frequent(n)
        text = f"such as {seen.example!r}; it knows {'none' if known is None else repr(known)}"
        if seen.twin is None:
            return text
        return f"{text}: write the values as in training"

    def _most_frequent(self, n: int) -> str | None:
        """The value of a column that has the first code."""
        assert self._table is not None
        codes = np.flatnonzero(self._table.fields() == n)[:2]
        texts = [text for text in self._table.texts(codes).to_list() if text != MISSING]
        return texts[0] if texts else None

    def _choose_example(self, n: int, texts: list[str]) -> None:
        """Keep an unknown value, if possible one that is known when it is written otherwise."""
        assert self._table is not None
        seen = self._seen[n]
        seen.example = texts[0]
        if self._columns[n].is_number:
            return
        for text in texts:
            others = _respelled(text)
            codes = self._table.code_texts(pl.Series(others, dtype=pl.String), n, add=False)
            for other, code in zip(others, codes.tolist(), strict=True):
                if code >= 0:
                    seen.example, seen.twin = text, other
                    return


def _respelled(text: str) -> list[str]:
    """Other ways in which programs write the same value."""
    others = [text.strip(), text.lower(), text.upper(), text.capitalize()]
    return [other for other in dict.fromkeys(others) if other not in (text, MISSING)]
