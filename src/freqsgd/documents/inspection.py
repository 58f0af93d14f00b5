"""``inspect.json``, which ``freqsgd inspect`` writes (docs/inspect.md)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

FEW_TIMES = 10  # the frequency of a token that was seen less often is hardly known


class InspectedData(Struct, frozen=True):
    """The data that was counted."""

    name: str
    rows: int  # of text: words that are not rare
    fields: int
    tokens: int
    min_count: int
    numeric_rule: str | None = None  # None where no column holds numbers


class TokenPromise(Struct, frozen=True):
    """The bound of SGD over that of FA-SGD for one token."""

    rank: int  # 1 is the most frequent token
    count: int
    p: float  # occurrences per sample; of a bag's token it may exceed 1
    error: float  # the ratio of the bounds after equally many iterations
    iterations: float  # the ratio of the iterations to equal bounds: error squared

    @property
    def is_known(self) -> bool:
        """Whether the token was seen often enough for its frequency to be known."""
        return self.count >= FEW_TIMES


class Promise(Struct, frozen=True):
    """The tokens that half, and nine tenths, of the tokens are more frequent than."""

    median: TokenPromise
    p90: TokenPromise


class TailFit(Struct, frozen=True):
    """The tail of a field's tokens.

    Everything after ``tokens`` is None if there is no fit.

    Attributes:
        family: "exponential" or "polynomial"; None if there is no fit or the test cannot tell
        reason: why there is no family, else None
        tokens: number of tokens, of which the tail holds ``tokens - from_rank + 1``
        from_rank: the tail's first rank, counted from 1
        samples: occurrences of the tail's tokens, of which one half was fitted
        nu: steepness of the polynomial tail
        tau: steepness of the exponential tail
        first_count: by family, the count that the fit expects at ``from_rank``
        log_likelihoods: by family
        distances: by family, Kolmogorov and Smirnov's
        statistic: Vuong's; above 0 the polynomial tail is nearer
        p_value: two-sided
    """

    family: str | None = None
    reason: str | None = None
    tokens: int = 0
    from_rank: int | None = None
    samples: int | None = None
    nu: float | None = None
    tau: float | None = None
    first_count: dict[str, float] | None = None
    log_likelihoods: dict[str, float] | None = None
    distances: dict[str, float] | None = None
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

    applies: bool
    reason: str | None = None
    top: int | None = None  # number of top tokens


class InspectedField(Struct, frozen=True):
    """The tokens of a column."""

    name: str
    tokens: int
    samples: int  # rows that hold a token of it
    occurrences: int
    top_1: float  # share of the occurrences that the most frequent 1% of the tokens have
    top_10: float
    singletons: int
    effective_tokens: float
    most_frequent: tuple[tuple[str, int], ...]
    fit: TailFit
    corollary: FieldCorollary
    ranks: Annotated[tuple[tuple[int, int], ...], Meta(min_length=1)]  # rank and count
    promise: Promise


class TailSamples(Struct, frozen=True):
    """The share of the sampled rows that hold a rare token."""

    share: float  # with a token of a tail
    seen_below_10: float
    of: int  # rows; less than all of them if there are very many


class SuggestedRates(Struct, frozen=True):
    """A range of learning rates for CF-SGD."""

    low: float
    high: float
    rule: str
    advice: str


class Inspection(Struct, frozen=True, kw_only=True):
    """How frequent tokens are, and what that promises."""

    schema: int
    kind: str
    command: str = ""
    created: str
    dataset: InspectedData
    dim: int
    fields: Annotated[tuple[InspectedField, ...], Meta(min_length=1)]
    promise: Promise
    tail_samples: TailSamples
    memory: dict[str, int]
    lr: SuggestedRates | None = None
    lr_reason: str | None = None
    notes: tuple[str, ...]

    @property
    def is_text(self) -> bool:
        """Whether the tokens are words: for these alone no rates are suggested."""
        return self.lr is None

    @property
    def overall(self) -> Promise | None:
        """The promise over all fields; None where each has a single token."""
        return self.promise if any(field.tokens > 1 for field in self.fields) else None

    @property
    def seldom_share(self) -> float | None:
        """The share of samples with a token seen less than FEW_TIMES times, if there are any."""
        merged = self.dataset.min_count >= FEW_TIMES
        return None if merged else self.tail_samples.seen_below_10
