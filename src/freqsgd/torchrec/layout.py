"""How the rows of a factorization machine lie in tables of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """How the rows of an :class:`~freqsgd.nn.FM` lie in tables, one per field.

    Args:
        sizes, widths: of the fields, as of the model
        dim: of the vectors
    """

    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    dim: int

    @property
    def row(self) -> int:
        """Numbers of a row: vector, linear weight, and zeros up to a multiple of 4."""
        return -(-(self.dim + 1) // 4) * 4

    @property
    def tables(self) -> list[str]:
        """Their names."""
        return [f"field{number}" for number in range(len(self.sizes))]

    @property
    def columns(self) -> list[str]:
        """Names of the columns of ids; a bag has several, which share its table."""
        return [f"{t}.{k}" for t, w in zip(self.tables, self.widths, strict=True) for k in range(w)]

    @property
    def starts(self) -> dict[str, int]:
        """The model's row where each table begins."""
        first = np.cumsum([0, *self.sizes[:-1]])
        return dict(zip(self.tables, map(int, first), strict=True))
