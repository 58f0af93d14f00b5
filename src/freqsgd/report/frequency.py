"""How scores differ between frequent and rare tokens."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean

from freqsgd.report.comparison import Standing, best_standing, leaders, standings
from freqsgd.report.kinds import Kind
from freqsgd.report.measures import CLASSES, Breakdown
from freqsgd.report.results import Results, Run
from freqsgd.report.wording import enumerate_words, score

__all__ = ["against_sgd", "class_means", "sgd_level"]


def class_means(breakdown: Breakdown, runs: tuple[Run, ...]) -> dict[str, float]:
    """The mean score of each class over runs, where there is one."""
    found = {}
    for name in CLASSES:
        values = [value for run in runs if (value := breakdown.measure(name).of(run)) is not None]
        if values:
            found[name] = mean(values)
    return found


def sgd_level(results: Results, kind: Kind, breakdown: Breakdown) -> dict[str, float]:
    """What SGD scores; nothing if the scores are not to be seen against it, or nothing else ran."""
    sgd = best_standing(results, "sgd", kind.outcome)
    if not breakdown.against_sgd or sgd is None or rival(results, kind) is None:
        return {}
    return class_means(breakdown, sgd.runs)


def rival(results: Results, kind: Kind) -> Standing | None:
    """Whom to see against SGD: CF-SGD, else FA-SGD, else the best of the others."""
    for name in ("cfsgd", "fasgd"):
        if found := best_standing(results, name, kind.outcome):
            return found
    others = [one for one in standings(results, kind.outcome) if one.runs[0].optimizer != "sgd"]
    return next(iter(leaders(others, kind.outcome)), None)


def against_sgd(results: Results, kind: Kind, breakdown: Breakdown) -> str:
    """What each class gains or loses, and whether rare tokens gain most."""
    theirs = sgd_level(results, kind, breakdown)
    found = rival(results, kind)
    if found is None or not theirs:
        return ""
    mine = class_means(breakdown, found.runs)
    gains = {
        name: round(theirs[name], 4) - round(mine[name], 4)
        for name in CLASSES
        if name in theirs and name in mine
    }
    if "tail" not in gains:
        return ""
    parts = enumerate_words(f"{change(gain)} on {name} words" for name, gain in gains.items())
    return f"Against SGD, {found.label} is {parts}: {verdict(gains)}."


def change(gain: float) -> str:
    """A gain in words."""
    if is_none(gain):
        return "the same"
    return f"{score(abs(gain))} {'lower' if gain > 0 else 'higher'}"


def verdict(gains: Mapping[str, float]) -> str:
    """Whether rare words gain, and whether they gain most."""
    tail = gains["tail"]
    if is_none(tail):
        return "rare words neither gain nor lose"
    verb, other_verb = ("gain", "lose") if tail > 0 else ("lose", "gain")
    same_way = [name for name, gain in gains.items() if gain * tail > 0 and not is_none(gain)]
    other_way = [name for name, gain in gains.items() if gain * tail < 0 and not is_none(gain)]
    words = f"rare words {verb}"
    most = max(same_way, key=lambda name: abs(gains[name]))
    if len(same_way) > 1:
        words += " most" if most == "tail" else f", but less than {most} words"
    if other_way:
        words += f", while {enumerate_words(other_way)} words {other_verb}"
    return words


def is_none(gain: float) -> bool:
    """Whether it is 0 to the digits that are shown."""
    return score(abs(gain)) == score(0)
