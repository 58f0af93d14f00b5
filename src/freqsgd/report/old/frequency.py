"""How scores differ between frequent and rare tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import mean
from typing import TYPE_CHECKING, Any

from freqsgd.optimizers import Style
from freqsgd.report.old.comparison import Standing, best_standing, leaders, standings
from freqsgd.report.old.figures import NO_BOX, figure, level_line, plotly_text
from freqsgd.report.old.kinds import Kind
from freqsgd.report.old.measures import CLASSES, Breakdown
from freqsgd.report.old.results import Results, Run
from freqsgd.report.old.style import styles
from freqsgd.report.old.wording import enumerate_words, score

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


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


def by_frequency(
    results: Results, breakdown: Breakdown, level: Mapping[str, float]
) -> Figure | None:
    """Scores of head, torso and tail; less those of ``level`` if it has any."""
    traces = [
        bars(run, place, style, breakdown, level)
        for place, (run, style) in enumerate(zip(results.runs, styles(results.runs), strict=True))
    ]
    if level:  # SGD itself would take up room for nothing
        traces = [trace for trace in traces if any(trace["y"])]
    values = [value for trace in traces for value in trace["y"] if value is not None]
    if not values:
        return None
    scale = difference_range(values) if level else score_range(values, breakdown.higher_is_better)
    return figure(
        traces,
        barmode="group",
        uniformtext={"mode": "hide", "minsize": 9},  # what cannot be read is left to the legend
        bargap=0.22,
        bargroupgap=0.08,
        hovermode="closest",
        xaxis={"type": "category", "showgrid": False},
        yaxis={"range": scale, "tickformat": "" if level else ".2f"},
        shapes=[level_line(0)] if level else [],
    )


def bars(
    run: Run, place: int, style: Style, breakdown: Breakdown, level: Mapping[str, float]
) -> dict[str, Any]:
    """A run's bars."""
    scores = [breakdown.measure(name).of(run) for name in CLASSES]
    heights = (
        [less(score, level.get(name)) for name, score in zip(CLASSES, scores, strict=True)]
        if level
        else scores
    )
    name = plotly_text(run.label)
    sign = "+" if level else ""
    difference = f" (%{{y:{sign}.4f}})" if level else ""
    return {
        "type": "bar",
        "name": name,
        "meta": {"run": place},
        "x": list(CLASSES),
        "y": heights,
        "customdata": scores,
        "marker": {"color": style.light, "line": {"width": 0}},
        "texttemplate": f"{name} %{{y:{sign}.3f}}",
        "textangle": -90,
        "textposition": "inside",
        "insidetextanchor": "end",
        "hovertemplate": f"<b>{name}</b> %{{customdata:.4f}}{difference}<br>%{{x}}{NO_BOX}",
    }


def less(score: float | None, level: float | None) -> float | None:
    """The difference, where there is one."""
    return None if score is None or level is None else score - level


def score_range(values: list[float], is_auc: bool) -> list[float]:
    """A range that shows differences: it starts at 0 only if it would start near it."""
    room = max(0.02, max(values) - min(values))
    start = math.floor(20 * (min(values) - room)) / 20
    end = max(values) + 0.15 * room
    return [start if start > min(values) / 4 else 0.0, min(1.0, end) if is_auc else end]


def difference_range(values: list[float]) -> list[float]:
    """A range that holds all values and 0."""
    low, high = min(0.0, *values), max(0.0, *values)
    room = 0.08 * max(0.001, high - low)
    return [low - room, high + room]
