"""What the repetitions of a method came to, E||grad f_k||^2 of every token, and improvements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freqsgd.theory.checks import Array, scipy
from freqsgd.theory.improvement import counting_factor, error_improvement
from freqsgd.theory.settings import Settings
from freqsgd.theory.simulation import Method, Problem, Runs

ANY, LATE, LAST = range(3)  # the outputs of a repetition: uniform on [T], on {T/2..T}, and T


class Known(NamedTuple):
    """What the theorems take as known."""

    p: Array
    sigma2: Array
    gap: float
    L: float


@dataclass(frozen=True)
class Measured:
    """The runs of one method, which put out an iterate of each kind."""

    problem: Problem
    method: Method
    bound: Array | None
    runs: Runs
    iterations: int
    last: bool  # whether the last iterate is looked at, and not a random one

    @property
    def valid(self) -> Any:
        """Which repetitions stayed in the ball."""
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
    def start(self) -> Array:
        """E||grad f_k||^2 at the start of the repetitions that stayed in the ball."""
        return np.asarray(self.problem.start_norms2[self.valid].mean(0))

    @property
    def kind(self) -> int:
        """The output that all methods are compared by."""
        return LAST if self.last else ANY

    @property
    def comparable(self) -> Array:
        """Norms at iterates of that kind: (repetitions, tokens)."""
        return self.norms2[self.kind]

    @cached_property
    def error(self) -> Estimate:
        """E||grad f_k||^2 at the iterate that the algorithm puts out."""
        late = self.method.law is not None and not self.last
        return mean(self.norms2[LATE if late else self.kind][self.valid])

    @property
    def steps(self) -> Array:
        """The step size of each token; of CF-SGD what it comes to if frequencies are known."""
        if self.method.law is not None:
            return np.asarray(self.method.law.rate(self.problem.frequencies))
        assert self.method.steps is not None
        return self.method.steps

    def as_json(self) -> dict[str, Any]:
        """Return an entry of ``runs``."""
        loss = self.problem.loss(self.runs.iterates[self.kind])
        return {
            "optimizer": self.method.optimizer,
            "alpha": self.method.alpha,
            "steps": self.steps.tolist(),
            "bound": None if self.bound is None else self.bound.tolist(),
            **self.error.as_json(),
            "invalid": int((~self.valid).sum()),
            "mean_loss_gap": float((loss - self.problem.lowest)[self.valid].mean()),
        }


def largest_variance(problem: Problem, runs: Runs) -> Array:
    """Return the largest conditional variance of each token at an iterate inside the ball."""
    valid = runs.left < 0
    each = [problem.conditional_variance(rows)[valid].max(0) for rows in runs.iterates]
    return np.asarray(np.max(each, axis=0))


# ---- estimates from repetitions ------------------------------------------------------------------

_RESAMPLES = 1000
_QUANTILES = (0.025, 0.975)


@dataclass(frozen=True)
class Estimate:
    """Numbers, and the intervals that hold each of them in 95 of 100 cases."""

    value: Array
    low: Array
    high: Array

    def as_json(self) -> dict[str, Any]:
        """Return its entries of ``theory.json``."""
        ends = {"low": self.low.tolist(), "high": self.high.tolist()}
        return {"measured": self.value.tolist(), **ends}


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


def slope(x: Array, y: Array, group: NDArray[np.int64]) -> Estimate | None:
    """Return the slope of parallel lines, one through the points of each group, by least squares.

    With Student's interval; None where no line is determined.
    """
    x, y = _centred(x, group), _centred(y, group)
    freedom, spread = len(x) - len(np.unique(group)) - 1, float(x @ x)
    if freedom < 1 or spread == 0.0:
        return None
    value = float(x @ y) / spread
    residuals = y - value * x
    error = np.sqrt(residuals @ residuals / freedom / spread)
    half = float(scipy("stats").t.ppf(_QUANTILES[1], freedom) * error)
    return Estimate(*map(np.asarray, (value, value - half, value + half)))


def _centred(x: Array, group: NDArray[np.int64]) -> Array:
    means = np.bincount(group, x) / np.maximum(np.bincount(group), 1)
    return np.asarray(x - means[group])


def _weights(repetitions: int, seed: int) -> Array:
    """Return how much each repetition counts in each resample."""
    generator = np.random.default_rng(seed)
    even = np.full(repetitions, 1 / repetitions)
    return generator.multinomial(repetitions, even, _RESAMPLES) / repetitions


# ---- improvements over SGD -----------------------------------------------------------------------


def improvement(
    settings: Settings, known: Known, measured: Mapping[str, Measured], name: str
) -> dict[str, Any]:
    """Return an entry of ``improvements``: SGD's error over that of another method, token by token.

    Both are looked at in iterates of the same kind, and in repetitions that stayed in the ball.
    """
    other, sgd = measured[name], measured["sgd"]
    valid = other.valid & sgd.valid
    found = ratio(sgd.comparable[valid], other.comparable[valid])
    entry = {"optimizer": name, **found.as_json()}
    if name == "sbcd":
        return entry
    cost = counting_cost(known, name)
    promised = error_improvement(known.p, known.sigma2) / cost
    begun = sgd.comparable[sgd.valid].mean(0) < sgd.start / 2
    return {
        **entry,
        "bound": promised.tolist(),
        "iterations": (promised**2).tolist(),
        "corollary": None
        if (other.steps == 1 / (4 * known.L)).any()
        else _guaranteed(settings, cost),
        "slope": _slope(settings, found.value, begun),
    }


def counting_cost(known: Known, name: str) -> float:
    """Return by how much the bounds' leading term is larger for a method that counts."""
    return counting_factor(*known) if name == "cfsgd" else 1.0


def _guaranteed(settings: Settings, cost: float) -> list[float] | None:
    """Return the corollaries' factors of iterations, token by token; ``cost`` is that of counting.

    They are for equal sigma_k, and for steps that the cap 1 / (4 L) leaves alone.
    """
    if settings.exception is not None:
        return None
    users, _ = settings.corollaries  # the same formula for items
    return [float(factor) for factor in users.iterations_improvement(settings.ranks) / cost**2]


def _slope(settings: Settings, improvement: Array, begun: Any) -> dict[str, Any] | None:
    """Return how fast the log of an improvement grows along the tail, alike on both sides.

    And how many tail tokens SGD has begun to learn: its error is less than half of that at the
    start. Nothing can be much better than SGD at what takes more than T iterations, so beyond these
    tokens the improvement stops to grow.
    """
    if settings.tail == "uniform":
        return None
    tail, by_rank = ~settings.tops, settings.tail == "exponential"
    x = settings.ranks.astype(np.float64)
    x = x if by_rank else np.log(x)
    found = slope(x[tail], np.log(improvement[tail]), settings.sides[tail])
    if found is None:
        return None
    return {
        **found.as_json(),
        "predicted": settings.falloff / 2,
        "axis": "rank" if by_rank else "log rank",
        "tokens": int(tail.sum()),
        "begun": int(begun[tail].sum()),
    }
