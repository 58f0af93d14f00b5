"""How improvements grow along the tail, in words."""

from __future__ import annotations

from collections.abc import Iterator

from freqsgd.documents.theory import Slope
from freqsgd.report.theory import Theory
from freqsgd.report.wording import count_of, thousands

__all__ = ["in_brief", "slopes"]


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
    if slope.predicted is None:
        return ""
    if slope.low <= slope.predicted <= slope.high:
        return f". The bounds predict {slope.predicted:.3g}, which is within the interval"
    side = "less" if slope.measured < slope.predicted else "more"
    return f". The bounds predict {slope.predicted:.3g}: what was measured is {side}"
