"""The paper's token distributions, most frequent token first, and their top tokens.

Frequencies are normalised by summing over n = 1..tokens. (The paper's exponential normaliser sums
from n = 0, which leaves a total of exp(-tau).)
"""

from __future__ import annotations

import math

import numpy as np

from freqsgd.errors import DataError
from freqsgd.theory.checks import Array, positive

__all__ = ["TAILS", "exponential", "polynomial", "token_distribution", "top_tokens", "uniform"]

TAILS = ("uniform", "exponential", "polynomial")
"""The kinds of distribution that the paper's corollaries are about."""
SMALLEST = 1e-300  # frequencies below it would lose their digits


def uniform(tokens: int) -> Array:
    """Return equal frequencies of all tokens (Corollary 1).

    Example:
        >>> uniform(4).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    _check_tokens(tokens)
    return np.full(tokens, 1.0 / tokens)


def exponential(tokens: int, tau: float) -> Array:
    """Return ``p_n ~ exp(-tau n)`` for n = 1..tokens (Corollary 2, exponential tail)."""
    _check_tokens(tokens)
    positive(tau=tau)
    return _normalised(-tau * np.arange(tokens, dtype=np.float64), f"tau = {tau:g}")


def polynomial(tokens: int, nu: float) -> Array:
    """Return ``p_n ~ n ** -nu`` for n = 1..tokens (Corollary 3, polynomial tail).

    Example:
        >>> polynomial(3, nu=1.0) * 11
        array([6., 3., 2.])
    """
    _check_tokens(tokens)
    positive(nu=nu)
    return _normalised(-nu * np.log(np.arange(1, tokens + 1)), f"nu = {nu:g}")


def token_distribution(tail: str, tokens: int, rate: float) -> Array:
    """Return the distribution named ``tail``; ``rate`` is its tau or nu (uniform has none)."""
    check_tail(tail)
    if tail == "uniform":
        return uniform(tokens)
    return exponential(tokens, rate) if tail == "exponential" else polynomial(tokens, rate)


def top_tokens(tail: str, tokens: int, rate: float) -> int:
    """Return the size of U_T, the tokens for which the paper promises SGD's own rate.

    Exponential: n <= 1 / tau, none if tau > 1. Polynomial: n ** -nu >= 1/16. Uniform: all.

    Example:
        >>> top_tokens("exponential", 100, rate=0.1), top_tokens("polynomial", 100, rate=2.0)
        (10, 4)
    """
    check_tail(tail)
    _check_tokens(tokens)
    if tail == "uniform":
        return tokens
    positive(rate=rate)
    last = 1.0 / rate if tail == "exponential" else 16.0 ** min(1.0 / rate, 200.0)
    return math.floor(min(tokens, last * (1.0 + 1e-12)))  # 1 / (1 / 49) is below 49


def check_tail(tail: str) -> None:
    """Refuse a name that is not in ``TAILS``."""
    if tail not in TAILS:
        raise DataError(f"tail must be one of {', '.join(TAILS)}, got {tail!r}")


def _check_tokens(tokens: int) -> None:
    if tokens != int(tokens) or tokens < 1:
        raise DataError(f"tokens must be an integer >= 1, got {tokens}")


def _normalised(logarithms: Array, rate: str) -> Array:
    p = np.exp(logarithms)
    p /= p.sum()
    if p[-1] < SMALLEST:
        raise DataError(
            f"{rate} is too large for {p.size} tokens: the rarest would never be drawn "
            f"(frequency below {SMALLEST:g}); take fewer tokens or a smaller rate"
        )
    return p
