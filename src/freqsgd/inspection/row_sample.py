"""A sample of rows that are met one after another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowSample"]


class RowSample:
    """Keeps so many of all rows, each with the same chance, however many there are.

    Every row draws a number; the rows with the smallest ones are kept.

    Args:
        most: how many are kept
        width: columns of a row
        seed: the same seed keeps the same rows
    """

    def __init__(self, most: int, width: int, seed: int = 0) -> None:
        self._most = most
        self._random = np.random.default_rng(seed)
        self._rows = [np.empty((0, width), np.int32)]
        self._drawn = [np.empty(0)]
        self._kept, self._limit = 0, 1.0

    def add(self, rows: NDArray[np.int32]) -> None:
        """Take in more rows."""
        drawn = self._random.random(len(rows))
        if self._limit < 1:
            chosen = drawn < self._limit
            rows, drawn = rows[chosen], drawn[chosen]
        self._rows.append(rows)
        self._drawn.append(drawn)
        self._kept += len(rows)
        if self._kept > self._most + self._most // 4:
            self._shrink()

    def rows(self) -> NDArray[np.int32]:
        """The rows kept: all, where there were no more."""
        self._shrink()
        return self._rows[0]

    def _shrink(self) -> None:
        rows, drawn = np.concatenate(self._rows), np.concatenate(self._drawn)
        if len(rows) > self._most:
            order = np.argpartition(drawn, self._most)
            self._limit = float(drawn[order[self._most]])
            chosen = np.sort(order[: self._most])
            rows, drawn = rows[chosen], drawn[chosen]
        self._rows, self._drawn, self._kept = [rows], [drawn], len(rows)
