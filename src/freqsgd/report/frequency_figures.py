"""Scores of frequent and rare tokens as a Plotly figure: a group of bars per class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from freqsgd.report.figures import NO_BOX, figure, level_line, plotly_text
from freqsgd.report.measures import CLASSES, Breakdown
from freqsgd.report.results import Results, Run
from freqsgd.report.style import Style, styles

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["by_frequency"]


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
