"""Fields of a sample, and the ids that mean something in each of them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ABSENT", "RARE", "Field"]

RARE = 0
"""The id, in every field, of tokens that are seldom or never seen."""
ABSENT = -1
"""Fills up the columns of a bag."""


@dataclass(frozen=True)
class Field:
    """One feature of a sample: a token, or a bag of tokens."""

    name: str
    size: int  # ids lie in [0, size)
    width: int = 1  # columns that it takes; a bag takes as many as its longest list
