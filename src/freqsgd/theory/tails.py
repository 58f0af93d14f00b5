"""Fit the tail of counted tokens: exponential or polynomial, how steep, and from which rank on.

One half of the occurrences ranks the tokens, each one of the other half is a sample of its token's
rank (:class:`SplitCounts`). From a rank first on, the likeliest exponential tail
(``p_n ~ exp(-tau n)``) and the likeliest polynomial one (``p_n ~ n ** -nu``) are fitted to these
samples. The error of a fit is the Kolmogorov-Smirnov distance, the largest difference between the
shares of samples up to a rank. A short piece of any tail is nearly flat and every fit is near to
it, so the distance is divided by that of equally frequent tokens. The first rank is the earliest,
of a few between 1 and the middle, for which this quotient is at most twice the smallest. Vuong's
likelihood-ratio test then says whether one of the two families is significantly nearer; not that it
is true.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freqsgd.documents.inspection import TailFit
from freqsgd.errors import DataError
from freqsgd.theory.checks import Array, scipy

__all__ = ["Family", "SplitCounts", "TailFit", "fit_tail", "split_occurrences"]

FEWEST = 20  # tokens
FEWEST_RANKED = 10  # of these in the half that ranks them, and in a tail
CANDIDATES = 12  # first ranks tried
LOWEST_START = 5  # times that a half has a tail's first token: 3, 2, 1 are steps, hiding the slope
NEAR = 2.0  # times the smallest distance, which an earlier first rank is worth
CHANCE = 3.0  # standard errors by which equally frequent tokens may seem uneven
SIGNIFICANT = 0.05


def fit_tail(counts: ArrayLike) -> TailFit:
    """Fit both tails to the counts of tokens.

    Args:
        counts: how often each token occurs, most frequent first; all at least 1
    """
    numbers = _checked(counts)
    split = split_occurrences(numbers)
    reason = _hopeless(numbers) or _too_even(split)
    if reason:
        return TailFit(None, reason, numbers.size)
    tails = [_Tail(split, first) for first in _candidates(split.ranking)]
    enough = NEAR * min(tail.unexplained for tail in tails)
    tail = next(tail for tail in tails if tail.unexplained <= enough)
    statistic = tail.vuong()
    p_value = math.erfc(abs(statistic) / math.sqrt(2.0))
    told = p_value <= SIGNIFICANT
    return TailFit(
        family=tail.likelier if told else None,
        reason=None if told else f"the test cannot tell the two families apart (p = {p_value:.2g})",
        tokens=numbers.size,
        from_rank=tail.first,
        samples=int(numbers[tail.first - 1 :].sum()),
        nu=tail.fits["polynomial"].rate,
        tau=tail.fits["exponential"].rate,
        first_count={name: 2.0 * tail.samples / fit.mass for name, fit in tail.fits.items()},
        log_likelihoods={name: fit.log_likelihood for name, fit in tail.fits.items()},
        distances={name: fit.distance for name, fit in tail.fits.items()},
        statistic=statistic,
        p_value=p_value,
    )


def _checked(counts: ArrayLike) -> NDArray[np.int64]:
    numbers = np.asarray(counts)
    if numbers.ndim != 1 or not numbers.size:
        raise DataError("there are no tokens to fit a tail to")
    if not np.issubdtype(numbers.dtype, np.integer):
        raise DataError(f"counts must be integers, got {numbers.dtype}")
    if numbers[-1] < 1 or np.any(numbers[1:] > numbers[:-1]):
        raise DataError("counts must be sorted, largest first, and at least 1")
    return numbers.astype(np.int64)


def _hopeless(counts: NDArray[np.int64]) -> str | None:
    """Return why no tail can be fitted."""
    if counts.size == 1:
        return "there is one token only"
    if counts[0] == counts[-1]:
        times = "once" if counts[0] == 1 else f"{counts[0]:,} times"
        return f"every token occurs {times}: there is no tail"
    if counts.size < FEWEST:
        return f"{counts.size} tokens are too few: a tail takes {FEWEST}"
    return None


def _too_even(split: SplitCounts) -> str | None:
    """Return why there is nothing to fit once luck is left out."""
    if split.counts.size < FEWEST_RANKED or not split.counts.any():
        return "too few tokens occur more than once"
    if split.unevenness < CHANCE:
        return "equally frequent tokens would come out as unequal by chance: there is no tail"
    return None


def _candidates(ranking: NDArray[np.int64]) -> list[int]:
    """Return first ranks to try: 1, and some that half of the tokens follow, not all equal."""
    furthest = ranking.size - max(FEWEST_RANKED, math.ceil(ranking.size / 2)) + 1
    spread = np.geomspace(1, furthest, CANDIDATES).astype(np.int64)
    lowest = max(LOWEST_START, ranking[-1] + 1)
    return [int(first) for first in np.unique(spread) if first == 1 or ranking[first - 1] >= lowest]


@dataclass(frozen=True)
class _Fit:
    """One family fitted to one tail."""

    rate: float
    mass: float
    log_likelihood: float
    distance: float


class _Tail:
    """The samples from a rank on, and both families fitted to them."""

    def __init__(self, split: SplitCounts, first: int) -> None:
        self.first = first
        self._counts = split.counts[first - 1 :]
        self._ranks = np.arange(float(first), split.counts.size + 1.0)
        self._ends = split.ends[split.ends >= first].astype(np.float64)
        before = np.concatenate([[0.0], np.cumsum(split.counts)])[first - 1 :]
        self._seen = before - before[0]  # samples up to a rank, from the one before the first on
        self.samples = float(self._seen[-1])
        self.fits = {name: self._fit(family) for name, family in FAMILIES.items()}
        self.likelier = max(self.fits, key=lambda name: self.fits[name].log_likelihood)
        uniform = (self._ends - first + 1.0) / self._ranks.size
        uniform_distance = float(np.abs(self._share(self._ends) - uniform).max())
        self.unexplained = self.fits[self.likelier].distance / uniform_distance

    def vuong(self) -> float:
        """Return the mean difference of the samples' log likelihoods, in standard errors of it."""
        exponential, polynomial = map(self._log_shares, FAMILIES)
        difference = polynomial - exponential
        weights = self._counts / self.samples
        mean = float(weights @ difference)
        variance = float(weights @ (difference - mean) ** 2)
        return mean / math.sqrt(variance / self.samples) if variance > 0.0 else 0.0

    def _log_shares(self, name: str) -> Array:
        """Return log p_n of a fit, for every rank of the tail."""
        position, fit = FAMILIES[name].position(self._ranks), self.fits[name]
        shares: Array = -fit.rate * (position - position[0]) - math.log(fit.mass)
        return shares

    def _fit(self, family: Family) -> _Fit:
        position = family.position(self._ranks)
        total = float(self._counts @ position) - self.samples * float(position[0])
        last = int(self._ranks[-1])
        rate = family.likeliest_rate(total / self.samples, self.first, last)
        mass = float(family.masses(self.first, self._ranks[-1:], rate)[0])
        likelihood = -rate * total - self.samples * math.log(mass)
        return _Fit(rate, mass, likelihood, self._distance(family, rate, mass))

    def _distance(self, family: Family, rate: float, mass: float) -> float:
        """Return the largest difference of the two shares of samples up to a rank.

        Within a block of equal counts the samples' share rises by equal steps and the fit's by
        falling ones, so that the difference is largest at an end of the block or where the steps
        are equal. That leaves few ranks to look at, however many tokens there are.
        """
        starts = np.concatenate([self._ranks[:1], self._ends[:-1] + 1.0])
        steps = self._counts[self._ends.astype(np.int64) - self.first] / self.samples
        start, furthest = family.position(self._ranks[:1]), family.position(self._ranks[-1:])
        with np.errstate(divide="ignore"):  # a block may have no samples
            equal = np.minimum(start - np.log(steps * mass) / rate, furthest)
        crossing = np.floor(family.rank(equal))
        inside = [np.clip(crossing + shift, starts, self._ends) for shift in (0.0, 1.0)]
        ranks = np.concatenate([self._ends, *inside])
        fitted = family.masses(self.first, ranks, rate) / mass
        return float(np.abs(self._share(ranks) - fitted).max())

    def _share(self, ranks: Array) -> Array:
        """Return the share of the tail's samples up to these ranks."""
        share: Array = self._seen[ranks.astype(np.int64) - self.first + 1] / self.samples
        return share


# The two shapes of a tail, as distributions over the ranks first..last.
#
# Both are exponential families with one parameter, the tail's rate:
#
#     p_n = exp(-rate (t(n) - t(first))) / mass        t(n) = n      exponential, rate = tau
#                                                      t(n) = log n  polynomial,  rate = nu
#
# and the mass is the sum of the numerators, so that p sums to 1.

HEAD = 1000  # ranks that are added up one by one; from there on an integral is exact to rounding


@dataclass(frozen=True)
class Family:
    """A shape of tail."""

    name: str
    position: Callable[[Array], Array]  # t(n)
    rank: Callable[[Array], Array]  # the n of a t(n)
    masses: Callable[[int, Array, float], Array]  # first, array of last ranks, rate

    def likeliest_rate(self, mean: float, first: int, last: int) -> float:
        """Return the rate under which samples of ranks first..last are likeliest.

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
    """Return sums of (n / first) ** -rate: term by term, then by Euler and Maclaurin's formula."""
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
    """Return (exp(x) - 1) / x, also where x is 0."""
    safe = np.where(x == 0.0, 1.0, x)
    return np.where(x == 0.0, 1.0, np.expm1(safe) / safe)


FAMILIES = {
    "exponential": Family("exponential", np.asarray, np.asarray, _exponential_masses),
    "polynomial": Family("polynomial", np.log, np.exp, _polynomial_masses),
}


# Ranks from one half of the occurrences, counts from the other.
#
# Sorted counts fall even where tokens are equally frequent: chance makes some of them come first.
# So every occurrence is put, by the toss of a coin, into one of two halves. The first ranks the
# tokens, the second is counted at these ranks, and what was luck in the first is not repeated in
# it.

_SEED = 2022  # not 0 or 1, with which counts may have been drawn


@dataclass(frozen=True)
class SplitCounts:
    """Tokens of the first half by falling count.

    Attributes:
        ranking: how often each is in the first half
        counts: how often in the second: of equally ranked tokens, the mean
    """

    ranking: NDArray[np.int64]
    counts: Array

    @property
    def ends(self) -> NDArray[np.int64]:
        """The last ranks of the blocks of equally ranked tokens."""
        return np.append(np.flatnonzero(np.diff(self.ranking)) + 1, self.ranking.size)

    @property
    def unevenness(self) -> float:
        """Standard errors by which the mean rank of the second half is below the middle one.

        Of equally frequent tokens every rank is equally likely, also where some are never seen.
        """
        tokens, occurrences = self.counts.size, float(self.counts.sum())
        middle, variance = (tokens + 1) / 2, (tokens**2 - 1) / 12
        mean = float(self.counts @ np.arange(1.0, tokens + 1.0)) / occurrences
        return (middle - mean) / math.sqrt(variance / occurrences)


def split_occurrences(counts: NDArray[np.int64], seed: int = _SEED) -> SplitCounts:
    """Toss a coin for each occurrence of each token; tokens that the first half lacks are left out.

    Args:
        counts: of the tokens, in any order
        seed: of the coin
    """
    first = np.random.default_rng(seed).binomial(counts, 0.5)
    order = np.argsort(-first, kind="stable")[: np.count_nonzero(first)]
    ranking, second = first[order], (counts - first)[order]
    starts = np.flatnonzero(np.diff(ranking, prepend=0))
    sizes = np.diff(starts, append=ranking.size)
    means = np.add.reduceat(second, starts) / sizes if starts.size else np.empty(0)
    return SplitCounts(ranking, np.repeat(means, sizes))
