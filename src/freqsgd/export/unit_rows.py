"""Rows at length 1, and which of them are nearest to others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["UnitRows"]


class UnitRows:
    """The rows of a matrix that are not all zeros.

    Attributes:
        rows: where they are in the matrix
        units: the rows at length 1
    """

    def __init__(self, matrix: NDArray[np.float32]) -> None:
        self.rows = np.flatnonzero(matrix.any(1))
        self.units = matrix[self.rows]
        # squares of float32 numbers may leave its range, the squares' sum in float64 does not
        squares = np.einsum("ij,ij->i", self.units, self.units, dtype=np.float64)
        self.units /= np.sqrt(squares)[:, None]

    def place(self, row: int) -> int | None:
        """Where a row of the matrix is among these; None if it is all zeros."""
        place = int(np.searchsorted(self.rows, row))
        return place if place < len(self.rows) and self.rows[place] == row else None

    def search(
        self, queries: NDArray[np.float32], without: NDArray[np.int64], top: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows of the highest cosine with each query of length 1, and these, highest first.

        Args:
            queries: a line each
            without: for each query the places that are left out
            top: how many rows
        """
        cosines = queries @ self.units.T
        np.put_along_axis(cosines, without, -np.inf, 1)
        best = _highest(cosines, min(top, len(self.rows) - without.shape[1]))
        return self.rows[best], np.take_along_axis(cosines, best, 1).clip(-1, 1)


def _highest(values: NDArray[np.float32], top: int) -> NDArray[np.int64]:
    """Where the highest values of each line are, highest first."""
    size = values.shape[1]
    best = np.argpartition(values, size - top - 1, 1)[:, size - top :]
    order = np.argsort(-np.take_along_axis(values, best, 1), 1, kind="stable")
    return np.take_along_axis(best, order, 1)
