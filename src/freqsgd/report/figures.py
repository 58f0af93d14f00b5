"""Results as Plotly figures. Every figure has one trace per run, in the order of the runs.

The page gives colours to traces (``meta["run"]``) and to the rest once it knows whether it is light
or dark; those set here are the light ones.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

from freqsgd.report.measures import Metric, best
from freqsgd.report.results import Results, Run
from freqsgd.report.style import Style, styles
from freqsgd.report.wording import score, size

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["curves", "figure", "level_line", "state_memory", "state_words"]

MARKED_EPOCHS = 12  # markers on a line, beside the one of the best epoch
WIDE_SPREAD = 20  # a logarithmic axis where the largest is that many times the smallest
BEST_SIZE, OTHER_SIZE = 11, 6
NO_BOX = "<extra></extra>"  # Plotly repeats the name in a second box otherwise


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
    name = escape(run.label)
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


def state_memory(results: Results) -> Figure | None:
    """Bytes of optimizer state; the labels say them too, so that even no state is seen."""
    known = [run.state_bytes for run in results.runs if run.state_bytes is not None]
    if not known:
        return None
    weights = max((run.parameter_bytes or 0 for run in results.runs), default=0)
    held = [count for count in (*known, weights) if count > 0]
    logarithmic = bool(held) and max(held) > WIDE_SPREAD * min(held)
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": escape(run.label),
            "meta": {"run": place},
            "x": [run.state_bytes],
            "y": [place],
            "width": 0.62,
            "marker": {"color": style.light, "line": {"width": 0}},
            "hovertemplate": f"<b>{escape(run.label)}</b> {state_words(run)}{NO_BOX}",
        }
        for place, (run, style) in enumerate(zip(results.runs, styles(results.runs), strict=True))
    ]
    names = [f"<b>{escape(run.label)}</b><br>{state_words(run)}" for run in results.runs]
    return figure(
        traces,
        hovermode="closest",
        margin={"l": 56, "r": 16, "t": 28, "b": 32},
        xaxis={
            "type": "log" if logarithmic else "linear",
            "range": memory_range(held, logarithmic),
            "tickformat": "~s",
            "ticksuffix": "B",
            "nticks": 6,
            **({"dtick": 1} if logarithmic else {}),
        },
        yaxis={
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "range": [len(names) - 0.4, -0.6],
            "showgrid": False,
        },
        shapes=[weights_line(weights)] if weights else [],
        annotations=[weights_text(weights, logarithmic)] if weights else [],
        meta={"height": 110 + 52 * len(names)},
    )


def state_words(run: Run) -> str:
    """How much state a run kept."""
    return "not known" if run.state_bytes is None else size(run.state_bytes)


def memory_range(held: list[float], logarithmic: bool) -> list[float]:
    """From a tenth of the smallest, so that its bar can be seen, to a little beyond the largest."""
    if logarithmic:
        return [math.log10(min(held)) - 1, math.log10(max(held)) + 0.15]
    return [0, 1.1 * max(held, default=1)]


def weights_line(weights: float) -> dict[str, Any]:
    """Where the weights themselves would end as a bar."""
    return {
        "type": "line",
        "yref": "paper",
        "x0": weights,
        "x1": weights,
        "y0": 0,
        "y1": 1,
        "line": {"width": 1, "dash": "dot"},
    }


def weights_text(weights: float, logarithmic: bool) -> dict[str, Any]:
    """What that line stands for."""
    return {
        "text": f"the model's weights: {size(weights)}",
        "yref": "paper",
        "x": math.log10(weights) if logarithmic else weights,
        "y": 1,
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
    }
