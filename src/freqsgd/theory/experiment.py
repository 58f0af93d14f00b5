"""The theorems against a simulation: bounds and measurements for every token."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.rates import RateLaw, paper_rates
from freqsgd.theory import bounds
from freqsgd.theory.distributions import TAILS, token_distribution
from freqsgd.theory.estimates import ratio, slope
from freqsgd.theory.improvement import Corollary, corollary, counting_factor, error_improvement
from freqsgd.theory.measured import ANY, LAST, LATE, Measured, largest_variance
from freqsgd.theory.problem import Array, planted_problem
from freqsgd.theory.simulation import Method, Runs, simulate, spread_evenly
from freqsgd.theory.statements import statements

__all__ = ["RATES", "Settings", "run"]

RATES = {"uniform": 0.0, "exponential": 0.2, "polynomial": 2.0}  # none, tau, nu
_OUTPUTS = ("random", "last")
_PILOT_OUTPUTS = 40
_MARGIN = 1.25  # of sigma_k^2 over the largest variance that pilot runs see
_MOST_CELLS = 50_000_000  # pairs of users and items, times repetitions, that are held in memory

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class Settings:
    """Which problem, and how often and how long it is run."""

    tail: str = "exponential"
    rate: float | None = None  # tau or nu
    users: int = 24
    items: int = 24
    dim: int = 2
    radius: float = 4.0
    iterations: int = 1_000_000
    repetitions: int = 100
    output: str = "random"  # the iterate that is looked at: as the algorithms say, or "last"
    seed: int = 0

    def check(self) -> None:
        """Raise unless they make sense."""
        if self.tail not in TAILS:
            raise DataError(f"unknown tail {self.tail!r}: known are {', '.join(TAILS)}")
        if self.output not in _OUTPUTS:
            raise DataError(f"unknown output {self.output!r}: known are {', '.join(_OUTPUTS)}")
        if self.tail == "uniform" and self.rate is not None:
            raise DataError("a uniform distribution has no rate")
        least = {"users": 2, "items": 2, "dim": 1, "iterations": 2, "repetitions": 2, "seed": 0}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise DataError(f"{name} must be at least {low}, not {getattr(self, name)}")
        if not 0 < self.radius < math.inf:
            raise DataError(f"radius must be a positive number, not {self.radius}")
        if self.users * self.items * self.repetitions > _MOST_CELLS:
            raise DataError(
                f"{self.users:,} users x {self.items:,} items x {self.repetitions:,} repetitions "
                f"are more than the {_MOST_CELLS:,} that fit; take fewer of one"
            )

    @property
    def falloff(self) -> float:
        """The rate, or what it is if none is given."""
        return RATES[self.tail] if self.rate is None else self.rate

    def distribution(self, tokens: int) -> Array:
        """Frequencies of users, or of items."""
        return token_distribution(self.tail, tokens, self.falloff)

    def corollary(self, tokens: int) -> Corollary:
        """What a corollary guarantees to users, or to items."""
        return corollary(self.tail, tokens, self.falloff)


def run(
    settings: Settings,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Simulate, and return the content of ``theory.json`` (docs/theory.md).

    Args:
        settings: the problem, and how often and how long it is run
        threads: of the kernel; the result does not depend on it
        progress: called now and then with a stage, how much of it is done and how much there is
        command: the command line that does the same
    """
    settings.check()
    began = time.monotonic()
    experiment = _Experiment(settings, threads, progress)
    results = experiment.document()
    return {
        "schema": 1,
        "kind": "theory",
        "command": command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 1),
        **results,
    }


class _Experiment:
    """One problem and all methods on it."""

    def __init__(self, settings: Settings, threads: int | None, progress: Progress | None) -> None:
        self.settings, self.threads = settings, threads
        self.progress = progress or (lambda stage, done, total: None)
        sizes = settings.users, settings.items
        self.problem = planted_problem(
            settings.distribution(settings.users),
            settings.distribution(settings.items),
            settings.dim,
            settings.radius,
            settings.seed,
            problems=settings.repetitions,
        )
        self.sides = [settings.corollary(size) for size in sizes]
        self.ranks = np.concatenate([np.arange(1, size + 1) for size in sizes])
        self.is_tail = np.concatenate(
            [np.arange(size) >= side.top for side, size in zip(self.sides, sizes, strict=True)]
        )
        self.p, self.gap = self.problem.frequencies, self.problem.gap
        self.L, self.T = self.problem.smoothness, settings.iterations
        self.sigma2 = self.problem.conditional_variance(self.problem.start).max(0)
        self._check_length()  # with the least that sigma can be, before long work
        self.sigma2 = self._assumed_variance()
        self._check_length()

    @property
    def known(self) -> tuple[Array, Array, float, float]:
        """What the theorems ask for."""
        return self.p, self.sigma2, self.gap, self.L

    def document(self) -> dict[str, Any]:
        """All that is written down but when, how long and by which command."""
        alphas = self._alphas()
        measured = {
            name: self._measure(method, alphas[name]) for name, method in self._methods().items()
        }
        improvements = [self._improvement(measured, name) for name in ("fasgd", "cfsgd", "sbcd")]
        said = statements(self.problem, self.sigma2, self.sides, measured, improvements)
        return {
            "problem": self._describe_problem(),
            "tokens": {
                "side": ["user"] * self.settings.users + ["item"] * self.settings.items,
                "rank": self.ranks.tolist(),
                "p": self.p.tolist(),
                "sigma2": self.sigma2.tolist(),
                "start": self.problem.gradient_norms2(self.problem.start).mean(0).tolist(),
            },
            "runs": [each.as_json() for each in measured.values()],
            "improvements": improvements,
            "checks": [asdict(each) for each in said],
        }

    def _describe_problem(self) -> dict[str, Any]:
        users, items = self.sides
        settings = asdict(self.settings)
        return {
            **settings,
            "rate": self.settings.falloff or None,
            "smoothness": self.L,
            "gap": self.gap,
            "gradient_bound": self.problem.gradient_bound,
            "minimum_iterations": self._minimum(),
            "top_users": users.top,
            "top_items": items.top,
            "corollary": {
                "applies": users.applies and items.applies,
                "reason": users.reason or items.reason,
            },
        }

    # ---- step sizes and bounds -------------------------------------------------------------------

    def _minimum(self) -> int:
        needed = bounds.minimum_iterations(*self.known, self.problem.gradient_bound)
        return int(needed.max())

    def _check_length(self) -> None:
        if self._minimum() > self.T:
            raise DataError(
                f"{self.T:,} iterations are too few: Theorem 3 needs at least "
                f"{self._minimum():,} here, for the rarest token, of frequency {self.p.min():.3g} "
                "(--iterations); or take fewer users and items"
            )

    def _alphas(self) -> dict[str, float]:
        sgd = bounds.sgd_alpha(*self.known)
        fasgd, cfsgd = bounds.fasgd_alpha(*self.known), bounds.cfsgd_alpha(*self.known)
        return {"sgd": sgd, "fasgd": fasgd, "cfsgd": cfsgd, "sbcd": sgd}

    def _methods(self) -> dict[str, Method]:
        """The step sizes of the theorems; SBCD is given SGD's."""
        alpha = self._alphas()
        sgd = bounds.sgd_steps(self.p, alpha["sgd"], self.T, self.L)
        fasgd = bounds.fasgd_steps(self.p, alpha["fasgd"], self.T, self.L)
        lr, cap = paper_rates(alpha["cfsgd"], self.T, self.L)
        return {
            "sgd": Method("sgd", sgd),
            "fasgd": Method("fasgd", fasgd),
            "cfsgd": Method("cfsgd", law=RateLaw(lr, max_lr=cap)),
            "sbcd": Method("sbcd", sgd),
        }

    def _bound(self, method: Method) -> Array | None:
        """The explicit bound; none is known here for SBCD."""
        if method.law is not None:
            return bounds.cfsgd_bound(*self.known, self.T, self.problem.gradient_bound)
        if method.steps is None or method.optimizer == "sbcd":
            return None
        return bounds.constant_step_bound(method.steps, *self.known, self.T)

    def _assumed_variance(self) -> Array:
        """sigma_k^2 of Assumption 1: somewhat more than the largest seen in pilot runs.

        What the runs proper see is compared with it afterwards.
        """
        early = np.geomspace(1, self.T, _PILOT_OUTPUTS // 2).astype(np.int64)
        evenly = np.linspace(0, self.T, _PILOT_OUTPUTS // 2).astype(np.int64)
        times = np.sort(np.concatenate([early, evenly]))
        times = np.tile(times, (self.settings.repetitions, 1))
        methods = self._methods()
        pilots = [
            self._simulate(methods[name], times, "finding sigma") for name in ("sgd", "fasgd")
        ]
        seen = [largest_variance(self.problem, pilot) for pilot in pilots]
        return np.asarray(_MARGIN * np.max(seen, axis=0))

    # ---- measurements ----------------------------------------------------------------------------

    def _simulate(self, method: Method, times: NDArray[np.int64], stage: str) -> Runs:
        stage, total = f"{stage}, {method.optimizer}", self.T * len(times)
        runs = simulate(
            self.problem,
            method,
            times,
            self.settings.seed,
            threads=self.threads,
            progress=lambda done: self.progress(stage, done, total),
        )
        left = runs.left[runs.left >= 0]
        if len(left) > len(times) - 2:
            raise DataError(
                f"{method.optimizer}: rows left the ball of radius {self.settings.radius:g} in "
                f"{len(left)} of {len(times)} repetitions, the first in iteration "
                f"{int(left.min()):,}: these runs are invalid; try a larger --radius"
            )
        return runs

    def _measure(self, method: Method, alpha: float) -> Measured:
        """Run a method, and look at its iterates at random times and at the end."""
        settings, generator = self.settings, np.random.default_rng(self.settings.seed)
        times = np.empty((settings.repetitions, 3), np.int64)
        times[:, ANY] = spread_evenly(generator, 0, self.T, settings.repetitions)
        times[:, LATE] = spread_evenly(generator, self.T // 2, self.T, settings.repetitions)
        times[:, LAST] = self.T
        order = np.argsort(times, axis=1, kind="stable")
        runs = self._simulate(method, np.take_along_axis(times, order, 1), "simulating")
        places = np.argsort(order, axis=1).T[:, :, None, None]
        runs = replace(runs, iterates=np.take_along_axis(runs.iterates, places, 0))
        last = settings.output == "last"
        return Measured(self.problem, method, alpha, self._bound(method), runs, self.T, last)

    def _improvement(self, measured: dict[str, Measured], name: str) -> dict[str, Any]:
        """SGD's error over that of another method, at iterates of the same kind."""
        other, sgd = measured[name], measured["sgd"]
        valid = other.valid & sgd.valid
        found = ratio(sgd.comparable[valid], other.comparable[valid])
        improvement: dict[str, Any] = {
            "optimizer": name,
            "measured": found.value.tolist(),
            "low": found.low.tolist(),
            "high": found.high.tolist(),
        }
        if name == "sbcd":
            return improvement
        cost = counting_factor(*self.known) if name == "cfsgd" else 1.0
        promised = error_improvement(self.p, self.sigma2) / cost
        return {
            **improvement,
            "bound": promised.tolist(),
            "iterations": (promised**2).tolist(),
            "corollary": self._guaranteed(cost),
            "slope": self._slope(found.value, sgd.comparable[sgd.valid].mean(0)),
        }

    def _guaranteed(self, cost: float) -> list[float] | None:
        """The corollaries' factors of iterations, token by token; ``cost`` is that of counting."""
        if not all(side.applies for side in self.sides):
            return None
        sizes = self.settings.users, self.settings.items
        parts = [
            side.iterations_improvement(np.arange(1, size + 1))
            for side, size in zip(self.sides, sizes, strict=True)
        ]
        return [float(factor) / cost**2 for part in parts for factor in part]

    def _slope(self, improvement: Array, sgd: Array) -> dict[str, Any] | None:
        """How fast the log of an improvement grows along the tail, both sides together.

        And how many tail tokens SGD has begun to learn: its error there, ``sgd``, is less than half
        of that at the start. Nothing can be much better than SGD at what takes more than T
        iterations, so beyond these tokens the improvement stops to grow.
        """
        if self.settings.tail == "uniform":
            return None
        ranks = self.ranks[self.is_tail].astype(np.float64)
        by_rank = self.settings.tail == "exponential"
        start = self.problem.gradient_norms2(self.problem.start).mean(0)
        found = slope(ranks if by_rank else np.log(ranks), np.log(improvement[self.is_tail]))
        if found is None:
            return None
        return {
            "measured": found.value,
            "low": found.low,
            "high": found.high,
            "predicted": self.settings.falloff / 2,
            "axis": "rank" if by_rank else "log rank",
            "tokens": found.points,
            "begun": int((sgd < start / 2)[self.is_tail].sum()),
        }
