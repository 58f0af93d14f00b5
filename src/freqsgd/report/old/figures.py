"""Results as Plotly figures. Every figure has one trace per run, in the order of the runs.

The page gives colours to traces (``meta["run"]``) and to the rest once it knows whether it is light
or dark; those set here are the light ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

from freqsgd.optimizers import Style
from freqsgd.report.old.measures import Metric, best
from freqsgd.report.old.results import Results, Run
from freqsgd.report.old.style import styles
from freqsgd.report.old.wording import score

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


MARKED_EPOCHS = 12  # markers on a line, beside the one of the best epoch
WIDE_SPREAD = 20  # a logarithmic axis where the largest is that many times the smallest
BEST_SIZE, OTHER_SIZE = 11, 6
NO_BOX = "<extra></extra>"  # Plotly repeats the name in a second box otherwise


def plotly_text(words: str) -> str:
    """Words as Plotly's small HTML, which knows ``&lt;`` but not ``&quot;``."""
    return escape(words, quote=False)


def figure(traces: list[dict[str, Any]], **layout: Any) -> Figure:
    """A figure with the looks that all have in common."""
    from plotly.graph_objects import Figure

    axis = {"zeroline": False, "automargin": True, "showline": False}
    common: dict[str, Any] = {
        "template": "none",
        "showlegend": False,  # the page has one legend for all charts
        "margin": {"l": 40, "r": 16, "t": 12, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "xaxis": {**axis, **layout.pop("xaxis")},
        "yaxis": {**axis, **layout.pop("yaxis")},
    }
    return Figure(data=traces, layout={**common, **layout})


def curves(results: Results, measure: Metric, chosen_by: Metric) -> Figure | None:
    """A measure by epoch. ``customdata`` holds epoch and second, so the page can show either."""
    traces = [
        curve(run, place, style, measure, chosen_by)
        for place, (run, style) in enumerate(zip(results.runs, styles(results.runs), strict=True))
    ]
    epochs = [epoch for trace in traces for epoch in trace["x"]]
    if not epochs:
        return None
    limit = results.best_possible.get(measure.key)
    return figure(
        traces,
        hovermode="closest",
        xaxis={"title": {"text": "epoch"}, "showgrid": False, **whole_ticks(max(epochs))},
        yaxis={},
        shapes=[] if limit is None else [level_line(limit)],
        annotations=[] if limit is None else [level_text(limit, "best possible")],
        meta={"seconds_axis": seconds_axis(results)},
    )


def curve(run: Run, place: int, style: Style, measure: Metric, chosen_by: Metric) -> dict[str, Any]:
    """One run's line: some markers to tell it by, a large one where it was at its best."""
    shown = [epoch for epoch in run.epochs if measure.of(epoch) is not None]
    found = best(run, chosen_by)
    step = math.ceil(len(shown) / MARKED_EPOCHS) or 1
    sizes = [
        BEST_SIZE if found and epoch is found.epoch else OTHER_SIZE * (order % step == 0)
        for order, epoch in enumerate(shown)
    ]
    clock = "" if any(epoch.seconds is None for epoch in shown) else ", %{customdata[1]:.3~g} s"
    name = plotly_text(run.label)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "meta": {"run": place},
        "x": [epoch.epoch for epoch in shown],
        "y": [measure.of(epoch) for epoch in shown],
        "customdata": [[epoch.epoch, epoch.seconds] for epoch in shown],
        "line": {"color": style.light, "dash": style.dash, "width": 2},
        "marker": {
            "color": style.light,
            "symbol": style.marker,
            "size": sizes,
            "opacity": 1,
            "line": {"width": 0},
        },
        "hovertemplate": f"<b>{name}</b> %{{y:.4f}}<br>epoch %{{customdata[0]}}{clock}{NO_BOX}",
    }


def whole_ticks(last: int) -> dict[str, Any]:
    """Ticks at whole epochs only."""
    return {"tickformat": "d", "dtick": 1} if last <= 12 else {"tickformat": "d"}


def seconds_axis(results: Results) -> str | None:
    """The kind of axis that seconds need; None if there are none."""
    totals = [
        run.epochs[-1].seconds
        for run in results.runs
        if run.epochs and run.epochs[-1].seconds is not None
    ]
    if not totals or min(totals) <= 0:
        return "linear" if totals else None
    return "log" if max(totals) > WIDE_SPREAD / 2 * min(totals) else "linear"


def level_line(level: float) -> dict[str, Any]:
    """A line across the whole figure."""
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": level,
        "y1": level,
        "line": {"width": 1, "dash": "dot"},
    }


def level_text(level: float, words: str) -> dict[str, Any]:
    """What such a line stands for."""
    return {
        "text": f"{words}: {score(level)}",
        "xref": "paper",
        "x": 1,
        "y": level,
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
    }


def vertical_line(x: float) -> dict[str, Any]:
    """A line from the bottom to the top."""
    return {
        "type": "line",
        "yref": "paper",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": 1,
        "line": {"width": 1, "dash": "dot"},
    }


def names_axis(names: list[str]) -> dict[str, Any]:
    """An axis of names from top to bottom."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": names,
        "range": [len(names) - 0.4, -0.6],
        "showgrid": False,
    }


FEW_DECADES = 2  # below, 1, 2 and 5 of each are written out
FEW_TICKS = 3  # below, all digits are
MANY_DECADES = 7  # above, Plotly chooses
ROOM = 0.06  # at both ends, of the length between
LEAST = 0.3  # of a decade, if all values are nearly the same


def positive(value: float | None) -> float | None:
    """What a logarithmic axis can show."""
    return value if value is not None and value > 0 else None


def log_axis(values: Iterable[float | None], *, whole: bool = False) -> dict[str, Any]:
    """An axis that holds all values; ``whole`` numbers have no ticks between them."""
    exponents = [math.log10(shown) for value in values if (shown := positive(value)) is not None]
    low, high = min(exponents, default=0.0), max(exponents, default=1.0)
    room = ROOM * (high - low) if high - low > LEAST else LEAST / 2
    low, high = low - room, high + room
    axis = {"type": "log", "range": [low, high], "exponentformat": "power"}
    if high - low < FEW_DECADES:
        ticks = round_numbers(low, high, (1, 2, 5))
        if len(ticks) < FEW_TICKS:
            ticks = round_numbers(low, high, range(1, 10))
        if whole:
            ticks = [tick for tick in ticks if tick >= 1]
        return {**axis, "tickvals": ticks, "ticktext": [f"{tick:,.6g}" for tick in ticks]}
    return {**axis, "dtick": 1} if high - low <= MANY_DECADES else axis


def round_numbers(low: float, high: float, digits: Iterable[int]) -> list[float]:
    """Numbers between two exponents that have one of the digits, and else zeros."""
    return [
        digit * 10.0**exponent
        for exponent in range(math.floor(low), math.ceil(high))
        for digit in digits
        if low <= exponent + math.log10(digit) <= high
    ]
