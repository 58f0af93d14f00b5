"""A simulation as its page tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from freqsgd.documents import check_kind, read_document, theory
from freqsgd.report.old.results import display_name

SIDES = {"user": "users", "item": "items"}
TAIL_RATES = {"exponential": "tau", "polynomial": "nu"}


Column = tuple[float | None, ...]


class TheoryRun(theory.TheoryRun, frozen=True):
    """A run with its name for readers."""

    @property
    def bounds(self) -> Column:
        """The bound of each token, if there is one."""
        return self.bound or (None,) * len(self.measured)

    @property
    def label(self) -> str:
        """The optimizer's name."""
        return display_name(self.optimizer)


class Improvement(theory.Improvement, frozen=True):
    """An improvement with its name for readers."""

    @property
    def bounds(self) -> Column:
        """The ratio of bounds of each token, if there is one."""
        return self.bound or (None,) * len(self.measured)

    @property
    def needed(self) -> Column:
        """The ratio of iterations of each token, if there is one."""
        return self.iterations or (None,) * len(self.measured)

    @property
    def guaranteed(self) -> Column:
        """The corollary's factor of each token, if there is one."""
        return self.corollary or (None,) * len(self.measured)

    @property
    def label(self) -> str:
        """The optimizer's name."""
        return display_name(self.optimizer)


class Theory(theory.Theory, frozen=True):
    """All of a simulation."""

    runs: tuple[TheoryRun, ...]
    improvements: tuple[Improvement, ...]

    def name(self, place: int) -> str:
        """How prose calls a token."""
        return f"{self.tokens.side[place]} {self.tokens.rank[place]}"

    def places(self, side: str) -> list[int]:
        """Where the tokens of a side are in all columns."""
        return [place for place, each in enumerate(self.tokens.side) if each == side]

    def top(self, side: str) -> int:
        """How many top tokens a side has."""
        return self.problem.top_users if side == "user" else self.problem.top_items

    @property
    def tail(self) -> list[int]:
        """Where the tokens beyond the top ones are in all columns."""
        pairs = zip(self.tokens.side, self.tokens.rank, strict=True)
        return [place for place, (side, rank) in enumerate(pairs) if rank > self.top(side)]


def read_theory(document: Mapping[str, Any]) -> Theory:
    """The content of a ``theory.json``."""
    check_kind(document, "theory", "theory")
    return read_document(document, Theory, "theory.json")
