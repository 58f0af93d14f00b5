"""Improvements over SGD: of the error after equal iterations, and of the iterations to equal error.

Dividing the slow terms of Theorem 1's bound by those of Theorem 2's gives the ratio

    gamma_k = sqrt(p_k S / S2)      S = sum_l p_l sigma_l^2,  S2 = sum_l p_l^2 sigma_l^2

of the two errors E ||grad f_k||^2 after equally many iterations. Errors fall as 1 / sqrt(T), so
the iterations to an equal error have its square as their ratio. A ratio below 1 favours FA-SGD;
an improvement is 1 / ratio. The paper's gamma_f, for equal sigma, is sqrt(p_k / sum_l p_l^2): it
drops S / sigma^2 = 2, the sum of p over users and items, and is too small by sqrt(2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freqsgd.documents.inspection import Promise, TokenPromise
from freqsgd.theory.checks import Array, frequencies, per_token, positive
from freqsgd.theory.distributions import top_tokens

__all__ = [
    "Corollary",
    "Promise",
    "TokenPromise",
    "corollary",
    "counting_condition",
    "counting_factor",
    "error_improvement",
    "error_ratio",
    "field_improvements",
    "iterations_improvement",
    "iterations_ratio",
    "promises",
]

EXPONENTIAL = 2.0 / (1.0 - math.exp(-1.0))  # the constants C of the two corollaries
POLYNOMIAL = 16.0


def error_ratio(p: ArrayLike, sigma2: ArrayLike | None = None) -> Array:
    """Return FA-SGD's error over SGD's after equally many iterations: ``sqrt(p_k S / S2)``.

    Args:
        p: frequencies of all tokens of all fields
        sigma2: their variances; None takes them to be equal

    Example:
        >>> error_ratio([0.5, 0.5, 0.5, 0.5])
        array([1., 1., 1., 1.])
    """
    return np.sqrt(iterations_ratio(p, sigma2))


def iterations_ratio(p: ArrayLike, sigma2: ArrayLike | None = None) -> Array:
    """Return FA-SGD's iterations over SGD's to an equal error: ``p_k S / S2`` (corollaries)."""
    p = frequencies(p)
    weights = p * per_token("sigma2", 1.0 if sigma2 is None else sigma2, p)
    if not weights.any():
        return np.ones(p.shape)  # no noise: both have the one bound 40 L gap / T
    ratio: Array = p * (weights.sum() / float(p @ weights))
    return ratio


def error_improvement(p: ArrayLike, sigma2: ArrayLike | None = None) -> Array:
    """Return how many times smaller FA-SGD's error is than SGD's after equally many iterations."""
    return 1.0 / error_ratio(p, sigma2)


def iterations_improvement(p: ArrayLike, sigma2: ArrayLike | None = None) -> Array:
    """Return how many times fewer iterations FA-SGD needs than SGD to an equal error."""
    return 1.0 / iterations_ratio(p, sigma2)


def counting_factor(p: ArrayLike, sigma2: ArrayLike, gap: float, L: float) -> float:
    """Return what counting costs: CF-SGD's error ratio is FA-SGD's times ``1 + sqrt(S / (L gap))``.

    The paper's gamma_c, for equal sigma, has sigma / sqrt(L gap) there and drops the sqrt(2).
    """
    positive(gap=gap, L=L)
    p = frequencies(p)
    return 1.0 + math.sqrt(float(p @ per_token("sigma2", sigma2, p)) / (L * gap))


def counting_condition(sigma2: ArrayLike, gap: float, L: float) -> bool:
    """Check the condition of CF-SGD's corollaries, ``sigma / sqrt(L gap) <= 1``, of all tokens."""
    positive(gap=gap, L=L)
    return bool(np.max(sigma2) <= L * gap)


@dataclass(frozen=True)
class Corollary:
    """The claim of Corollary 1, 2 or 3 about a side whose tokens follow one of ``TAILS``.

    Attributes:
        applies: whether its conditions hold; the other side needs as many tokens and this rate
        reason: why not, else None
        top: |U_T|, the number of top tokens
    """

    tail: str
    rate: float
    applies: bool
    reason: str | None
    top: int

    def iterations_improvement(self, rank: ArrayLike) -> Array:
        """Return the guaranteed factor by which FA-SGD needs fewer iterations at a rank (1 = top).

        Exponential tail: ``exp(tau (n - 1)) / C`` with C = 2 / (1 - 1/e); polynomial: ``n^nu /
        16``; uniform: 1. The paper has exp(tau n) / C, which is not true for tau above 0.77: its
        frequencies are normalised from n = 0 on.
        """
        n = np.asarray(rank, np.float64)
        if self.tail == "exponential":
            return np.exp(self.rate * (n - 1.0)) / EXPONENTIAL
        if self.tail == "polynomial":
            return np.power(n, self.rate) / POLYNOMIAL
        return np.ones(n.shape)


def corollary(tail: str, tokens: int, rate: float) -> Corollary:
    """Return the corollary about a tail, with the conditions that it makes.

    Exponential: |U| >= 1 / tau. Polynomial: nu >= 2 and |U| >= 16^(1/nu).

    Example:
        >>> corollary("polynomial", 3_000, rate=1.2).reason
        'nu = 1.2 is below 2'
    """
    top = top_tokens(tail, tokens, rate)
    reason = None
    if tail == "exponential" and tokens * rate < 1.0 - 1e-12:
        reason = f"|U| = {tokens} is below 1 / tau = {1.0 / rate:.4g}"
    elif tail == "polynomial" and rate < 2.0:
        reason = f"nu = {rate:.4g} is below 2"
    elif tail == "polynomial" and tokens < 16.0 ** (1.0 / rate) * (1.0 - 1e-12):
        reason = f"|U| = {tokens} is below 16^(1/nu) = {16.0 ** (1.0 / rate):.4g}"
    return Corollary(tail, rate, reason is None, reason, top)


def field_improvements(counts: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float64]]:
    """Return SGD's bound over FA-SGD's, at equal T, for every token of every field.

    The bounds of Theorems 1 (FA-SGD) and 2 (SGD) are sums over the tokens of all fields. With
    p_k = occurrences of token k per sample, as the rate law has it, and equal sigma_k they leave,
    for large T,

        SGD / FA-SGD = sqrt(sum_l p_l^2 / (p_k sum_l p_l))

    which is below 1 for tokens that are more frequent than an average occurrence's. It does not
    depend on p's scale, so that counts will do, also of bags, where p may exceed 1.

    A field whose samples all have the same token is a bias and no choice between tokens: it is
    left out of the sums, unless all fields are such.

    Args:
        counts: of the tokens of each field; tokens that never occur have an improvement of 1

    Example:
        >>> [improvement.round(1).tolist() for improvement in field_improvements([[90, 10], [100]])]
        [[1.0, 2.9], [0.9]]
    """
    fields = [np.asarray(field, np.float64) for field in counts]
    several = [field for field in fields if np.count_nonzero(field) > 1] or fields
    occurrences = sum(float(field.sum()) for field in several)
    average = sum(float(field @ field) for field in several) / (occurrences or 1.0) or 1.0
    return [np.sqrt(average / np.where(field > 0.0, field, average)) for field in fields]


def promises(counts: Sequence[NDArray[np.int64]], samples: int) -> tuple[list[Promise], Promise]:
    """Return what is promised to the tokens of each field, and to those of all fields together.

    Args:
        counts: of the tokens of each field, falling
        samples: in which they were counted
    """

    def promise(counts: NDArray[np.int64], errors: Array) -> Promise:
        def at(place: int) -> TokenPromise:
            count, error = int(counts[place]), float(errors[place])
            return TokenPromise(place + 1, count, count / samples, error, error**2)

        return Promise(at(len(counts) // 2), at(9 * len(counts) // 10))

    errors = field_improvements(counts)
    whole = np.concatenate(counts)
    order = np.argsort(-whole, kind="stable")
    of_fields = [promise(*field) for field in zip(counts, errors, strict=True)]
    return of_fields, promise(whole[order], np.concatenate(errors)[order])
