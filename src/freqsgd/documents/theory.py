"""``theory.json``, which ``freqsgd theory`` writes (docs/theory.md): a number per token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

Numbers = tuple[float | None, ...]  # one per token


class Problem(Struct, frozen=True):
    """What was simulated."""

    tail: str | None = None
    rate: float | None = None
    users: int | None = None
    items: int | None = None
    dim: int | None = None
    radius: float | None = None
    iterations: int | None = None
    repetitions: int | None = None
    output: str | None = None
    seed: int | None = None
    smoothness: float | None = None
    gap: float | None = None
    gradient_bound: float | None = None
    minimum_iterations: int | None = None
    top_users: int = 0
    top_items: int = 0
    corollary: ProblemCorollary | None = None


class ProblemCorollary(Struct, frozen=True):
    """Whether the corollary applies to all of it."""

    applies: bool = False
    reason: str | None = None


class Tokens(Struct, frozen=True):
    """Users and items; rank 1 is the most frequent of its side."""

    side: Annotated[tuple[Literal["user", "item"], ...], Meta(min_length=1)]
    rank: tuple[Annotated[int, Meta(ge=1)], ...]
    p: Numbers = ()
    sigma2: Numbers = ()
    start: Numbers = ()  # squared gradients before the first iteration


class TheoryRun(Struct, frozen=True):
    """One optimizer: what it may at most have left of each token's gradient, and what it has."""

    optimizer: str
    alpha: float | None = None
    steps: Numbers = ()
    bound: Numbers = ()
    measured: Numbers = ()
    low: Numbers = ()
    high: Numbers = ()
    invalid: int = 0  # repetitions that left the ball
    mean_loss_gap: float | None = None


class Slope(Struct, frozen=True):
    """How fast the logarithm of an improvement grows along the tail."""

    measured: float
    low: float
    high: float
    predicted: float | None = None
    axis: str = "rank"  # or "log rank"
    tokens: int | None = None
    begun: int | None = None  # of these, how many SGD has begun to learn


class Improvement(Struct, frozen=True):
    """SGD's error over that of another optimizer."""

    optimizer: str
    bound: Numbers = ()
    iterations: Numbers = ()  # by the bounds: SGD's iterations to an equal error over its
    corollary: Numbers = ()  # of these, what the corollary guarantees
    measured: Numbers = ()
    low: Numbers = ()
    high: Numbers = ()
    slope: Slope | None = None


class Check(Struct, frozen=True):
    """A statement of the paper, and whether it came out."""

    statement: str = ""
    holds: bool = False
    detail: str = ""


class Theory(Struct, frozen=True):
    """Bounds and measurements of a simulation."""

    schema: int
    kind: str
    tokens: Tokens
    runs: tuple[TheoryRun, ...]
    improvements: tuple[Improvement, ...]
    checks: tuple[Check, ...]
    problem: Problem = Problem()
    command: str | None = None
    created: str | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Refuse columns that do not have a number per token; fill those that are missing."""
        count = len(self.tokens.side)
        if len(self.tokens.rank) != count:
            raise ValueError(f'"tokens" must have a rank for each of {count} tokens')
        _fill(self.tokens, ("p", "sigma2", "start"), count, "tokens")
        every = ("bound", "measured", "low", "high")
        for run in self.runs:
            _fill(run, ("steps", *every), count, f"run of {run.optimizer}")
        for entry in self.improvements:
            what = f"improvement of {entry.optimizer}"
            _fill(entry, ("iterations", "corollary", *every), count, what)


def _fill(entry: Any, columns: Sequence[str], count: int, what: str) -> None:
    for name in columns:
        length = len(getattr(entry, name))
        if length not in (0, count):
            raise ValueError(f'{what}: "{name}" must have a number for each of {count} tokens')
        if not length:
            force_setattr(entry, name, (None,) * count)
