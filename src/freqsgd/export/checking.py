"""What every file of vectors must be: a word once, and numbers that are numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_rows"]


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
