"""The paper's statements, and whether they hold in a simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from freqsgd.documents.theory import Check, Improvement
from freqsgd.rates import RateLaw
from freqsgd.theory.bounds import variance_bounds
from freqsgd.theory.improvement import EXPONENTIAL, POLYNOMIAL, counting_condition
from freqsgd.theory.measured import ANY, LAST, Known, Measured, counting_cost
from freqsgd.theory.settings import Settings

NAMES = {"sgd": "SGD", "fasgd": "FA-SGD", "cfsgd": "CF-SGD", "sbcd": "SBCD"}
_THEOREMS = {"fasgd": "Theorem 1", "sgd": "Theorem 2", "cfsgd": "Theorem 3"}
_WORST = {"exponential": math.sqrt(EXPONENTIAL), "polynomial": math.sqrt(POLYNOMIAL)}


def statements(
    settings: Settings,
    known: Known,
    measured: Mapping[str, Measured],
    improvements: Sequence[Improvement],
) -> Iterator[Check]:
    """Yield every statement that can be checked in this simulation."""
    yield from _assumptions(known, measured)
    yield _proposition(measured["sgd"])
    for name, theorem in _THEOREMS.items():
        yield _theorem(theorem, NAMES[name], measured[name])
    if settings.tail == "uniform":
        yield _uniform(settings, measured)
    else:
        yield from _corollaries(settings, known, improvements)
    yield _counted_rates(settings.iterations, measured["cfsgd"])


def _assumptions(known: Known, measured: Mapping[str, Measured]) -> Iterator[Check]:
    largest = max(float((each.variance / known.sigma2).max()) for each in measured.values())
    yield Check(
        "Assumption 1: the conditional variance of every token stays below sigma_k^2",
        largest <= 1,
        f"the largest at the iterates put out is {largest:.3g} of sigma_k^2",
    )
    left = {name: int((~each.valid).sum()) for name, each in measured.items()}
    gone = ", ".join(f"{NAMES[name]} {count}" for name, count in left.items() if count)
    yield Check(
        "Assumption 2: all rows stay in the ball of radius "
        f"{measured['sgd'].problem.radius:g}, where L is {known.L:g}",
        not gone,
        f"repetitions that left it are left out: {gone}" if gone else "no repetition left it",
    )


def _proposition(sgd: Measured) -> Check:
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
    return Check(
        "Proposition 1: the gradient's variance lies between its bounds",
        bool(lows.max() <= 1 + slack and highs.min() >= 1 - slack),
        f"the lower bound is {lows.min():.2g} to {lows.max():.2g} of the enumerated variance, the "
        f"upper {highs.min():.6g} to {highs.max():.6g}",
    )


def _theorem(theorem: str, name: str, measured: Measured) -> Check:
    bound = measured.method.bound
    assert bound is not None
    shares = measured.error.high / bound
    small = int((bound < measured.start).sum())
    last = " (bounds of a random iterate; this is the last one)" if measured.kind == LAST else ""
    return Check(
        f"{theorem}: E||grad f_k||^2 of {name} is below its bound for every token",
        bool(shares.max() <= 1),
        f"upper ends of the intervals are {shares.min():.2g} to {shares.max():.2g} of the "
        f"bounds, which are below the error at the start for {small} of {len(shares)} tokens{last}",
    )


def _uniform(settings: Settings, measured: Mapping[str, Measured]) -> Check:
    sgd, fasgd = measured["sgd"], measured["fasgd"]
    if settings.users == settings.items:
        apart = np.abs(fasgd.runs.iterates - sgd.runs.iterates).max()
        return Check(
            "Corollary 1: for uniform frequencies FA-SGD is SGD",
            bool(apart < 1e-6),
            f"rows differ by {apart:.2g} at most, from rounding",
        )
    ratios = fasgd.steps / sgd.steps
    users, items = ratios[: settings.users], ratios[settings.users :]
    return Check(
        "Corollary 1 with |U| other than |V|: FA-SGD is SGD with one rate for each side",
        bool(np.allclose(users, users[0]) and np.allclose(items, items[0])),
        f"FA-SGD's steps are {users[0]:.3g} of SGD's for users, {items[0]:.3g} for items",
    )


def _corollaries(
    settings: Settings, known: Known, improvements: Sequence[Improvement]
) -> Iterator[Check]:
    """Check Corollaries 2 and 3; where they do not apply, what part 2 and 3 would say."""
    largest = math.sqrt(float(known.sigma2.max()) / (known.L * known.gap))
    yield Check(
        "Condition of CF-SGD's corollaries: sigma / sqrt(L (f(Theta^0) - f*)) <= 1",
        counting_condition(known.sigma2, known.gap, known.L),
        f"the largest is {largest:.4g}",
    )
    applies = settings.exception is None
    for entry in improvements:
        name, slope = NAMES[entry.optimizer], entry.slope
        if entry.optimizer != "sbcd" and applies and settings.tops.any():
            # Part 1: the constants bound the ratio of iterations, their roots that of errors.
            worst = _WORST[settings.tail] * counting_cost(known, entry.optimizer)
            errors = 1 / np.array(entry.measured)[settings.tops]
            yield Check(
                f"Corollary, part 1: {name}'s error for top tokens is at most {worst:.3g} of SGD's",
                bool(errors.max() <= worst),
                f"{errors.min():.2g} to {errors.max():.2g} of it, for {len(errors)} tokens",
            )
        if slope is not None:
            part = "Corollary, parts 2 and 3" if applies else "No corollary"
            why = "" if applies else f" ({settings.exception})"
            yield Check(
                f"{part}: {name}'s improvement over SGD grows along the tail{why}",
                bool(slope.low > 0),
                f"the log of SGD's error over its own rises by {slope.measured:.3f} per "
                f"{slope.axis} ({slope.low:.3f} to {slope.high:.3f}) over {slope.tokens} tail "
                f"tokens, of which SGD has begun to learn {slope.begun}; the bounds' ratio by "
                f"{slope.predicted:.3f}",
            )


def _counted_rates(iterations: int, measured: Measured) -> Check:
    """Compare rates by the counts at the end with those of the true frequencies.

    A count's relative spread is sqrt((1 - p) / (p T)), that of a rate half as much; how closely
    it is met depends on the number of repetitions.
    """
    law, p = measured.method.steps, measured.problem.frequencies
    assert isinstance(law, RateLaw)
    counted = law.rate(np.maximum(measured.runs.counts, 1) / iterations)
    deviation = np.sqrt(((counted / law.rate(p) - 1) ** 2).mean(0))
    expected = np.sqrt((1 - p) / (p * iterations)) / 2
    return Check(
        "CF-SGD's rates approach FA-SGD's as tokens are counted",
        bool((deviation <= (1 + 5 / math.sqrt(len(counted))) * expected + 1e-12).all()),
        f"root mean square deviation after {iterations:,} iterations: {deviation[p.argmax()]:.1g} "
        f"for the token seen most, {deviation.max():.1g} at most; counting noise alone gives "
        f"{expected[p.argmax()]:.1g} and {expected.max():.1g}",
    )
