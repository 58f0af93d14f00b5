"""The paper's statements, and whether they hold in a simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freqsgd.theory.bounds import variance_bounds
from freqsgd.theory.improvement import EXPONENTIAL, POLYNOMIAL, counting_condition
from freqsgd.theory.measured import ANY, Known, Measured, counting_cost
from freqsgd.theory.settings import Settings

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
    settings: Settings,
    known: Known,
    measured: Mapping[str, Measured],
    improvements: Sequence[Mapping[str, Any]],
) -> list[Statement]:
    """Return all that can be said of this simulation."""
    return [
        *_assumptions(known, measured),
        _proposition(measured["sgd"]),
        *_theorems(measured),
        *_corollaries(settings, known, measured, improvements),
        _counted_rates(measured["cfsgd"]),
    ]


def _assumptions(known: Known, measured: Mapping[str, Measured]) -> Iterator[Statement]:
    largest = max(float((each.variance / known.sigma2).max()) for each in measured.values())
    yield Statement(
        "Assumption 1: the conditional variance of every token stays below sigma_k^2",
        largest <= 1,
        f"the largest at the iterates put out is {largest:.3g} of sigma_k^2",
    )
    left = {name: int((~each.valid).sum()) for name, each in measured.items()}
    gone = ", ".join(f"{NAMES[name]} {count}" for name, count in left.items() if count)
    yield Statement(
        "Assumption 2: all rows stay in the ball of radius "
        f"{measured['sgd'].problem.radius:g}, where L is {known.L:g}",
        not gone,
        f"repetitions that left it are left out: {gone}" if gone else "no repetition left it",
    )


def _proposition(sgd: Measured) -> Statement:
    """Check Proposition 1 at every iterate of SGD, with the variances there as sigma_k^2."""
    problem, rows = sgd.problem, sgd.runs.iterates[ANY]
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
        small = int((each.bound < each.start).sum())
        yield Statement(
            f"{theorem}: E||grad f_k||^2 of {NAMES[name]} is below its bound for every token",
            bool(shares.max() <= 1),
            f"upper ends of the intervals are {shares.min():.2g} to {shares.max():.2g} of the "
            f"bounds, which are below the error at the start for {small} of {len(shares)} tokens"
            + (" (bounds of a random iterate; this is the last one)" if each.last else ""),
        )


def _corollaries(
    settings: Settings,
    known: Known,
    measured: Mapping[str, Measured],
    improvements: Sequence[Mapping[str, Any]],
) -> Iterator[Statement]:
    if settings.tail == "uniform":
        yield _uniform(settings, measured)
        return
    largest = math.sqrt(float(known.sigma2.max()) / (known.L * known.gap))
    yield Statement(
        "Condition of CF-SGD's corollaries: sigma / sqrt(L (f(Theta^0) - f*)) <= 1",
        counting_condition(known.sigma2, known.gap, known.L),
        f"the largest is {largest:.4g}",
    )
    for entry in improvements:
        name = entry["optimizer"]
        if name != "sbcd":
            if settings.exception is None:
                yield from _top(settings, entry, counting_cost(known, name))
            if entry["slope"] is not None:
                yield _slope(settings, entry)


def _uniform(settings: Settings, measured: Mapping[str, Measured]) -> Statement:
    sgd, fasgd = measured["sgd"], measured["fasgd"]
    if settings.users == settings.items:
        apart = np.abs(fasgd.runs.iterates - sgd.runs.iterates).max()
        return Statement(
            "Corollary 1: for uniform frequencies FA-SGD is SGD",
            bool(apart < 1e-6),
            f"rows differ by {apart:.2g} at most, from rounding",
        )
    ratios = fasgd.steps / sgd.steps
    users, items = ratios[: settings.users], ratios[settings.users :]
    return Statement(
        "Corollary 1 with |U| other than |V|: FA-SGD is SGD with one rate for each side",
        bool(np.allclose(users, users[0]) and np.allclose(items, items[0])),
        f"FA-SGD's steps are {users[0]:.3g} of SGD's for users, {items[0]:.3g} for items",
    )


def _top(settings: Settings, improvement: Mapping[str, Any], cost: float) -> Iterator[Statement]:
    """Part 1: the corollaries' constants bound the ratio of iterations, its root that of errors."""
    worst, name = _WORST[settings.tail] * cost, NAMES[improvement["optimizer"]]
    errors = 1 / np.array(improvement["measured"])[settings.tops]
    if len(errors):
        yield Statement(
            f"Corollary, part 1: {name}'s error for top tokens is at most {worst:.3g} of SGD's",
            bool(errors.max() <= worst),
            f"{errors.min():.2g} to {errors.max():.2g} of it, for {len(errors)} tokens",
        )


def _slope(settings: Settings, improvement: Mapping[str, Any]) -> Statement:
    """Parts 2 and 3, or what they would say where the corollary does not apply."""
    name, slope = NAMES[improvement["optimizer"]], improvement["slope"]
    part = "Corollary, parts 2 and 3" if settings.exception is None else "No corollary"
    words = f"{part}: {name}'s improvement over SGD grows along the tail"
    if settings.exception is not None:
        words += f" ({settings.exception})"
    return Statement(
        words,
        bool(slope["low"] > 0),
        f"the log of SGD's error over its own rises by {slope['measured']:.3f} per "
        f"{slope['axis']} ({slope['low']:.3f} to {slope['high']:.3f}) over {slope['tokens']} tail "
        f"tokens, of which SGD has begun to learn {slope['begun']}; the bounds' ratio by "
        f"{slope['predicted']:.3f}",
    )


def _counted_rates(measured: Measured) -> Statement:
    """Compare rates by the counts at the end with those of the true frequencies.

    A count's relative spread is sqrt((1 - p) / (p T)), that of a rate half as much; how closely
    it is met depends on the number of repetitions.
    """
    law, p, T = measured.method.law, measured.problem.frequencies, measured.iterations
    assert law is not None
    counted = law.rate(np.maximum(measured.runs.counts, 1) / T)
    deviation = np.sqrt(((counted / law.rate(p) - 1) ** 2).mean(0))
    expected = np.sqrt((1 - p) / (p * T)) / 2
    return Statement(
        "CF-SGD's rates approach FA-SGD's as tokens are counted",
        bool((deviation <= (1 + 5 / math.sqrt(len(counted))) * expected + 1e-12).all()),
        f"root mean square deviation after {T:,} iterations: {deviation[p.argmax()]:.1g} for the "
        f"token seen most, {deviation.max():.1g} at most; counting noise alone gives "
        f"{expected[p.argmax()]:.1g} and {expected.max():.1g}",
    )
