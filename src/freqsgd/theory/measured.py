"""E||grad f_k||^2 of every token over the repetitions of a method, and improvements over SGD."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from freqsgd.documents.theory import Improvement, Numbers, Slope, TheoryRun
from freqsgd.rates import RateLaw
from freqsgd.theory.checks import Array, scipy
from freqsgd.theory.improvement import counting_factor, error_improvement
from freqsgd.theory.settings import Settings
from freqsgd.theory.simulation import Method, Problem, Runs

ANY, LATE, LAST = range(3)  # the outputs of a repetition: uniform on [T], on {T/2..T}, and T


class Known(NamedTuple):
    """The numbers that the theorems take as known."""

    p: Array
    sigma2: Array
    gap: float
    L: float


@dataclass(frozen=True)
class Measured:
    """The runs of one method, which put out an iterate of each kind."""

    problem: Problem
    method: Method
    runs: Runs
    kind: int  # the output that all methods are compared by: ANY or LAST

    @property
    def valid(self) -> Any:
        """Whether each repetition stayed in the ball."""
        return self.runs.left < 0

    @cached_property
    def norms2(self) -> list[Array]:
        """||grad f_k||^2 at each kind of output: (repetitions, tokens)."""
        return [self.problem.gradient_norms2(rows) for rows in self.runs.iterates]

    @cached_property
    def variance(self) -> Array:
        """The largest conditional variance of each token at an iterate that was put out."""
        return largest_variance(self.problem, self.runs)

    @property
    def comparable(self) -> Array:
        """The norms that are compared with those of other methods."""
        return self.norms2[self.kind]

    @cached_property
    def error(self) -> Estimate:
        """E||grad f_k||^2 at the iterate that the algorithm puts out."""
        late = self.method.optimizer == "cfsgd" and self.kind == ANY
        return mean(self.norms2[LATE if late else self.kind][self.valid])

    @property
    def start(self) -> Array:
        """E||grad f_k||^2 at the start of the repetitions that stayed in the ball."""
        return np.asarray(self.problem.start_norms2[self.valid].mean(0))

    @property
    def steps(self) -> Array:
        """The step size of each token; of CF-SGD its limit once frequencies are known."""
        steps = self.method.steps
        if isinstance(steps, RateLaw):
            return np.asarray(steps.rate(self.problem.frequencies))
        return steps

    def entry(self) -> TheoryRun:
        """Return the run as ``theory.json`` has it."""
        loss = self.problem.loss(self.runs.iterates[self.kind])
        return TheoryRun(
            optimizer=self.method.optimizer,
            alpha=self.method.alpha,
            steps=numbers(self.steps),
            bound=None if self.method.bound is None else numbers(self.method.bound),
            measured=numbers(self.error.value),
            low=numbers(self.error.low),
            high=numbers(self.error.high),
            invalid=int((~self.valid).sum()),
            mean_loss_gap=float((loss - self.problem.lowest)[self.valid].mean()),
        )


def numbers(column: Array) -> Numbers:
    """Return a number per token as documents have them."""
    return tuple(column.tolist())


def largest_variance(problem: Problem, runs: Runs) -> Array:
    """Return the largest conditional variance of each token at an iterate inside the ball."""
    valid = runs.left < 0
    each = [problem.conditional_variance(rows)[valid].max(0) for rows in runs.iterates]
    return np.asarray(np.max(each, axis=0))


# ---- estimates from repetitions ------------------------------------------------------------------

_RESAMPLES = 1000
_QUANTILES = (0.025, 0.975)


class Estimate(NamedTuple):
    """Numbers, and the ends of their 95% intervals."""

    value: Array
    low: Array
    high: Array


def mean(samples: Array, seed: int = 0) -> Estimate:
    """Return the mean over repetitions, samples being (repetitions, tokens), by bootstrap."""
    means = _weights(len(samples), seed) @ samples
    return Estimate(samples.mean(0), *np.quantile(means, _QUANTILES, axis=0))


def ratio(above: Array, below: Array, seed: int = 0) -> Estimate:
    """Return the ratio of two means over the same repetitions, which are drawn together."""
    weights = _weights(len(above), seed)
    ratios = (weights @ above) / (weights @ below)
    value = above.mean(0) / below.mean(0)
    return Estimate(value, *np.quantile(ratios, _QUANTILES, axis=0))


def _weights(repetitions: int, seed: int) -> Array:
    """Return the weight of each repetition in each resample."""
    generator = np.random.default_rng(seed)
    even = np.full(repetitions, 1 / repetitions)
    return generator.multinomial(repetitions, even, _RESAMPLES) / repetitions


def slope(x: Array, y: Array, group: NDArray[np.int64]) -> tuple[float, float, float] | None:
    """Return the slope of parallel lines, one through the points of each group, by least squares.

    With the ends of Student's interval; None where no line is determined.
    """

    def centred(values: Array) -> Array:
        means = np.bincount(group, values) / np.maximum(np.bincount(group), 1)
        return np.asarray(values - means[group])

    x, y = centred(x), centred(y)
    freedom, spread = len(x) - len(np.unique(group)) - 1, float(x @ x)
    if freedom < 1 or spread == 0.0:
        return None
    value = float(x @ y) / spread
    residuals = y - value * x
    error = np.sqrt(residuals @ residuals / freedom / spread)
    half = float(scipy("stats").t.ppf(_QUANTILES[1], freedom) * error)
    return value, value - half, value + half


# ---- improvements over SGD -----------------------------------------------------------------------


def improvement(settings: Settings, known: Known, sgd: Measured, other: Measured) -> Improvement:
    """Return SGD's error over that of another method, token by token.

    Both are measured in iterates of the same kind, and in repetitions that stayed in the ball.
    """
    name = other.method.optimizer
    valid = other.valid & sgd.valid
    found = ratio(sgd.comparable[valid], other.comparable[valid])
    entry = Improvement(
        optimizer=name,
        measured=numbers(found.value),
        low=numbers(found.low),
        high=numbers(found.high),
    )
    if name == "sbcd":
        return entry
    cost = counting_cost(known, name)
    promised = error_improvement(known.p, known.sigma2) / cost
    capped = (other.steps == 1 / (4 * known.L)).any()
    begun = sgd.comparable[sgd.valid].mean(0) < sgd.start / 2
    return replace(
        entry,
        bound=numbers(promised),
        iterations=numbers(promised**2),
        corollary=None if capped else _guaranteed(settings, cost),
        slope=_slope(settings, found.value, begun),
    )


def counting_cost(known: Known, name: str) -> float:
    """Return by how much the bounds' leading term is larger for a method that counts."""
    return counting_factor(*known) if name == "cfsgd" else 1.0


def _guaranteed(settings: Settings, cost: float) -> Numbers | None:
    """Return the corollaries' factors of iterations, token by token; ``cost`` is that of counting.

    They are for equal sigma_k, and for steps that the cap 1 / (4 L) leaves alone.
    """
    if settings.exception is not None:
        return None
    users, _ = settings.corollaries  # the same formula for items
    return numbers(users.iterations_improvement(settings.ranks) / cost**2)


def _slope(settings: Settings, improvement: Array, begun: NDArray[np.bool_]) -> Slope | None:
    """Return the growth of an improvement's logarithm along the tail, alike on both sides.

    ``begun`` says which tokens SGD has begun to learn: their error is less than half of that at the
    start. Nothing can be much better than SGD at tokens that take more than T iterations, so the
    improvement stops to grow beyond these.
    """
    if settings.tail == "uniform":
        return None
    tail, by_rank = ~settings.tops, settings.tail == "exponential"
    x = settings.ranks.astype(np.float64)
    x = x if by_rank else np.log(x)
    found = slope(x[tail], np.log(improvement[tail]), settings.sides[tail])
    if found is None:
        return None
    return Slope(
        *found,
        predicted=settings.falloff / 2,
        axis="rank" if by_rank else "log rank",
        tokens=int(tail.sum()),
        begun=int(begun[tail].sum()),
    )
