"""``theory.json``, which ``freqsgd theory`` writes (docs/theory.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

Numbers = tuple[float, ...]  # one per token, users first


class SimulatedProblem(Struct, frozen=True, kw_only=True):
    """The settings of a simulation, and what follows from them."""

    tail: str
    rate: float | None = None
    users: int
    items: int
    dim: int
    radius: float
    iterations: int
    repetitions: int
    output: str
    seed: int
    smoothness: float
    gap: float
    gradient_bound: float
    minimum_iterations: int
    top_users: int
    top_items: int
    corollary: ProblemCorollary


class ProblemCorollary(Struct, frozen=True):
    """Whether the paper's corollary applies to the problem."""

    applies: bool
    reason: str | None = None


class Tokens(Struct, frozen=True):
    """Users and items; rank 1 is the most frequent of its side."""

    side: Annotated[tuple[Literal["user", "item"], ...], Meta(min_length=1)]
    rank: tuple[Annotated[int, Meta(ge=1)], ...]
    p: Numbers
    sigma2: Numbers
    start: Numbers  # squared gradients before the first iteration


class TheoryRun(Struct, frozen=True, kw_only=True):
    """The squared gradient of each token under one optimizer, and its bound."""

    optimizer: str
    alpha: float
    steps: Numbers
    bound: Numbers | None = None
    measured: Numbers
    low: Numbers
    high: Numbers
    invalid: int  # repetitions that left the ball
    mean_loss_gap: float


class Slope(Struct, frozen=True):
    """The growth of an improvement's logarithm along the tail."""

    measured: float
    low: float
    high: float
    predicted: float
    axis: Literal["rank", "log rank"]
    tokens: int
    begun: int  # of these, how many SGD has begun to learn


class Improvement(Struct, frozen=True, kw_only=True):
    """SGD's error over that of another optimizer."""

    optimizer: str
    measured: Numbers
    low: Numbers
    high: Numbers
    bound: Numbers | None = None  # the ratio of the bounds
    iterations: Numbers | None = None  # its square: SGD's iterations to an equal error over its own
    corollary: Numbers | None = None  # the factor of iterations that the corollary guarantees
    slope: Slope | None = None


class Check(Struct, frozen=True):
    """A statement of the paper, and whether it holds in the simulation."""

    statement: str
    holds: bool
    detail: str


class Theory(Struct, frozen=True, kw_only=True):
    """Bounds and measurements of a simulation."""

    schema: int
    kind: str
    command: str | None = None
    created: str
    seconds: float
    problem: SimulatedProblem
    tokens: Tokens
    runs: tuple[TheoryRun, ...]
    improvements: tuple[Improvement, ...]
    checks: tuple[Check, ...]

    def __post_init__(self) -> None:
        """Refuse columns that do not have a number for each token."""
        count = len(self.tokens.side)
        for entry, what in self._entries():
            for name in entry.__struct_fields__:
                column = getattr(entry, name)
                if isinstance(column, tuple) and len(column) != count:
                    raise ValueError(
                        f'{what}: "{name}" must have a number for each of {count} tokens'
                    )

    def _entries(self) -> Iterator[tuple[Struct, str]]:
        yield self.tokens, "tokens"
        yield from ((run, f"run of {run.optimizer}") for run in self.runs)
        yield from ((each, f"improvement of {each.optimizer}") for each in self.improvements)
