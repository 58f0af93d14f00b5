"""One-pass runs as Plotly figures: a line per run, by window or by learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from freqsgd.documents.results import Window
from freqsgd.optimizers import Style
from freqsgd.report.old.figures import (
    BEST_SIZE,
    NO_BOX,
    OTHER_SIZE,
    WIDE_SPREAD,
    figure,
    level_line,
    level_text,
    log_axis,
    plotly_text,
)
from freqsgd.report.old.one_pass import OnePass, window_differences
from freqsgd.report.old.results import Run
from freqsgd.report.old.style import styles

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


Points = list[tuple[Window, float]]

MARKED = 12  # markers on a line
SETTLED = 0.2  # of the examples: what lies before them may be cut off, being far worse
DEEPEST = 0.05  # NE above the best of an optimizer's rates that is shown
LEAST_SPAN = 1e-4  # of an axis of scores


@dataclass(frozen=True)
class Score:
    """A score of a window, as a chart shows it."""

    of: Callable[[Window], float | None]
    digits: int
    level: tuple[float, str] | None = None  # a value to see it against, and what that is
    note: str = ""

    def show(self, value: float) -> str:
        """The score in words."""
        return f"{value:.{self.digits}f}"


def score_points(run: Run, score: Score) -> Points:
    """The windows of a run that have a score, with it."""
    found = ((window, score.of(window)) for window in run.windows)
    return [(window, value) for window, value in found if value is not None]


def over_examples(found: OnePass, score: Score) -> Figure | None:
    """A score of the windows of all runs, over the examples seen."""
    lines = [score_points(run, score) for run in found.runs]
    return drawn(found, lines, score.level, f"%{{y:.{score.digits}f}}")


def differences(found: OnePass) -> Figure | None:
    """NE of each window in percent above that of the baseline, which is the line at 0."""
    base = found.baseline
    if base is None:
        return None
    lines = [[] if run is base else window_differences(run, base) for run in found.runs]
    return drawn(found, lines, (0.0, ""), "%{y:+.3f}%", unit="%")


def drawn(
    found: OnePass,
    lines: Sequence[Points],
    level: tuple[float, str] | None,
    written: str,
    unit: str = "",
) -> Figure | None:
    """Lines over examples, with a level if it is not far from them."""
    last = max((points[-1][0].examples for points in lines if points), default=0.0)
    spans = [span(points, SETTLED * last) for points in lines]
    known = [end for each in spans for end in each]
    if not known:
        return None
    shapes, words = [], []
    if level is not None and is_near(level[0], known):
        spans = [[*each, level[0]] if each else each for each in spans]
        known.append(level[0])
        shapes, words = [level_line(level[0])], level_words(*level)
    looks = styles(found.runs)
    return figure(
        [
            line(run.label, place, look, points, ends, written)
            for place, (run, look, points, ends) in enumerate(
                zip(found.runs, looks, lines, spans, strict=True)
            )
            if points
        ],
        hovermode="closest",
        xaxis={"title": {"text": "examples"}, "showgrid": False, "tickformat": "~s", "nticks": 8},
        yaxis={"range": with_room(known), "ticksuffix": unit},
        shapes=shapes,
        annotations=words,
        meta={"unit": "examples", "seconds_axis": seconds_axis(lines), "least_span": LEAST_SPAN},
    )


def level_words(level: float, name: str) -> list[dict[str, Any]]:
    """What a level stands for, below it: lines end above the best possible."""
    return [{**level_text(level, name), "yanchor": "top"}] if name else []


def is_near(level: float, known: Sequence[float]) -> bool:
    """Whether a level is no further from the values than they are from each other."""
    low, high = min(known), max(known)
    reach = max(high - low, LEAST_SPAN)
    return low - reach <= level <= high + reach


def line(
    label: str, place: int, look: Style, points: Points, ends: Sequence[float], written: str
) -> dict[str, Any]:
    """A run's line. ``customdata`` holds examples and second, so the page can show either."""
    step = math.ceil(len(points) / MARKED)
    clock = "" if any(each.seconds is None for each, _ in points) else ", %{customdata[1]:.3~g} s"
    name = plotly_text(label)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "meta": {"run": place, "span": [min(ends), max(ends)]},
        "x": [window.examples for window, _ in points],
        "y": [value for _, value in points],
        "customdata": [[window.examples, window.seconds] for window, _ in points],
        "line": {"color": look.light, "dash": look.dash, "width": 2},
        "marker": marker(look, [OTHER_SIZE * (order % step == 0) for order in range(len(points))]),
        "hovertemplate": f"<b>{name}</b> {written}<br>"
        f"%{{customdata[0]:,.0f}} examples{clock}{NO_BOX}",
    }


def marker(look: Style, sizes: Sequence[float]) -> dict[str, Any]:
    """Markers of given sizes."""
    return {
        "color": look.light,
        "symbol": look.marker,
        "size": list(sizes),
        "opacity": 1,
        "line": {"width": 0},
    }


def span(points: Points, start: float) -> list[float]:
    """The ends of what a line is at from ``start`` on; of all of it, if it ends before."""
    values = [value for window, value in points if window.examples > start]
    values = values or [value for _, value in points]
    return [min(values), max(values)] if values else []


def with_room(values: Sequence[float]) -> list[float]:
    """An axis that holds values, with some room at both ends: as the page's script has it."""
    low, high = min(values), max(values)
    room = 0.06 * max(high - low, LEAST_SPAN)
    return [low - room, high + room]


def seconds_axis(lines: Sequence[Points]) -> str | None:
    """The kind of axis that seconds need; None where some are not known."""
    if any(window.seconds is None for points in lines for window, _ in points):
        return None
    totals = [points[-1][0].seconds or 0.0 for points in lines if points]
    return "log" if 0 < WIDE_SPREAD / 2 * min(totals) < max(totals) else "linear"


def rates_tried(found: OnePass) -> Figure | None:
    """NE while training against the learning rate; the rate that was chosen is marked."""
    traces, known, rates = [], [], []
    looks = styles(found.runs)
    for place, (run, look) in enumerate(zip(found.runs, looks, strict=True)):
        points = [(one.lr, one.train_ne) for one in run.search if one.train_ne is not None]
        if len(run.search) < 2 or not points:
            continue
        best = min(ne for _, ne in points)
        ends = [best, min(max(ne for _, ne in points), best + DEEPEST)]
        known += ends
        rates += [lr for lr, _ in points]
        name = plotly_text(run.label)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "meta": {"run": place, "span": ends},
                "x": [lr for lr, _ in points],
                "y": [ne for _, ne in points],
                "line": {"color": look.light, "dash": look.dash, "width": 2},
                "marker": marker(
                    look, [BEST_SIZE if lr == run.lr else OTHER_SIZE for lr, _ in points]
                ),
                "hovertemplate": f"<b>{name}</b> %{{y:.5f}}<br>lr %{{x:.3~g}}{NO_BOX}",
            }
        )
    if not traces:
        return None
    return figure(
        traces,
        hovermode="closest",
        xaxis={"title": {"text": "learning rate"}, "showgrid": False, **log_axis(rates)},
        yaxis={"range": with_room(known)},
        meta={"least_span": LEAST_SPAN},
    )
