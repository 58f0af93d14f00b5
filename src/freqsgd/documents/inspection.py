"""``inspect.json``, which ``freqsgd inspect`` writes (docs/inspect.md)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

FEW_TIMES = 10  # a token seen less often: how frequent it is is hardly known


class InspectedData(Struct, frozen=True):
    """What was looked at."""

    name: str | None = None
    rows: float | None = None
    fields: int | None = None
    tokens: int | None = None
    min_count: int | None = None
    numeric_rule: str | None = None


class Promise(Struct, frozen=True):
    """What the bounds say of one token: SGD's over that of FA-SGD."""

    count: float
    error: float
    iterations: float
    rank: int | None = None
    p: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether the token was seen often enough to say."""
        return self.count >= FEW_TIMES


class Fit(Struct, frozen=True):
    """The tails that fit a field's counts best, from a rank on."""

    family: str | None = None  # the nearer one; None if there is no fit or the test cannot tell
    reason: str | None = None  # why there is none
    tokens: int | None = None
    from_rank: int | None = None
    samples: float | None = None  # occurrences of the tokens from that rank on
    nu: float | None = None
    tau: float | None = None
    first_count: dict[str, float] = {}  # at from_rank, by family
    log_likelihoods: dict[str, float] = {}
    distances: dict[str, float] = {}
    statistic: float | None = None
    p_value: float | None = None

    def rate_of(self, family: str | None) -> float | None:
        """Return the rate of a family."""
        return {"exponential": self.tau, "polynomial": self.nu}.get(family or "")

    @property
    def rate(self) -> float | None:
        """That of the nearer family."""
        return self.rate_of(self.family)


class FieldCorollary(Struct, frozen=True):
    """Whether the paper's corollary for the nearer family applies."""

    applies: bool = False
    reason: str | None = None  # why not
    top: int | None = None


class Field(Struct, frozen=True):
    """The tokens of a column."""

    tokens: int
    occurrences: float
    ranks: Annotated[tuple[tuple[int, float], ...], Meta(min_length=1)]
    name: str = ""
    samples: int | None = None
    top_1: float | None = None
    top_10: float | None = None
    singletons: float | None = None
    effective_tokens: float | None = None
    most_frequent: tuple[tuple[str, float], ...] = ()
    fit: Fit = Fit()
    corollary: FieldCorollary = FieldCorollary()
    promise: dict[str, Promise] = {}  # "median": half the tokens are more frequent; "p90": 90%


class TailSamples(Struct, frozen=True):
    """How many of the samples that were looked at hold a rare token."""

    share: float | None = None
    seen_below_10: float | None = None
    of: float | None = None


class SuggestedRates(Struct, frozen=True):
    """Where to look for CF-SGD's learning rate."""

    low: float | None = None
    high: float | None = None
    rule: str | None = None
    advice: str | None = None


class Inspection(Struct, frozen=True):
    """How frequent tokens are, and what that promises."""

    schema: int
    kind: str
    fields: Annotated[tuple[Field, ...], Meta(min_length=1)]
    dataset: InspectedData = InspectedData()
    dim: int | None = None
    promise: dict[str, Promise] = {}
    tail_samples: TailSamples = TailSamples()
    memory: dict[str, float] = {}
    lr: SuggestedRates | None = None
    lr_reason: str | None = None
    notes: tuple[str, ...] = ()
    command: str | None = None
    created: str | None = None
