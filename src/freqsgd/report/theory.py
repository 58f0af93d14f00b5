"""Reads the content of ``theory.json``: bounds and measurements, a number per token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freqsgd.errors import DataError
from freqsgd.report.documents import check_kind, column, listing
from freqsgd.report.results import display_name, integer, mapping, number, text

__all__ = ["SIDES", "Check", "Improvement", "Slope", "Theory", "TheoryRun", "Token", "read_theory"]

SCHEMA = 1
SIDES = {"user": "users", "item": "items"}

Numbers = tuple[float | None, ...]


@dataclass(frozen=True)
class Token:
    """A user or an item; rank 1 is the most frequent of its side."""

    side: str
    rank: int
    p: float | None
    sigma2: float | None
    start: float | None  # its squared gradient before the first iteration

    @property
    def name(self) -> str:
        """How prose calls it."""
        return f"{self.side} {self.rank}"


@dataclass(frozen=True)
class TheoryRun:
    """One optimizer: what it may at most have left of each token's gradient, and what it has."""

    optimizer: str
    label: str
    alpha: float | None
    steps: Numbers
    bound: Numbers
    measured: Numbers
    low: Numbers
    high: Numbers
    invalid: int  # repetitions that left the ball


@dataclass(frozen=True)
class Slope:
    """How fast the logarithm of an improvement grows along the tail."""

    measured: float
    low: float
    high: float
    predicted: float | None
    axis: str  # "rank" or "log rank"
    tokens: int | None
    begun: int | None  # of these, how many SGD has begun to learn


@dataclass(frozen=True)
class Improvement:
    """SGD's error over that of another optimizer."""

    optimizer: str
    label: str
    bound: Numbers
    iterations: Numbers  # by the bounds: SGD's iterations to an equal error over its
    corollary: Numbers  # of these, what the corollary guarantees
    measured: Numbers
    low: Numbers
    high: Numbers
    slope: Slope | None


@dataclass(frozen=True)
class Check:
    """A statement of the paper, and whether it came out."""

    statement: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class Theory:
    """All of a simulation."""

    problem: Mapping[str, Any]
    tokens: tuple[Token, ...]
    runs: tuple[TheoryRun, ...]
    improvements: tuple[Improvement, ...]
    checks: tuple[Check, ...]
    command: str | None
    created: str | None
    seconds: float | None

    def places(self, side: str) -> list[int]:
        """Where the tokens of a side are in all columns."""
        return [place for place, token in enumerate(self.tokens) if token.side == side]

    def top(self, side: str) -> int:
        """How many top tokens a side has."""
        return integer(self.problem.get(f"top_{SIDES[side]}")) or 0

    @property
    def tail(self) -> list[int]:
        """Where the tokens beyond the top ones are in all columns."""
        return [
            place for place, token in enumerate(self.tokens) if token.rank > self.top(token.side)
        ]


def read_theory(document: Mapping[str, Any]) -> Theory:
    """Check what the page cannot do without."""
    check_kind(document, "theory", SCHEMA)
    tokens = read_tokens(mapping(document.get("tokens")))
    runs = listing(document.get("runs"), 'theory: "runs"')
    improvements = listing(document.get("improvements"), 'theory: "improvements"')
    checks = listing(document.get("checks"), 'theory: "checks"')
    return Theory(
        problem=mapping(document.get("problem")),
        tokens=tokens,
        runs=tuple(read_run(run, len(tokens)) for run in runs),
        improvements=tuple(read_improvement(entry, len(tokens)) for entry in improvements),
        checks=tuple(map(read_check, checks)),
        command=text(document.get("command")),
        created=text(document.get("created")),
        seconds=number(document.get("seconds")),
    )


def read_tokens(columns: Mapping[str, Any]) -> tuple[Token, ...]:
    """Side, rank and what is known of each token."""
    sides, ranks = columns.get("side"), columns.get("rank")
    if not isinstance(sides, list) or not sides or not set(sides) <= set(SIDES):
        raise DataError(
            'theory: "tokens" must say of each token whether it is a "user" or an "item"; '
            "run the command that wrote it again"
        )
    what = 'theory: "tokens"'
    if not isinstance(ranks, list) or len(ranks) != len(sides) or not all(map(integer, ranks)):
        raise DataError(f"{what} must have a rank for each; run the command that wrote it again")
    known = (column(columns, name, len(sides), what) for name in ("p", "sigma2", "start"))
    return tuple(Token(*entries) for entries in zip(sides, ranks, *known, strict=True))


def read_run(entry: Mapping[str, Any], tokens: int) -> TheoryRun:
    """One entry of ``runs``."""
    what = f"theory: run of {entry.get('optimizer')}"
    names = ("steps", "bound", "measured", "low", "high")
    return TheoryRun(
        optimizer=str(entry.get("optimizer")),
        label=display_name(str(entry.get("optimizer"))),
        alpha=number(entry.get("alpha")),
        invalid=integer(entry.get("invalid")) or 0,
        **{name: column(entry, name, tokens, what) for name in names},
    )


def read_improvement(entry: Mapping[str, Any], tokens: int) -> Improvement:
    """One entry of ``improvements``."""
    what = f"theory: improvement of {entry.get('optimizer')}"
    names = ("bound", "iterations", "corollary", "measured", "low", "high")
    return Improvement(
        optimizer=str(entry.get("optimizer")),
        label=display_name(str(entry.get("optimizer"))),
        slope=read_slope(mapping(entry.get("slope"))),
        **{name: column(entry, name, tokens, what) for name in names},
    )


def read_slope(entry: Mapping[str, Any]) -> Slope | None:
    """A slope that was measured, with its interval."""
    measured, low, high = (number(entry.get(name)) for name in ("measured", "low", "high"))
    if measured is None or low is None or high is None:
        return None
    return Slope(
        measured,
        low,
        high,
        predicted=number(entry.get("predicted")),
        axis=text(entry.get("axis")) or "rank",
        tokens=integer(entry.get("tokens")),
        begun=integer(entry.get("begun")),
    )


def read_check(entry: Mapping[str, Any]) -> Check:
    """One entry of ``checks``."""
    return Check(
        text(entry.get("statement")) or "",
        entry.get("holds") is True,
        text(entry.get("detail")) or "",
    )
