"""The paper's statements, and whether they hold in a simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freqsgd.theory.bounds import variance_bounds
from freqsgd.theory.improvement import EXPONENTIAL, POLYNOMIAL, Corollary, counting_condition
from freqsgd.theory.measured import ANY, Measured
from freqsgd.theory.problem import Array, Problem

__all__ = ["Statement", "statements"]

NAMES = {"sgd": "SGD", "fasgd": "FA-SGD", "cfsgd": "CF-SGD", "sbcd": "SBCD"}
_THEOREMS = {"fasgd": "Theorem 1", "sgd": "Theorem 2", "cfsgd": "Theorem 3"}
_WORST = {"exponential": math.sqrt(EXPONENTIAL), "polynomial": math.sqrt(POLYNOMIAL)}


@dataclass(frozen=True)
class Statement:
    """What the paper says, whether it holds here, and the numbers that show it."""

    statement: str
    holds: bool
    detail: str


def statements(
    problem: Problem,
    sigma2: Array,
    sides: Sequence[Corollary],
    measured: Mapping[str, Measured],
    improvements: Sequence[Mapping[str, Any]],
) -> list[Statement]:
    """All that can be said of this simulation."""
    return [
        *_assumptions(problem, sigma2, measured),
        _proposition(problem, measured),
        *_theorems(measured),
        *_corollaries(problem, sigma2, sides, measured, improvements),
        _counted_rates(measured["cfsgd"]),
    ]


def _assumptions(
    problem: Problem, sigma2: Array, measured: Mapping[str, Measured]
) -> Iterator[Statement]:
    largest = max(float((each.variance / sigma2).max()) for each in measured.values())
    yield Statement(
        "Assumption 1: the conditional variance of every token stays below sigma_k^2",
        largest <= 1,
        f"the largest at the iterates put out is {largest:.3g} of sigma_k^2",
    )
    left = {name: int((~each.valid).sum()) for name, each in measured.items()}
    gone = ", ".join(f"{NAMES[name]} {count}" for name, count in left.items() if count)
    yield Statement(
        f"Assumption 2: all rows stay in the ball of radius {problem.radius:g}, where L is "
        f"{problem.smoothness:g}",
        not gone,
        f"repetitions that left it are left out: {gone}" if gone else "no repetition left it",
    )


def _proposition(problem: Problem, measured: Mapping[str, Measured]) -> Statement:
    """Proposition 1 at every iterate of SGD, with the conditional variances there as sigma_k^2."""
    rows = measured["sgd"].runs.iterates[ANY]
    parts = zip(
        problem.gradient_norms2(rows),
        problem.conditional_variance(rows),
        problem.gradient_variance(rows),
        strict=True,
    )
    shares = []
    for norms2, conditional, variance in parts:
        low, high = variance_bounds(problem.frequencies, norms2, np.maximum(conditional, 0))
        shares.append((low / variance, high / variance))
    lows, highs = np.array(shares).T
    slack = 1e-9  # of rounding: the upper bound is the variance itself here
    return Statement(
        "Proposition 1: the gradient's variance lies between its bounds",
        bool(lows.max() <= 1 + slack and highs.min() >= 1 - slack),
        f"the lower bound is {lows.min():.2g} to {lows.max():.2g} of the enumerated variance, the "
        f"upper {highs.min():.6g} to {highs.max():.6g}",
    )


def _theorems(measured: Mapping[str, Measured]) -> Iterator[Statement]:
    for name, theorem in _THEOREMS.items():
        each = measured[name]
        assert each.bound is not None
        shares = each.error.high / each.bound
        yield Statement(
            f"{theorem}: E||grad f_k||^2 of {NAMES[name]} is below its bound for every token",
            bool(shares.max() <= 1),
            f"upper ends of the intervals are {shares.min():.2g} to {shares.max():.2g} of the "
            "bounds" + (" (of a random iterate; this is the last one)" if each.last else ""),
        )


def _corollaries(
    problem: Problem,
    sigma2: Array,
    sides: Sequence[Corollary],
    measured: Mapping[str, Measured],
    improvements: Sequence[Mapping[str, Any]],
) -> Iterator[Statement]:
    tail = sides[0].tail
    if tail == "uniform":
        yield _uniform(measured)
        return
    holds = counting_condition(sigma2, problem.gap, problem.smoothness)
    largest = math.sqrt(float(np.max(sigma2)) / (problem.smoothness * problem.gap))
    yield Statement(
        "Condition of CF-SGD's corollaries: sigma / sqrt(L (f(Theta^0) - f*)) <= 1",
        holds,
        f"the largest is {largest:.4g}",
    )
    for improvement in improvements:
        name = improvement["optimizer"]
        if name != "sbcd":
            yield _top(name, problem, sides, improvement)
            yield _slope(name, improvement)


def _uniform(measured: Mapping[str, Measured]) -> Statement:
    steps = measured["fasgd"].steps / measured["sgd"].steps
    apart = np.abs(measured["fasgd"].runs.iterates - measured["sgd"].runs.iterates).max()
    users, items = measured["sgd"].problem.pairs.shape
    if users == items:
        return Statement(
            "Corollary 1: for uniform frequencies FA-SGD is SGD",
            bool(apart < 1e-6),
            f"rows differ by {apart:.2g} at most, from rounding",
        )
    return Statement(
        "Corollary 1 with |U| other than |V|: FA-SGD is SGD with one rate for each side",
        bool(len(np.unique(steps.round(9))) == 2),
        f"FA-SGD's steps are {steps.min():.3g} and {steps.max():.3g} of SGD's",
    )


def _top(
    name: str, problem: Problem, sides: Sequence[Corollary], improvement: Mapping[str, Any]
) -> Statement:
    users, items = sides
    top = [*range(users.top), *(problem.users + n for n in range(items.top))]
    worst = _WORST[users.tail]
    if not top:
        return Statement(
            f"Corollary, part 1: {NAMES[name]} is as fast as SGD for top tokens",
            True,
            "there are no top tokens",
        )
    errors = 1 / np.array(improvement["measured"])[top]
    surely = 1 / np.array(improvement["high"])[top]
    return Statement(
        f"Corollary, part 1: {NAMES[name]}'s error for top tokens is at most {worst:.3g} of SGD's",
        bool(surely.max() <= worst),
        f"{errors.min():.2g} to {errors.max():.2g} of it, for {len(top)} tokens",
    )


def _slope(name: str, improvement: Mapping[str, Any]) -> Statement:
    words = f"Corollary, parts 2 and 3: {NAMES[name]}'s improvement over SGD grows along the tail"
    slope = improvement["slope"]
    if slope is None:
        return Statement(words, False, "fewer than three ranks in the tail: no slope")
    return Statement(
        words,
        bool(slope["low"] > 0),
        f"the log of SGD's error over its own rises by {slope['measured']:.3f} per "
        f"{slope['axis']} ({slope['low']:.3f} to {slope['high']:.3f}) over {slope['tokens']} tail "
        f"tokens, of which SGD has begun to learn {slope['begun']}; the bounds' ratio by "
        f"{slope['predicted']:.3f}",
    )


def _counted_rates(measured: Measured) -> Statement:
    """Rates by the counts at the end, against those of the true frequencies.

    A count's relative spread is sqrt((1 - p) / (p T)), that of a rate half as much.
    """
    law, p, T = measured.method.law, measured.problem.frequencies, measured.iterations
    assert law is not None
    counted = law.rate(np.maximum(measured.runs.counts, 1) / T)
    deviation = np.sqrt(((counted / law.rate(p) - 1) ** 2).mean(0))
    expected = np.sqrt((1 - p) / (p * T)) / 2
    return Statement(
        "CF-SGD's rates approach FA-SGD's as tokens are counted",
        bool((deviation <= 2 * expected + 1e-12).all()),
        f"root mean square deviation after {T:,} iterations: {deviation.min():.1g} for the token "
        f"seen most, {deviation.max():.1g} at most; counting noise alone gives "
        f"{expected.min():.1g} to {expected.max():.1g}",
    )
