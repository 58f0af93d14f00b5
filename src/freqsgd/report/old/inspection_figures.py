"""The frequencies of tokens, and what follows from them, as Plotly figures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from freqsgd.documents.inspection import InspectedField, Inspection
from freqsgd.optimizers import Style, by_memory
from freqsgd.report.old.figures import (
    NO_BOX,
    figure,
    log_axis,
    names_axis,
    plotly_text,
    vertical_line,
)
from freqsgd.report.old.inspection import PLACES, promises_of
from freqsgd.report.old.memory_figure import Bar, memory_bars
from freqsgd.report.old.style import Series, styles
from freqsgd.report.old.wording import shortened

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


LINES = (
    Series("counted", "counted"),
    Series("exponential", "exponential tail"),
    Series("polynomial", "polynomial tail"),
)
OPTIMIZERS = tuple(
    Series(each.name, each.label) for each in by_memory() if each.trains and each.stateful
)
LOOKS = styles([*LINES, *OPTIMIZERS])
CFSGD = len(LINES)  # its place among all that have a look
SYMBOLS = {"median": "circle", "p90": "diamond"}
NAMES = {"median": "median token", "p90": "token rarer than 90%"}
LONGEST_NAME = 24  # beside a chart


def rank_counts(field: InspectedField, height: int) -> Figure:
    """Occurrences by rank on logarithmic axes, and both fitted tails."""
    ranks, counts = zip(*field.ranks, strict=True)
    x, y = log_axis(ranks, whole=True), log_axis(counts, whole=True)
    bottom = 10 ** y["range"][0]
    fits = [
        rank_line(place, LOOKS[place], points)
        for place, series in enumerate(LINES[1:], start=1)
        if (points := list(fitted(field, series.optimizer, bottom)))
    ]
    return figure(
        [rank_line(0, LOOKS[0], list(field.ranks)), *fits],
        hovermode="closest",
        margin={"l": 40, "r": 8, "t": 8, "b": 36},
        xaxis={**x, "title": {"text": "rank"}, "showgrid": False},
        yaxis={**y, "title": {"text": "occurrences"}},
        meta={"height": height},
    )


def fitted(field: InspectedField, family: str, bottom: float) -> Iterator[tuple[int, float]]:
    """What a tail expects at the ranks that it was fitted to, where the axis shows it.

    From ``first_count`` at rank n0 it falls as exp(-tau (n - n0)) or as (n / n0)^-nu.
    """
    fit = field.fit
    first, rate, count = fit.from_rank, fit.rate_of(family), (fit.first_count or {}).get(family)
    if first is None or rate is None or count is None:
        return
    for rank in sorted({first, *(rank for rank, _ in field.ranks if rank > first)}):
        steps = rank - first if family == "exponential" else math.log(rank / first)
        expected = count * math.exp(-rate * steps)
        if expected >= bottom:
            yield rank, expected


def rank_line(place: int, style: Style, points: list[tuple[int, float]]) -> dict[str, Any]:
    """Counts by rank; a point alone is a marker, as it has no line."""
    label = LINES[place].label
    return {
        "type": "scatter",
        "mode": "lines" if len(points) > 1 else "markers",
        "name": label,
        "meta": {"run": place},
        "x": [rank for rank, _ in points],
        "y": [count for _, count in points],
        "line": {"color": style.light, "dash": style.dash, "width": 2 if place else 3},
        "marker": {"color": style.light, "symbol": style.marker, "size": 8},
        "hovertemplate": f"<b>{label}</b> %{{y:,.3~s}}<br>rank %{{x:,}}{NO_BOX}",
    }


def memory(inspection: Inspection) -> Figure | None:
    """Bytes that each optimizer would keep beside the weights."""
    bars = [
        Bar(place, one.label, inspection.memory[one.optimizer], LOOKS[place].light)
        for place, one in enumerate(OPTIMIZERS, start=CFSGD)
        if one.optimizer in inspection.memory
    ]
    return memory_bars(bars, inspection.memory.get("weights", 0))


def promises(inspection: Inspection, fields: tuple[InspectedField, ...]) -> Figure | None:
    """By field, how many times smaller the bound of two of its tokens is than SGD's."""
    style = LOOKS[CFSGD]
    rows: list[tuple[str, Any]] = [
        (plotly_text(shortened(field.name, LONGEST_NAME)), promises_of(field.promise))
        for field in fields
    ]
    if len(rows) > 1:
        rows.insert(0, ("<b>all fields</b>", promises_of(inspection.overall)))
    traces, values = [], [1.0]
    for place in PLACES:
        shown = [(row, each[place]) for row, (_, each) in enumerate(rows) if place in each]
        values += [promise.error for _, promise in shown]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": NAMES[place],
                "meta": {"run": CFSGD},
                "x": [promise.error for _, promise in shown],
                "y": [row for row, _ in shown],
                "customdata": [[promise.iterations, promise.count] for _, promise in shown],
                "marker": {
                    "color": style.light,
                    "symbol": SYMBOLS[place],
                    "size": 10,
                    "line": {"width": 0},
                },
                "hovertemplate": f"<b>{NAMES[place]}</b>, seen %{{customdata[1]:,}} times"
                f"<br>SGD's bound %{{x:.3~g}} times FA-SGD's, "
                f"iterations %{{customdata[0]:.3~g}} times{NO_BOX}",
            }
        )
    if not any(trace["x"] for trace in traces):
        return None
    return figure(
        traces,
        hovermode="closest",
        xaxis={**log_axis(values), "title": {"text": "SGD's bound / that of FA-SGD"}},
        yaxis=names_axis([name for name, _ in rows]),
        shapes=[vertical_line(1.0)],
        meta={"height": 90 + 24 * len(rows)},
    )
