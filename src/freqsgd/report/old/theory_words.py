"""What a simulation says of the theory, in sentences that hold whatever the numbers are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from freqsgd.documents.theory import Slope
from freqsgd.report.old.page import Statement, Tile
from freqsgd.report.old.theory import SIDES, TAIL_RATES, Improvement, Theory, TheoryRun
from freqsgd.report.old.wording import (
    capitalized,
    count_of,
    duration,
    enumerate_words,
    factor,
    small_number,
    thousands,
    times,
)


def tail_words(theory: Theory) -> str:
    """Which distribution the tokens have."""
    tail, rate = theory.problem.tail, theory.problem.rate
    if tail in TAIL_RATES and rate is not None:
        article = "an" if tail == "exponential" else "a"
        return f"{article} {tail} tail ({TAIL_RATES[tail]} = {rate:g})"
    return f"{'a uniform' if tail == 'uniform' else 'an unknown'} distribution"


def theory_title(theory: Theory) -> str:
    """The heading of the page."""
    return f"Bounds and measurements, tokens with {tail_words(theory)}"


def headline(theory: Theory) -> list[Tile]:
    """The few numbers that a reader sees first."""
    tiles = []
    bounded = [run for run in theory.runs if known(run)]
    if bounded:
        held = sum(len(known(run)) - len(broken(run)) for run in bounded)
        count = sum(len(known(run)) for run in bounded)
        names = enumerate_words(run.label for run in bounded)
        tiles.append(Tile("Below the bound", f"{held} of {count}", f"tokens of {names}"))
    for entry in theory.improvements:
        gain = mean_gain(theory, entry)
        if entry.optimizer != "sbcd" and gain is not None:
            tiles.append(
                Tile(
                    f"{entry.label} at the tail",
                    f"{factor(gain)} times",
                    "SGD's error over its own, measured; geometric mean beyond the top tokens",
                )
            )
    if theory.checks:
        held = sum(check.holds for check in theory.checks)
        note = "of the paper's statements came out here"
        tiles.append(Tile("Statements", f"{held} of {len(theory.checks)}", note))
    return tiles


def summarize(theory: Theory) -> list[Statement]:
    """All that can be said; topics without data are left out."""
    statements = {
        "Simulated": simulated(theory),
        "Bounds": bounds(theory),
        "Tail tokens": " ".join(tail_gains(theory)),
        "Top tokens": " ".join(top_gains(theory)),
        "Along the tail": " ".join(slopes(theory)),
        "Corollary": corollary(theory),
        "Did not come out": did_not(theory),
        "Read with care": " ".join(caveats(theory)),
    }
    return [Statement(topic, words) for topic, words in statements.items() if words]


def simulated(theory: Theory) -> str:
    """The problem, and how often and how long it ran."""
    problem = theory.problem
    sides = enumerate_words(
        f"{thousands(len(theory.places(side)))} {plural if len(theory.places(side)) != 1 else side}"
        for side, plural in SIDES.items()
        if theory.places(side)
    )
    names = enumerate_words(run.label for run in theory.runs)
    sentences = [f"{names or 'No optimizer'} on {sides} with {tail_words(theory)}."]
    ball = {"dim": "vectors of {:g} numbers", "radius": "in a ball of radius {:g}"}
    parts = [way.format(value) for key, way in ball.items() if (value := getattr(problem, key))]
    if problem.smoothness is not None:
        parts.append(f"so L = {problem.smoothness:g}")
    if parts:
        sentences.append(f"{capitalized(', '.join(parts))}.")
    if problem.repetitions and problem.iterations:
        took = f", in {duration(theory.seconds)}" if theory.seconds else ""
        sentences.append(
            f"{thousands(problem.repetitions)} repetitions of {thousands(problem.iterations)} "
            f"iterations, a pair each{took}; measured is {output(theory)}."
        )
    return " ".join(sentences)


def output(theory: Theory) -> str:
    """Which iterate is looked at."""
    if theory.problem.output == "last":
        return "the last iterate, though the theorems speak of one drawn at random"
    return "an iterate drawn at random, as the theorems have it"


def known(run: TheoryRun) -> list[tuple[int, float, float]]:
    """Tokens that have both: their place, the bound and what was measured."""
    pairs = enumerate(zip(run.bounds, run.measured, strict=True))
    return [
        (place, bound, measured)
        for place, (bound, measured) in pairs
        if bound is not None and measured is not None
    ]


def broken(run: TheoryRun) -> list[int]:
    """Tokens whose measurement is above the bound."""
    return [place for place, bound, measured in known(run) if measured > bound]


def bounds(theory: Theory) -> str:
    """Whether every bound held, and how close it came."""
    bounded = [run for run in theory.runs if known(run)]
    if not bounded:
        return ""
    whole = [run.label for run in bounded if not broken(run)]
    sentences = []
    if whole:
        sentences.append(
            f"The mean squared gradient of every token stays below the bound for "
            f"{enumerate_words(whole)}."
        )
    for run in bounded:
        if places := broken(run):
            first = enumerate_words(theory.name(place) for place in places[:3])
            more = " and others" if len(places) > 3 else ""
            sentences.append(
                f"{run.label} is above its bound at {len(places)} of {len(known(run))} tokens: "
                f"{first}{more}."
            )
    closest = [f"{run.label} {margin(run)}" for run in bounded if margin(run)]
    if closest:
        sentences.append(f"How far below at the nearest token: {enumerate_words(closest)}.")
    without = [run.label for run in theory.runs if not known(run)]
    if without:
        sentences.append(f"{enumerate_words(without)} has no bound here.")
    return " ".join(sentences)


def margin(run: TheoryRun) -> str:
    """How many times the bound is above what was measured, where it is nearest."""
    ratios = [bound / measured for _, bound, measured in known(run) if measured > 0]
    return f"{factor(min(ratios))} times" if ratios else ""


def interval(low: float | None, high: float | None, *, inverted: bool) -> str:
    """The 95% interval of a ratio in brackets, or of its inverse; nothing where it is unknown."""
    if low is None or high is None or low <= 0:
        return ""
    ends = (1 / high, 1 / low) if inverted else (low, high)
    return f" ({ends[0]:.3g} to {ends[1]:.3g})"


def gains(entry: Improvement, places: Sequence[int]) -> list[float]:
    """Measured improvements that have a logarithm."""
    values = (entry.measured[place] for place in places)
    return [value for value in values if value is not None and value > 0]


def mean_gain(theory: Theory, entry: Improvement) -> float | None:
    """The geometric mean of what was measured beyond the top tokens."""
    values = gains(entry, theory.tail)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def against_sgd(value: float) -> str:
    """An error, when SGD's is ``value`` times as large."""
    return times(1, value, "smaller than SGD's", "larger than SGD's", "as large as SGD's")


def tail_gains(theory: Theory) -> Iterator[str]:
    """How much smaller errors are beyond the top tokens, on average and at the rarest token."""
    for entry in theory.improvements:
        gain = mean_gain(theory, entry)
        if gain is None:
            continue
        count = len(gains(entry, theory.tail))
        rarest = min(theory.tail, key=lambda place: theory.tokens.p[place] or 0)
        yield (
            f"After equally many iterations {entry.label}'s error is {against_sgd(gain)} "
            f"(geometric mean over {thousands(count)} tokens beyond the top ones)"
            f"{at_token(theory, entry, rarest)}."
        )


def at_token(theory: Theory, entry: Improvement, place: int) -> str:
    """Measured and promised at one token."""
    value, promised = entry.measured[place], entry.bounds[place]
    if value is None or value <= 0:
        return ""
    words = (
        f"; at {theory.name(place)}, the rarest, {against_sgd(value)}"
        f"{interval(entry.low[place], entry.high[place], inverted=value < 1)}"
    )
    if promised is None:
        return words
    iterations = entry.needed[place]
    equal = "" if iterations is None else f", or {factor(iterations)} times fewer iterations"
    return f"{words}, where the bounds say {factor(promised)} times{equal}"


def top_gains(theory: Theory) -> Iterator[str]:
    """That top tokens lose no more than a constant."""
    tail = set(theory.tail)
    top = [place for place in range(len(theory.tokens.side)) if place not in tail]
    for entry in theory.improvements:
        if values := gains(entry, top):
            ends = dict.fromkeys(f"{end:.3g}" for end in (min(values), max(values)))
            yield (
                f"SGD's error over {entry.label}'s is {' to '.join(ends)} "
                f"at the {thousands(len(values))} top tokens."
            )


def corollary(theory: Theory) -> str:
    """Whether the corollary applies, and what it guarantees at the rarest token."""
    found = theory.problem.corollary
    uniform = theory.problem.tail == "uniform"
    if not found.applies:
        reason = found.reason
        instead = " FA-SGD is SGD with one rate for users and one for items." if uniform else ""
        return f"The corollary does not apply{f': {reason}' if reason else ''}.{instead}"
    if uniform:
        return "All tokens are equally frequent: FA-SGD is SGD, and gains nothing."
    entry = next((each for each in theory.improvements if any(each.guaranteed)), None)
    if entry is None:
        return "The corollary applies."
    place, most = max(
        ((place, value) for place, value in enumerate(entry.guaranteed) if value is not None),
        key=lambda pair: pair[1],
    )
    return (
        f"The corollary applies. At {theory.name(place)} it guarantees {entry.label} "
        f"a bound that needs {factor(most)} times fewer iterations than SGD's: "
        f"{factor(math.sqrt(most))} times less error after equally many."
    )


def did_not(theory: Theory) -> str:
    """The statements that failed."""
    failed = [check for check in theory.checks if not check.holds]
    if not failed:
        return ""
    return " ".join(
        f"{capitalized(check.statement.rstrip('.'))}: {check.detail.rstrip('.') or 'no'}."
        for check in failed
    )


def caveats(theory: Theory) -> Iterator[str]:
    """What limits what was measured."""
    repetitions = theory.problem.repetitions
    for run in theory.runs:
        if run.invalid:
            of = f" of {thousands(repetitions)}" if repetitions else ""
            yield (
                f"{capitalized(small_number(run.invalid))}{of} repetitions of {run.label} left "
                f"the ball in which L holds and {'is' if run.invalid == 1 else 'are'} not counted."
            )
    if theory.improvements:
        yield (
            "Bounds are upper limits: that one is smaller than another does not oblige what is "
            "measured to be."
        )


def slopes(theory: Theory) -> Iterator[str]:
    """How fast improvements grow with rank, against what the bounds predict."""
    known = [(entry.label, entry.slope) for entry in theory.improvements if entry.slope]
    for label, slope in known:
        yield (
            f"The logarithm of SGD's error over {label}'s {grows(slope)} "
            f"(95% interval {slope.low:.3g} to {slope.high:.3g}{over(slope)}): "
            f"{verdict(slope)}{prediction(slope)}."
        )
    yield from dict.fromkeys(words for _, slope in known if (words := beginning(slope)))


def in_brief(theory: Theory) -> str:
    """All slopes in a sentence."""
    known = [(entry.label, entry.slope) for entry in theory.improvements if entry.slope]
    if not known:
        return ""
    told = ", ".join(
        f"{label} {slope.measured:.3g} ({slope.low:.3g} to {slope.high:.3g})"
        for label, slope in known
    )
    predicted = {slope.predicted: f"{slope.predicted:.3g}" for _, slope in known if slope.predicted}
    bounds = f"; the bounds predict {' and '.join(predicted.values())}" if predicted else ""
    return (
        f"The logarithm of SGD's error over the optimizer's, per {unit(known[0][1])} "
        f"(95% interval): {told}{bounds}."
    )


def grows(slope: Slope) -> str:
    """The slope itself."""
    verb = "rises" if slope.measured >= 0 else "falls"
    return f"{verb} by {abs(slope.measured):.3g} per {unit(slope)}"


def unit(slope: Slope) -> str:
    """What a slope is per."""
    return "rank" if slope.axis == "rank" else f"unit of {slope.axis}"


def over(slope: Slope) -> str:
    """Which tokens it was measured on."""
    return "" if slope.tokens is None else f", over {count_of(slope.tokens, 'token')}"


def beginning(slope: Slope) -> str:
    """That an improvement cannot grow where SGD itself has hardly moved."""
    if slope.begun is None or slope.tokens is None or slope.begun >= slope.tokens:
        return ""
    return (
        f"SGD has begun to learn {thousands(slope.begun)} of these tokens: their error is less "
        "than half of that at the start. The others take more iterations than these, so that the "
        "improvement cannot grow there."
    )


def verdict(slope: Slope) -> str:
    """Whether the interval excludes 0."""
    if slope.low > 0:
        return "the rarer the token, the more is gained"
    if slope.high < 0:
        return "the rarer the token, the less is gained"
    return "not told apart from no slope"


def prediction(slope: Slope) -> str:
    """What the bounds predict, and whether that is within the interval."""
    if slope.low <= slope.predicted <= slope.high:
        return f". The bounds predict {slope.predicted:.3g}, which is within the interval"
    side = "less" if slope.measured < slope.predicted else "more"
    return f". The bounds predict {slope.predicted:.3g}: what was measured is {side}"
