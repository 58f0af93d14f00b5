"""A simulation as Plotly figures, one for users and one for items: a number per token."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from freqsgd.optimizers import Style
from freqsgd.report.old.figures import (
    NO_BOX,
    figure,
    level_line,
    log_axis,
    plotly_text,
    positive,
    vertical_line,
)
from freqsgd.report.old.style import Series, styles
from freqsgd.report.old.theory import SIDES, Improvement, Theory, TheoryRun

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


TOKENS = Series("counted", "tokens")  # drawn where no optimizer is
BOUND, COROLLARY, START = "dash", "dot", "dot"
POINT_SIZE = 6
FAR = 3  # times beyond all points, intervals are cut off


def looks(theory: Theory) -> list[Style]:
    """The styles of the runs, and then of the tokens."""
    return styles([*theory.runs, TOKENS])


def distribution(theory: Theory, side: str) -> Figure:
    """Frequency by rank, as in the paper's Figures 1a and 1b; a line ends the top tokens."""
    places = theory.places(side)
    style = looks(theory)[-1]
    p = [theory.tokens.p[place] for place in places]
    trace = {
        **points(theory, places, p, len(theory.runs), style, SIDES[side]),
        "hovertemplate": f"{side} %{{x}}<br>p = %{{y:.3~g}}{NO_BOX}",
    }
    top = theory.top(side)
    marked = 0 < top < len(places)
    return figure(
        [trace],
        hovermode="closest",
        xaxis=rank_axis(theory, places),
        yaxis={**log_axis(p), "title": {"text": "p"}},
        shapes=[vertical_line(top + 0.5)] if marked else [],
        annotations=[top_text(top, side, is_log=is_polynomial(theory))] if marked else [],
    )


def error(theory: Theory, side: str) -> Figure | None:
    """What was measured of each optimizer, with intervals, its bound, and what was at the start."""
    places = theory.places(side)
    colour = looks(theory)[-1].light
    traces = [
        line(theory, places, theory.tokens.start, len(theory.runs), colour, START, "at the start")
    ]
    for order, (run, style) in enumerate(zip(theory.runs, looks(theory), strict=False)):
        name = f"{plotly_text(run.label)}, bound"
        traces.append(line(theory, places, run.bounds, order, style.light, BOUND, name))
        traces.append(measured(theory, places, run, order, style))
    return drawn(theory, places, traces, "E‖∇f‖²")


def improvement(theory: Theory, side: str) -> Figure | None:
    """SGD's error over each optimizer's: measured, by the bounds, and by the corollary."""
    places = theory.places(side)
    order_of = {run.optimizer: order for order, run in enumerate(theory.runs)}
    traces: list[dict[str, Any]] = []
    for entry in theory.improvements:
        if entry.optimizer not in order_of:
            continue
        order = order_of[entry.optimizer]
        style = looks(theory)[order]
        name = plotly_text(entry.label)
        lines = {"bounds": (entry.bounds, BOUND), "corollary": (in_error(entry), COROLLARY)}
        traces += [
            line(theory, places, column, order, style.light, dash, f"{name}, {what}")
            for what, (column, dash) in lines.items()
        ]
        traces.append(measured(theory, places, entry, order, style))
    return drawn(theory, places, traces, "SGD's error / the optimizer's", level=1.0)


def in_error(entry: Improvement) -> tuple[float | None, ...]:
    """The corollary's factor of iterations as one of errors, its root: they fall as 1/√T."""
    return tuple(None if factor is None else math.sqrt(factor) for factor in entry.guaranteed)


def drawn(
    theory: Theory,
    places: Sequence[int],
    traces: Iterable[dict[str, Any]],
    title: str,
    level: float | None = None,
) -> Figure | None:
    """Traces that have points, by rank, on a logarithmic axis that holds all of them."""
    used = [trace for trace in traces if any(trace["y"])]
    if not used:
        return None
    values = [y for trace in used for y in trace["y"] if y is not None]
    values += [] if level is None else [level]
    ends = [end for trace in used if "error_y" in trace for end in interval_ends(trace)]
    low, high = min(values) / FAR, max(values) * FAR
    axis = log_axis([*values, *(min(max(end, low), high) for end in ends)])
    for trace in used:
        if "error_y" in trace:
            keep_in_range(trace, 10 ** axis["range"][0])
    return figure(
        used,
        hovermode="closest",
        xaxis=rank_axis(theory, places),
        yaxis={**axis, "title": {"text": title}},
        shapes=[] if level is None else [level_line(level)],
    )


def interval_ends(trace: dict[str, Any]) -> Iterator[float]:
    """Low and high ends of all points."""
    error = trace["error_y"]
    for y, less, more in zip(trace["y"], error["arrayminus"], error["array"], strict=True):
        if y is not None:
            yield from (y - less, y + more)


def keep_in_range(trace: dict[str, Any], bottom: float) -> None:
    """Ends intervals at the bottom, as those that reach 0 have no place on a logarithmic axis."""
    error = trace["error_y"]
    error["arrayminus"] = [
        None if y is None else min(less, max(0.0, y - bottom))
        for y, less in zip(trace["y"], error["arrayminus"], strict=True)
    ]


def points(
    theory: Theory,
    places: Sequence[int],
    values: Sequence[float | None],
    order: int,
    style: Style,
    name: str,
) -> dict[str, Any]:
    """A point per token."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "meta": {"run": order},
        "x": [theory.tokens.rank[place] for place in places],
        "y": [positive(value) for value in values],
        "marker": {
            "color": style.light,
            "symbol": style.marker,
            "size": POINT_SIZE,
            "line": {"width": 0},
        },
    }


def measured(
    theory: Theory,
    places: Sequence[int],
    entry: TheoryRun | Improvement,
    order: int,
    style: Style,
) -> dict[str, Any]:
    """A point per token with its interval."""
    values = [positive(entry.measured[place]) for place in places]
    ends = [(entry.low[place], entry.high[place]) for place in places]
    name = plotly_text(entry.label)
    return {
        **points(theory, places, values, order, style, f"{name}, measured"),
        "customdata": [list(pair) for pair in ends],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [distance(value, high) for value, (_, high) in zip(values, ends, strict=True)],
            "arrayminus": [
                distance(low, value) for value, (low, _) in zip(values, ends, strict=True)
            ],
            "thickness": 1,
            "width": 0,
            "color": style.light,
        },
        "hovertemplate": f"<b>{name}</b> %{{y:.3~g}} (%{{customdata[0]:.3~g}} to "
        f"%{{customdata[1]:.3~g}})<br>rank %{{x}}{NO_BOX}",
    }


def distance(low: float | None, high: float | None) -> float:
    """How far one end is above the other; 0 where one is not known."""
    return 0.0 if low is None or high is None else max(0.0, high - low)


def line(
    theory: Theory,
    places: Sequence[int],
    column: Sequence[float | None],
    order: int,
    colour: str,
    dash: str,
    name: str,
) -> dict[str, Any]:
    """What theory says of each token, as a line."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "meta": {"run": order},
        "x": [theory.tokens.rank[place] for place in places],
        "y": [positive(column[place]) for place in places],
        "line": {"color": colour, "dash": dash, "width": 2},
        "hovertemplate": f"<b>{name}</b> %{{y:.3~g}}<br>rank %{{x}}{NO_BOX}",
    }


def is_polynomial(theory: Theory) -> bool:
    """Whether ranks are on a logarithmic axis, where such a tail is a straight line."""
    return theory.problem.tail == "polynomial"


def rank_axis(theory: Theory, places: Sequence[int]) -> dict[str, Any]:
    """The axis of ranks."""
    ranks = [theory.tokens.rank[place] for place in places]
    kind = log_axis(ranks) if is_polynomial(theory) else {"tickformat": "d"}
    return {"title": {"text": "rank, most frequent first"}, "showgrid": False, **kind}


def top_text(top: int, side: str, *, is_log: bool) -> dict[str, Any]:
    """What that line stands for."""
    return {
        "text": f"← top {SIDES[side]}: {top}",
        "yref": "paper",
        "x": math.log10(top + 0.5) if is_log else top + 0.5,
        "y": 0,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
    }
