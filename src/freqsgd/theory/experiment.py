"""The theorems against a simulation: bounds and measurements for every token."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from freqsgd.documents import SCHEMA
from freqsgd.documents.theory import ProblemCorollary, SimulatedProblem, Theory, Tokens
from freqsgd.errors import DataError
from freqsgd.rates import RateLaw, paper_rates
from freqsgd.theory import bounds
from freqsgd.theory.measured import (
    ANY,
    LAST,
    LATE,
    Known,
    Measured,
    improvement,
    largest_variance,
    numbers,
)
from freqsgd.theory.settings import PILOT_OUTPUTS, Settings
from freqsgd.theory.simulation import (
    Method,
    Problem,
    Runs,
    planted_problem,
    simulate,
    spread_evenly,
)
from freqsgd.theory.statements import statements

__all__ = ["run"]

_MARGIN = 1.25  # of sigma_k^2 over the largest variance that pilot runs see

Progress = Callable[[str, int, int | None], None]


def run(
    settings: Settings,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    command: str | None = None,
) -> Theory:
    """Simulate, and return the content of ``theory.json`` (docs/theory.md).

    Args:
        settings: the problem, and how often and how long it is run
        threads: of the kernel; the result does not depend on it
        progress: called now and then with a stage, how much of it is done and how much there is
        command: the command line that does the same
    """
    settings.check()
    began = time.monotonic()
    problem = planted_problem(
        settings.distribution(settings.users),
        settings.distribution(settings.items),
        settings.dim,
        settings.radius,
        settings.seed,
        problems=settings.repetitions,
    )
    experiment = _Experiment(settings, problem, threads, progress)
    known = experiment.find_variance()
    measured = experiment.measure(known)
    sgd, *others = measured.values()
    improvements = tuple(improvement(settings, known, sgd, other) for other in others)
    checks = tuple(statements(settings, known, measured, improvements))
    users, items = settings.corollaries
    described = SimulatedProblem(
        **asdict(settings) | {"rate": settings.falloff or None},
        smoothness=known.L,
        gap=known.gap,
        gradient_bound=problem.gradient_bound,
        minimum_iterations=_least_iterations(known, problem),
        top_users=users.top,
        top_items=items.top,
        corollary=ProblemCorollary(settings.exception is None, settings.exception),
    )
    sides: list[Literal["user", "item"]] = ["user"] * settings.users
    sides += ["item"] * settings.items
    tokens = Tokens(
        side=tuple(sides),
        rank=tuple(settings.ranks.tolist()),
        p=numbers(known.p),
        sigma2=numbers(known.sigma2),
        start=numbers(problem.start_norms2.mean(0)),
    )
    return Theory(
        schema=SCHEMA,
        kind="theory",
        command=command,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - began, 1),
        problem=described,
        tokens=tokens,
        runs=tuple(each.entry() for each in measured.values()),
        improvements=improvements,
        checks=checks,
    )


def _least_iterations(known: Known, problem: Problem) -> int:
    """Return the least T of Theorem 3, over all tokens."""
    return int(bounds.minimum_iterations(*known, problem.gradient_bound).max())


@dataclass(frozen=True)
class _Experiment:
    """A problem, and how it is run."""

    settings: Settings
    problem: Problem
    threads: int | None
    progress: Progress | None

    def find_variance(self) -> Known:
        """Return what the theorems take as known, sigma_k^2 of Assumption 1 by pilot runs.

        It is somewhat more than the largest variance seen in runs of SGD, FA-SGD and CF-SGD, whose
        steps are those for the variance at the start. It is compared afterwards with the variance
        in the runs proper.
        """
        problem, T = self.problem, self.settings.iterations
        variance = problem.conditional_variance(problem.start).max(0)
        known = Known(problem.frequencies, variance, problem.gap, problem.smoothness)
        self._check_length(math.ceil(1 / known.p.min()))
        early = np.geomspace(1, T, PILOT_OUTPUTS // 2).astype(np.int64)
        evenly = np.linspace(0, T, PILOT_OUTPUTS // 2).astype(np.int64)
        times = np.sort(np.concatenate([early, evenly]))
        times = np.tile(times, (self.settings.repetitions, 1))
        seen = [
            largest_variance(problem, self._simulate(method, times, "finding sigma"))
            for method in self._methods(known)
            if method.optimizer != "sbcd"
        ]
        known = known._replace(sigma2=_MARGIN * np.max(seen, axis=0))
        self._check_length(_least_iterations(known, problem))
        return known

    def measure(self, known: Known) -> dict[str, Measured]:
        """Run each method, SGD first, and put out iterates at random times and at the end."""
        repetitions, T = self.settings.repetitions, self.settings.iterations
        generator = np.random.default_rng(self.settings.seed)
        times = np.empty((repetitions, 3), np.int64)
        times[:, ANY] = spread_evenly(generator, 0, T, repetitions)
        times[:, LATE] = spread_evenly(generator, T // 2, T, repetitions)
        times[:, LAST] = T
        order = np.argsort(times, axis=1, kind="stable")
        places = np.argsort(order, axis=1).T[:, :, None, None]
        kind = LAST if self.settings.output == "last" else ANY
        measured = {}
        for method in self._methods(known):
            runs = self._simulate(method, np.take_along_axis(times, order, 1), "simulating")
            runs = replace(runs, iterates=np.take_along_axis(runs.iterates, places, 0))
            measured[method.optimizer] = Measured(self.problem, method, runs, kind)
        left = np.any([~each.valid for each in measured.values()], axis=0)
        self._check_ball("one optimizer or another", left)
        return measured

    def _methods(self, known: Known) -> list[Method]:
        """Return the methods with the step sizes and bounds of their theorems.

        SBCD has SGD's step sizes; no bound of it is known here.
        """
        p, T, L = known.p, self.settings.iterations, known.L
        alphas = (bounds.sgd_alpha, bounds.fasgd_alpha, bounds.cfsgd_alpha)
        sgd, fasgd, cfsgd = (alpha(*known) for alpha in alphas)
        plain, aware = bounds.sgd_steps(p, sgd, T, L), bounds.fasgd_steps(p, fasgd, T, L)
        lr, cap = paper_rates(cfsgd, T, L)
        counting = bounds.cfsgd_bound(*known, T, self.problem.gradient_bound)
        return [
            Method("sgd", plain, sgd, bounds.constant_step_bound(plain, *known, T)),
            Method("fasgd", aware, fasgd, bounds.constant_step_bound(aware, *known, T)),
            Method("cfsgd", RateLaw(lr, max_lr=cap), cfsgd, counting),
            Method("sbcd", plain, sgd),
        ]

    def _check_length(self, needed: int) -> None:
        if self.settings.iterations < needed:
            least = f"{needed:,}" if needed < 10**12 else f"{needed:.2g}"
            raise DataError(
                f"{self.settings.iterations:,} iterations are too few: Theorem 3 needs at least "
                f"{least} here (--iterations), for the rarest token, of frequency "
                f"{self.problem.frequencies.min():.3g}; or take fewer users and items"
            )

    def _simulate(self, method: Method, times: NDArray[np.int64], stage: str) -> Runs:
        progress, total = self.progress, self.settings.iterations * len(times)
        stage = f"{stage}, {method.optimizer}"
        runs = simulate(
            self.problem,
            method,
            times,
            self.settings.seed,
            threads=self.threads,
            progress=None if progress is None else lambda done: progress(stage, done, total),
        )
        self._check_ball(method.optimizer, runs.left >= 0)
        return runs

    def _check_ball(self, name: str, left: NDArray[np.bool_]) -> None:
        if left.sum() > len(left) - 2:
            raise DataError(
                f"{name}: rows left the ball of radius {self.settings.radius:g} in {left.sum()} of "
                f"{len(left)} repetitions, which makes them invalid; try a larger --radius"
            )
