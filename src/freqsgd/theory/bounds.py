"""Step sizes and bounds of Theorems 1, 2 and 3, with the constants of their proofs.

With S = sum_l p_l sigma_l^2 and S2 = sum_l p_l^2 sigma_l^2, over all tokens:

    SGD       eta   = min(1 / (4 L), alpha / sqrt(T)),       alpha = sqrt(gap / (L S2))
    FA-SGD    eta_k = min(1 / (4 L), alpha / sqrt(T p_k)),   alpha = sqrt(gap / (L S))
    CF-SGD    eta_k with p_k counted,                        alpha = sqrt(M_f / (L S))

and a bound says how large E ||grad f_k||^2 can be at an iterate drawn at random: from all T of
them, for CF-SGD from the second half.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from freqsgd.errors import DataError
from freqsgd.rates import RateLaw, paper_rates
from freqsgd.theory.checks import Array, frequencies, per_token, positive, scipy

__all__ = [
    "cfsgd_alpha",
    "cfsgd_bound",
    "chernoff_misestimation",
    "constant_step_bound",
    "fasgd_alpha",
    "fasgd_bound",
    "fasgd_steps",
    "mended_gap",
    "minimum_iterations",
    "misestimation",
    "paper_misestimation",
    "sgd_alpha",
    "sgd_bound",
    "sgd_steps",
    "token_smoothness",
    "variance_bounds",
]

# Theorem 3's proof. While |p^ - p| <= p / 2, counted rates are within ALPHA_0 of the true ones.
ALPHA_0 = math.sqrt(2.0) - 1.0
ALPHA_1 = 1.0 / (1.0 - math.exp(-1.0))  # the largest p / (1 - exp(-p)) for p in (0, 1]


def sgd_alpha(p: ArrayLike, sigma2: ArrayLike, gap: float, L: float) -> float:
    """Return Theorem 2's ``alpha = sqrt(gap / (L S2))``; infinite where there is no noise."""
    positive(gap=gap, L=L)
    return _ratio_root(gap, L * _noise(p, sigma2, power=2))


def fasgd_alpha(p: ArrayLike, sigma2: ArrayLike, gap: float, L: float) -> float:
    """Return Theorem 1's ``alpha = sqrt(gap / (L S))``; infinite where there is no noise."""
    positive(gap=gap, L=L)
    return _ratio_root(gap, L * _noise(p, sigma2))


def mended_gap(p: ArrayLike, sigma2: ArrayLike, gap: float, L: float) -> float:
    """Return Theorem 3's ``M_f = gap + S / L``: the gap and what counting costs at the start.

    The proof arrives at gap + 2 S / L and loses the 2; alpha may be any number, so the theorem's
    M_f is as good a choice, and :func:`cfsgd_bound` keeps the 2 where the proof needs it.
    """
    positive(gap=gap, L=L)
    return gap + _noise(p, sigma2) / L


def cfsgd_alpha(p: ArrayLike, sigma2: ArrayLike, gap: float, L: float) -> float:
    """Return Theorem 3's ``alpha = sqrt(M_f / (L S))``, which its step size forgets to mention."""
    return _ratio_root(mended_gap(p, sigma2, gap, L), L * _noise(p, sigma2))


def sgd_steps(p: ArrayLike, alpha: float, T: int, L: float) -> Array:
    """Return Theorem 2's step sizes ``min(1 / (4 L), alpha / sqrt(T))``, one for each token."""
    return _steps(p, alpha, T, L, power=0.0)


def fasgd_steps(p: ArrayLike, alpha: float, T: int, L: float) -> Array:
    """Return Theorem 1's step sizes ``min(1 / (4 L), alpha / sqrt(T p_k))``.

    Example:
        >>> fasgd_steps([0.25, 0.01], alpha=1.0, T=10_000, L=0.5)
        array([0.02, 0.1 ])
    """
    return _steps(p, alpha, T, L, power=0.5)


def constant_step_bound(
    steps: ArrayLike, p: ArrayLike, sigma2: ArrayLike, gap: float, L: float, T: int
) -> Array:
    """Return the bound for any constant step sizes up to 1 / (4 L).

    ``2 gap / (T eta_k) + 4 sum_l p_l Lbar_l eta_l^2 sigma_l^2 / eta_k`` with ``Lbar_l = 2 L p_l``:
    where the proofs of Theorems 1 and 2 stand before they turn to O(.).
    """
    positive(gap=gap, L=L, T=T)
    p = frequencies(p)
    eta = per_token("steps", steps, p)
    if not np.all((eta > 0.0) & (eta <= (1.0 + 1e-12) / (4.0 * L))):
        raise DataError(f"step sizes must lie in (0, 1 / (4 L)] = (0, {1.0 / (4.0 * L):g}]")
    noise = float(p * token_smoothness(p, L) * eta**2 @ per_token("sigma2", sigma2, p))
    return (2.0 * gap / T + 4.0 * noise) / eta


def sgd_bound(p: ArrayLike, sigma2: ArrayLike, gap: float, L: float, T: int) -> Array:
    """Return Theorem 2's bound, ``40 L gap / T + 10 sqrt(L S2 gap / T)``, the same for every token.

    By :func:`constant_step_bound` at the theorem's step sizes: 4 sum_l p_l Lbar_l eta^2 sigma_l^2
    is at most 8 L S2 alpha^2 / T = 8 gap / T, so the bound is 10 gap / (T eta), and 1 / eta is at
    most 4 L + sqrt(T) / alpha.
    """
    positive(gap=gap, L=L, T=T)
    noise = _noise(p, sigma2, power=2)
    bound = 40.0 * L * gap / T + 10.0 * math.sqrt(L * noise * gap / T)
    return np.full(np.shape(p), bound)


def fasgd_bound(p: ArrayLike, sigma2: ArrayLike, gap: float, L: float, T: int) -> Array:
    """Return Theorem 1's bound, ``40 L gap / T + 10 sqrt(p_k L S gap / T)``.

    It is smaller for rarer tokens. As :func:`sgd_bound`, with S alpha^2 in place of S2 alpha^2 and
    sqrt(T p_k) for sqrt(T).
    """
    positive(gap=gap, L=L, T=T)
    p = frequencies(p)
    return 40.0 * L * gap / T + 10.0 * np.sqrt(p * L * _noise(p, sigma2) * gap / T)


def cfsgd_bound(
    p: ArrayLike, sigma2: ArrayLike, gap: float, L: float, T: int, gradient_bound: float
) -> Array:
    """Return Theorem 3's bound with its proof's constants (c = 1), ``gradient_bound`` being its G.

    With eta_k as FA-SGD's for the alpha of :func:`cfsgd_alpha`, alpha_0 = sqrt(2) - 1 and
    alpha_1 = 1 / (1 - 1/e):

        A' = 2 S / L                       the first 1 / p_k iterations
        B' = 2 (1 + alpha_0)^2 L S alpha^2 = 4 M_f     while p^ is within p / 2
        C' = 2 alpha_1 S / (e L)           when it is not

        2 / (1 - alpha_0) (2 gap + 4 (A' + B' + C')) / (T eta_k) + exp(-T p_k / 2) G^2

    The proof takes rates up to 1 / L here and a concentration bound that does not hold. With the
    1 / (4 L) of the statement both are mended at once: A' and C' are then 16 times too large,
    which more than pays for Chernoff's exp(-t p / 8); and the last term only needs
    p^ <= p / (1 - alpha_0)^2, which fails with probability below exp(-t p) from t = 1 / (2 p) on.

    Raises:
        DataError: if T is below the largest 1 / p_l
    """
    positive(gradient_bound=gradient_bound)
    mended = mended_gap(p, sigma2, gap, L)
    p = frequencies(p)
    least = float(1.0 / p.min())
    if least > T:
        raise DataError(
            "Theorem 3 asks for T >= 1 / p of the rarest token: "
            f"{math.ceil(least)} iterations, got {T}"
        )
    noise = _noise(p, sigma2) / L
    first, within, outside = (
        2.0 * noise,
        2.0 * (1.0 + ALPHA_0) ** 2 * mended,
        2.0 * ALPHA_1 * math.exp(-1.0) * noise,
    )
    total = 2.0 * gap + 4.0 * (first + within + outside)
    steps = fasgd_steps(p, cfsgd_alpha(p, sigma2, gap, L), T, L)
    unlucky = np.exp(-T * p / 2.0) * gradient_bound**2
    return 2.0 / (1.0 - ALPHA_0) * total / (T * steps) + unlucky


def minimum_iterations(
    p: ArrayLike, sigma2: ArrayLike, gap: float, L: float, gradient_bound: float
) -> Array:
    """Return the T that Theorem 3 asks for, token by token.

    At least ``max_l 1 / p_l`` (the paper prints min_l), and so large that the unlucky part of
    :func:`cfsgd_bound` no longer counts, now and for every larger T:

        exp(-T p_k / 2) G^2 <= M_f / (T eta_k)

    The paper solves this by T = (2 log G - log(M_f (1 / (2 L) + alpha / sqrt(p_k)))) / p_k. That
    has half the factor 2 / p_k, the wrong sign before the log of the step size, and no T in it.
    """
    positive(gradient_bound=gradient_bound)
    mended = mended_gap(p, sigma2, gap, L)
    alpha = cfsgd_alpha(p, sigma2, gap, L)
    p = frequencies(p)
    offset = 2.0 * math.log(gradient_bound) - math.log(mended)
    needed = np.full(p.shape, 1e30)
    # From above, so that what is returned is enough even where it has not settled to the digit.
    for _ in range(200):
        progress = np.minimum(needed / (4.0 * L), alpha * np.sqrt(needed / p))  # T eta_k
        needed = np.maximum(2.0 / p * (offset + np.log(progress)), 1.0 / p.min())
    enough: Array = np.ceil(needed)
    return enough


def variance_bounds(
    p: ArrayLike, gradient_norms2: ArrayLike, sigma2: ArrayLike
) -> tuple[float, float]:
    """Return Proposition 1's bounds of the variance of the stochastic gradient.

    ``sum_k (1 / p_k - 1) ||grad f_k||^2``, and ``S`` more. The two are equal without noise; the
    second is the variance itself if sigma2 are the conditional variances at this point.
    """
    p = frequencies(p)
    low = float((1.0 / p - 1.0) @ per_token("gradient_norms2", gradient_norms2, p))
    return low, low + _noise(p, sigma2)


def token_smoothness(p: ArrayLike, L: float) -> Array:
    """Return how smooth f is in one row: ``Lbar_k = 2 L p_k`` (the smoothness proposition)."""
    positive(L=L)
    return 2.0 * L * frequencies(p)


def _noise(p: ArrayLike, sigma2: ArrayLike, power: int = 1) -> float:
    """Return S, or S2 for power 2."""
    p = frequencies(p)
    return float(p**power @ per_token("sigma2", sigma2, p))


def _ratio_root(above: float, below: float) -> float:
    return math.sqrt(above / below) if below else math.inf


def _steps(p: ArrayLike, alpha: float, T: int, L: float, power: float) -> Array:
    p = frequencies(p)
    if alpha == math.inf:  # no noise: nothing asks for smaller steps
        positive(L=L)
        return np.full(p.shape, 1.0 / (4.0 * L))
    positive(alpha=alpha, T=T, L=L)
    lr, max_lr = paper_rates(alpha, T, L)
    steps: Array = RateLaw(lr, power=power, max_lr=max_lr).rate(p)
    return steps


# How far the counted frequency of a token is from the true one.
#
# CF-SGD takes p^ = c / t for p. Theorem 3's proof asks how likely it is wrong by half:
#
#     P(|p^ - p| >= p / 2)                                                    (ineq. "prob_ub")


def misestimation(p: ArrayLike, t: ArrayLike) -> Array:
    """Return the probability itself: c is binomial, t draws of probability p.

    Args:
        p: frequencies of tokens
        t: number of samples seen: one number, or one for each token
    """
    special = scipy("special")
    p, samples = _p_and_samples(p, t)
    expected, draws = p * samples, samples.astype(np.int64)
    # Half a count is often a whole number that rounding would miss.
    low = np.floor(0.5 * expected + 1e-9)
    high = np.ceil(1.5 * expected - 1e-9)
    too_many: Array = special.bdtrc(np.minimum(high - 1.0, samples), draws, p)
    return np.asarray(special.bdtr(low, draws, p) + too_many)


def paper_misestimation(p: ArrayLike, t: ArrayLike) -> Array:
    """Return what the paper bounds it by: ``exp(-t p)``. It is not a bound: see docs/theory.md."""
    p, samples = _p_and_samples(p, t)
    return np.exp(-p * samples)


def chernoff_misestimation(p: ArrayLike, t: ArrayLike) -> Array:
    """Return Chernoff's bound, which holds: ``2 exp(-t p / 12)``."""
    p, samples = _p_and_samples(p, t)
    return 2.0 * np.exp(-p * samples / 12.0)


def _p_and_samples(p: ArrayLike, t: ArrayLike) -> tuple[Array, Array]:
    p = frequencies(p)
    samples = np.asarray(t, np.float64)
    if np.any(samples < 1) or np.any(samples != np.floor(samples)):
        raise DataError("t must be whole numbers >= 1: the samples seen so far")
    return p, samples
