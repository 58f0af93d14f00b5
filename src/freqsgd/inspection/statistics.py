"""How unequally often the tokens of a field occur."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.theory.improvement import corollary
from freqsgd.theory.tails import TailFit, fit_tail

if TYPE_CHECKING:
    from freqsgd.inspection.counting import CountedField

__all__ = ["effective_tokens", "field_statistics", "rank_frequencies", "top_share"]

_MOST_RANKS = 300


def field_statistics(field: CountedField) -> dict[str, Any]:
    """What ``inspect.json`` says of a field, without its promise."""
    counts = field.ranked.counts
    fit = fit_tail(counts)
    return {
        "name": field.name,
        "tokens": len(counts),
        "samples": field.samples,
        "occurrences": int(counts.sum()),
        "top_1": top_share(counts, 1),
        "top_10": top_share(counts, 10),
        "singletons": int(np.count_nonzero(counts == 1)),
        "effective_tokens": effective_tokens(counts),
        "most_frequent": [list(pair) for pair in field.ranked.most_frequent],
        "fit": fit.as_json(),
        "corollary": _corollary(fit, len(counts)),
        "ranks": rank_frequencies(counts),
    }


def top_share(counts: NDArray[np.int64], percent: int) -> float:
    """The share of all occurrences that the most frequent tokens have: so many percent of them.

    Their number is rounded up: the top 1% of 5 tokens is one token.
    """
    tokens = -(-percent * len(counts) // 100)
    return float(counts[:tokens].sum() / counts.sum())


def effective_tokens(counts: NDArray[np.int64]) -> float:
    """How many equally frequent tokens would be as likely to meet twice: 1 / sum_k share_k^2."""
    shares = counts / counts.sum()
    return float(1 / np.square(shares).sum())


def rank_frequencies(counts: NDArray[np.int64]) -> list[list[int]]:
    """Rank and count of the first token, the last one, and some between, evenly on a log scale."""
    ranks = np.unique(np.geomspace(1, len(counts), min(len(counts), _MOST_RANKS)).round())
    return [[int(rank), int(counts[int(rank) - 1])] for rank in ranks]


def _corollary(fit: TailFit, tokens: int) -> dict[str, Any]:
    """Whether the paper's corollary for the fitted tail applies, and if not, why."""
    rate = fit.tau if fit.family == "exponential" else fit.nu
    if fit.family is None or rate is None:
        return {"applies": False, "reason": fit.reason, "top": None}
    found = corollary(fit.family, tokens, rate)
    return {"applies": found.applies, "reason": found.reason, "top": found.top}
