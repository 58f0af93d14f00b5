"""What the repetitions of one method came to: E||grad f_k||^2 of every token."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from freqsgd.theory.checks import Array
from freqsgd.theory.estimates import Estimate, mean
from freqsgd.theory.problem import Problem
from freqsgd.theory.simulation import Method, Runs

__all__ = ["ANY", "LAST", "LATE", "Known", "Measured", "largest_variance"]

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
        """An entry of ``runs``."""
        loss = self.problem.loss(self.runs.iterates[self.kind])
        return {
            "optimizer": self.method.optimizer,
            "alpha": self.method.alpha,
            "steps": self.steps.tolist(),
            "bound": None if self.bound is None else self.bound.tolist(),
            "measured": self.error.value.tolist(),
            "low": self.error.low.tolist(),
            "high": self.error.high.tolist(),
            "invalid": int((~self.valid).sum()),
            "mean_loss_gap": float((loss - self.problem.lowest)[self.valid].mean()),
        }


def largest_variance(problem: Problem, runs: Runs) -> Array:
    """The largest conditional variance of each token at an iterate inside the ball."""
    valid = runs.left < 0
    each = [problem.conditional_variance(rows)[valid].max(0) for rows in runs.iterates]
    return np.asarray(np.max(each, axis=0))
