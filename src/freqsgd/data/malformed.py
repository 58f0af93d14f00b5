"""Rows that cannot be read: counted, shown, and refused when there are too many."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from freqsgd.data.dataset import DataError

__all__ = ["MalformedRows"]

_SHOWN = 5


class MalformedRows:
    """Malformed rows found so far, and how many are allowed.

    Args:
        allowed: how many may be dropped
        earlier: how many of them were found before, of which nothing else is known

    Attributes:
        count: of all, the earlier ones included
        rows: taken in, well-formed ones included
    """

    def __init__(self, allowed: int, earlier: int = 0) -> None:
        self.allowed, self.earlier, self.count = allowed, earlier, earlier
        self.rows = 0
        self._first: list[str] = []

    def add(self, path: Path, rows: int, found: Iterable[tuple[str, str]]) -> None:
        """Take in ``rows`` more rows of a file, and those of them found malformed: place, reason.

        Raises:
            DataError: there are more than allowed
        """
        self.rows += rows
        for place, reason in found:
            self.count += 1
            if len(self._first) < _SHOWN:
                self._first.append(f"  {path}, {place}: {reason}")
        if self.count > self.allowed:
            raise DataError(
                f"{self._message()}\nMend them or take them out. Training drops up to "
                f"--max-bad-rows ({self.allowed} now)."
            )

    def dropped(self) -> str:
        """What to warn of, once all rows are read; "" if none was dropped."""
        return f"{self._message()}\nThey were dropped." if self.count else ""

    def _message(self) -> str:
        rows, found = "row" if self.count == 1 else "rows", self.count - self.earlier
        head = f"{self.count:,} malformed {rows} among the first {self.rows:,}"
        if self.earlier:
            head = (
                f"{self.count:,} malformed {rows}: {self.earlier:,} earlier, and {found:,} among "
                f"the next {self.rows:,} rows"
            )
        if found > len(self._first):
            head += f"; the first {len(self._first)} of them"
        return "\n".join([f"{head}:", *self._first])
