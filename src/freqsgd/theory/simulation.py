"""Runs of the paper's algorithms on a problem, many at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.kernels.simulation import advance
from freqsgd.rates import RateLaw
from freqsgd.theory.checks import Array, per_token
from freqsgd.theory.problem import Problem

__all__ = ["OPTIMIZERS", "Method", "Runs", "simulate", "spread_evenly"]

OPTIMIZERS = ("sgd", "fasgd", "cfsgd", "sbcd")

_CALL = 5_000_000  # iterations between two looks at what else there is to do


@dataclass(frozen=True)
class Method:
    """How an iteration moves the rows of the pair that it drew.

    Args:
        optimizer: "sgd" or "fasgd" (Algorithm 1: a step size for each token), "cfsgd" (Algorithm 2:
            the law decides, with frequencies counted so far, the current pair included) or "sbcd"
            (stochastic block coordinate descent: one token of all is drawn beside the pair, and
            moves if it is one of the pair)
        steps: of each token; not for cfsgd
        law: of cfsgd
        alpha: the constant of its theorem, which steps or law were made with
    """

    optimizer: str
    steps: Array | None = None
    law: RateLaw | None = None
    alpha: float = math.nan

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise DataError(
                f"unknown optimizer {self.optimizer!r}: known are {', '.join(OPTIMIZERS)}"
            )
        counts = self.optimizer == "cfsgd"
        if counts != (self.law is not None) or counts == (self.steps is not None):
            raise DataError(
                f"{self.optimizer} takes {'a law, no' if counts else 'no law, but'} steps"
            )


@dataclass(frozen=True)
class Runs:
    """What repetitions of one method came to."""

    iterates: Array  # (outputs, repetitions, tokens, dim)
    counts: NDArray[np.int64]  # (repetitions, tokens): how often CF-SGD saw them
    left: NDArray[np.int64]  # (repetitions,): the iteration in which a row left the ball, or -1


def simulate(
    problem: Problem,
    method: Method,
    times: NDArray[np.int64],
    seed: int,
    *,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Runs:
    """Run a method from the problem's start, once for each row of ``times``.

    Args:
        problem: what to minimise; if it holds several, each repetition has its own
        method: how
        times: (repetitions, outputs): the iterations, in ascending order, after which the rows are
            put out; a repetition ends with the last
        seed: repetitions of the same number see the same pairs, whatever the method
        threads: None for torch's number; the result does not depend on it
        progress: called now and then with the number of iterations made, of all repetitions
    """
    repetitions, outputs = times.shape
    if not (np.diff(times, axis=1, prepend=0) >= 0).all():
        raise DataError("times must be numbers of iterations in ascending order, row by row")
    tokens, dim = problem.start.shape[-2:]
    steps = 0.0 if method.steps is None else method.steps
    keep, other = _alias_table(problem.pairs.ravel())
    law, chances = method.law or RateLaw(0.0), (repetitions, *problem.pairs.shape)
    seeds = np.random.SeedSequence(seed).generate_state(repetitions, np.uint64)
    state = {
        "repetitions": repetitions,
        "users": problem.users,
        "items": tokens - problem.users,
        "dim": dim,
        "outputs": outputs,
        "keep": keep,
        "other": other,
        "positive": np.array(np.broadcast_to(problem.positive, chances), order="C"),
        "steps": np.array(per_token("steps", steps, problem.frequencies)),
        "counting": method.law is not None,
        "lr": law.lr,
        "power": law.power,
        "cap": law.cap,
        "blocks": method.optimizer == "sbcd",
        "radius2": problem.radius**2,
        "rows": np.array(np.broadcast_to(problem.start, (repetitions, tokens, dim)), order="C"),
        "counts": np.zeros((repetitions, tokens), np.int64),
        "randoms": seeds,
        "times": np.ascontiguousarray(times, np.int64),
        "taken": np.zeros(repetitions, np.int64),
        "iterates": np.empty((repetitions, outputs, tokens, dim)),
        "left": np.full(repetitions, -1),
    }
    iterations, part = int(times.max()), max(1, _CALL // repetitions)
    for first in range(0, max(iterations, 1), part):
        last = min(first + part, iterations)
        advance(state, first, last, threads or torch.get_num_threads())
        if progress:
            progress(last * repetitions)
    return Runs(state["iterates"].swapaxes(0, 1), state["counts"], state["left"])


def spread_evenly(
    generator: np.random.Generator, low: int, high: int, repetitions: int
) -> NDArray[np.int64]:
    """Iterations drawn uniformly from [low, high], one from each of as many equal parts.

    Each is uniform over the whole range, as the algorithms say; together they cover it, which
    makes means over repetitions more exact.
    """
    places = generator.permutation(repetitions) + generator.random(repetitions)
    return low + np.floor(places / repetitions * (high - low + 1)).astype(np.int64)


def _alias_table(weights: Array) -> tuple[Array, NDArray[np.int64]]:
    """Walker's table: draw a place evenly, keep it with its chance, or else take the other."""
    keep = weights * (len(weights) / weights.sum())
    other = np.arange(len(weights))
    small, large = list(np.flatnonzero(keep < 1)), list(np.flatnonzero(keep >= 1))
    while small and large:
        low, high = small.pop(), large[-1]
        other[low] = high
        keep[high] -= 1 - keep[low]
        if keep[high] < 1:
            small.append(large.pop())
    keep[np.array(small + large, np.int64)] = 1  # but for rounding they are
    return keep, other
