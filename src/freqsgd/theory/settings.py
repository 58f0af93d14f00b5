"""The settings of a simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freqsgd.checks import real_number, whole_number
from freqsgd.errors import DataError
from freqsgd.theory.checks import Array
from freqsgd.theory.distributions import check_tail, token_distribution
from freqsgd.theory.improvement import Corollary, corollary

__all__ = ["PILOT_OUTPUTS", "Settings"]

PILOT_OUTPUTS = 40
"""Iterates that a pilot run puts out."""

_OUTPUTS = ("random", "last")
_RATES = {"uniform": 0.0, "exponential": 0.2, "polynomial": 2.0}  # none, tau, nu
_LEAST = {"users": 2, "items": 2, "dim": 1, "iterations": 2, "repetitions": 2, "seed": 0}
_RADII = 0.01, 1000  # beyond, losses or their second derivatives lose their digits
_MOST_NUMBERS = 50_000_000  # of one array


@dataclass(frozen=True)
class Settings:
    """The problem, and how often and how long it is run.

    Args:
        tail: of the frequencies: "uniform", "exponential" or "polynomial"
        rate: tau or nu; None for 0.2 or 2
        users, items: how many
        dim: length of the rows
        radius: of the ball that they must not leave
        iterations: of a repetition
        repetitions: each a problem of its own
        output: the iterate that is looked at: "random", as the algorithms say, or "last"
        seed: of problems, pairs and outputs
    """

    tail: str = "exponential"
    rate: float | None = None
    users: int = 24
    items: int = 24
    dim: int = 2
    radius: float = 4.0
    iterations: int = 1_000_000
    repetitions: int = 100
    output: str = "random"
    seed: int = 0

    def check(self) -> None:
        """Raise unless they make sense, and fit into memory."""
        check_tail(self.tail)
        if self.output not in _OUTPUTS:
            raise DataError(f"unknown output {self.output!r}: known are {', '.join(_OUTPUTS)}")
        if self.tail == "uniform" and self.rate is not None:
            raise DataError("a uniform distribution has no rate")
        for name, least in _LEAST.items():
            whole_number(name, getattr(self, name), least)
        if not _RADII[0] <= real_number("radius", self.radius) <= _RADII[1]:
            raise DataError(
                f"radius must lie between {_RADII[0]} and {_RADII[1]}, got {self.radius}"
            )
        tokens = self.users + self.items
        numbers = {
            f"{self.users:,} users x {self.items:,} items": self.users * self.items,
            f"{PILOT_OUTPUTS} iterates of {tokens:,} rows of {self.dim:,}": PILOT_OUTPUTS
            * tokens
            * self.dim,
        }
        for words, count in numbers.items():
            if count * self.repetitions > _MOST_NUMBERS:
                raise DataError(
                    f"{words} x {self.repetitions:,} repetitions are more than the "
                    f"{_MOST_NUMBERS:,} numbers that are held at once; take fewer of one"
                )

    @property
    def falloff(self) -> float:
        """The rate that is given, or else the default."""
        return _RATES[self.tail] if self.rate is None else real_number("rate", self.rate)

    @property
    def corollaries(self) -> tuple[Corollary, Corollary]:
        """The corollaries about users and about items."""
        users = corollary(self.tail, self.users, self.falloff)
        return users, corollary(self.tail, self.items, self.falloff)

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Ranks of all tokens among those of their side, from 1 on: users first, as everywhere."""
        return np.concatenate([np.arange(1, self.users + 1), np.arange(1, self.items + 1)])

    @property
    def sides(self) -> NDArray[np.int64]:
        """The side of each token: 0 is a user, 1 is an item."""
        return np.repeat([0, 1], [self.users, self.items])

    @property
    def tops(self) -> NDArray[np.bool_]:
        """Whether each token is one of the paper's top tokens."""
        return self.ranks <= np.array([each.top for each in self.corollaries])[self.sides]

    @property
    def exception(self) -> str | None:
        """Why the corollary does not apply; None if it does."""
        if self.tail == "uniform" and self.users != self.items:
            return f"|U| = {self.users} is not |V| = {self.items}"
        users, items = self.corollaries
        return users.reason or items.reason

    def distribution(self, tokens: int) -> Array:
        """Return the frequencies of so many tokens."""
        return token_distribution(self.tail, tokens, self.falloff)
