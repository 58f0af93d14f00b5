"""The two shapes of a tail, as distributions over the ranks first..last.

Both are exponential families with one parameter, the tail's rate:

    p_n = exp(-rate (t(n) - t(first))) / mass        t(n) = n      exponential, rate = tau
                                                     t(n) = log n  polynomial,  rate = nu

and the mass is the sum of the numerators, so that p sums to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from freqsgd.theory.checks import Array, scipy

__all__ = ["FAMILIES", "Family"]

HEAD = 1000  # ranks that are added up one by one; from there on an integral is exact to rounding


@dataclass(frozen=True)
class Family:
    """A shape of tail."""

    name: str
    position: Callable[[Array], Array]  # t(n)
    rank: Callable[[Array], Array]  # the n of a t(n)
    masses: Callable[[int, Array, float], Array]  # first, array of last ranks, rate

    def likeliest_rate(self, mean: float, first: int, last: int) -> float:
        """The rate under which samples of ranks first..last are likeliest.

        Args:
            mean: of t(n) - t(first) over the samples, more than 0
            first: the tail's first rank
            last: its last rank
        """
        minimize = scipy("optimize").minimize_scalar
        ends = np.array([last], np.float64)

        def cost(log_rate: float) -> float:  # of a sample: minus its log likelihood
            rate = math.exp(log_rate)
            return rate * mean + math.log(self.masses(first, ends, rate)[0])

        start, second, end = self.position(np.array([first, first + 1, last], np.float64))
        # Flatter than the first bound is uniform; beyond the second, first takes every sample.
        bounds = (math.log(1e-8 / (end - start)), math.log(100.0 / (second - start)))
        best = minimize(cost, bounds=bounds, method="bounded", options={"xatol": 1e-9})
        return math.exp(best.x)


def _exponential_masses(first: int, last: Array, rate: float) -> Array:
    masses: Array = np.expm1(-rate * (last - first + 1.0)) / math.expm1(-rate)
    return masses


def _polynomial_masses(first: int, last: Array, rate: float) -> Array:
    """The sums of (n / first) ** -rate: term by term, then by Euler and Maclaurin's formula."""
    head = np.arange(first, first + HEAD, dtype=np.float64)
    sums = np.cumsum((head / first) ** -rate)
    start = float(head[-1])
    end = np.maximum(last, start)
    at_start, at_end = (start / first) ** -rate, (end / first) ** -rate
    stretch = np.log(end / start)
    integral = start * at_start * _expm1_over((1.0 - rate) * stretch) * stretch
    slopes = rate * (at_start / start - at_end / end)  # f'(end) - f'(start)
    beyond: Array = integral + (at_end - at_start) / 2.0 + slopes / 12.0
    within = sums[np.minimum(last - first, HEAD - 1).astype(np.int64)]
    return within + beyond


def _expm1_over(x: Array) -> Array:
    """(exp(x) - 1) / x, also where x is 0."""
    safe = np.where(x == 0.0, 1.0, x)
    return np.where(x == 0.0, 1.0, np.expm1(safe) / safe)


FAMILIES = {
    "exponential": Family("exponential", np.asarray, np.asarray, _exponential_masses),
    "polynomial": Family("polynomial", np.log, np.exp, _polynomial_masses),
}
