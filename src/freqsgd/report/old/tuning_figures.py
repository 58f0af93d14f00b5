"""The search as Plotly figures: one line per optimizer, in the looks of its first run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from freqsgd.optimizers import Style
from freqsgd.report.old.figures import (
    BEST_SIZE,
    NO_BOX,
    OTHER_SIZE,
    figure,
    plotly_text,
    whole_ticks,
)
from freqsgd.report.old.results import Results
from freqsgd.report.old.style import styles
from freqsgd.report.old.tuning import Study

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


DEEPEST = 0.03  # validation AUC below the best that is shown
FAINT = 0.3
FACTORS = (1 / 64, 1 / 16, 1 / 4, 1, 4, 16, 64)


def so_far(study: Study) -> list[tuple[int, float]]:
    """The best validation AUC after each trial, from the first that came to its end."""
    points: list[tuple[int, float]] = []
    for trial in study.trials:
        best = points[-1][1] if points else None
        if trial.state == "complete" and trial.value is not None:
            best = trial.value if best is None else max(best, trial.value)
        if best is not None:
            points.append((trial.number + 1, best))
    return points


def best_so_far(results: Results, studies: list[Study]) -> Figure | None:
    """Best validation AUC against the number of trials."""
    traces = [
        line(
            study,
            style,
            so_far(study),
            shape="hv",
            hover=f"<b>{plotly_text(study.name)}</b> %{{y:.4f}}<br>after %{{x}} trials{NO_BOX}",
        )
        for study, style in drawn(results, studies)
        if so_far(study)
    ]
    for trace in traces:  # markers where it rises, as they would hide a long line otherwise
        rises = [y != before for y, before in zip(trace["y"], [None, *trace["y"]], strict=False)]
        trace["marker"]["size"] = [OTHER_SIZE * rise for rise in rises]
    if not traces:
        return None
    last = max(trace["x"][-1] for trace in traces)
    values = [value for trace in traces for value in trace["y"]]
    return figure(
        traces,
        hovermode="closest",
        xaxis={"title": {"text": "trials"}, "showgrid": False, **whole_ticks(last)},
        yaxis={"range": value_range(values)},
    )


def rate_sensitivity(results: Results, studies: list[Study]) -> Figure | None:
    """Validation AUC against the learning rate over the best trial's; trials as faint points."""
    traces, values = [], []
    for study, style in drawn(results, studies):
        base = None if study.best_trial is None else study.best_trial.lr
        swept = [(lr, value) for lr, value in study.sweep if value is not None]
        if study.best is None or not base or not swept:
            continue
        values += [value for _, value in swept]
        points = [(lr / base, value) for lr, value in swept]
        hover = f"<b>{plotly_text(study.name)}</b> %{{y:.4f}}<br>lr %{{customdata:.3~g}}{NO_BOX}"
        trace = line(study, style, points, shape="linear", hover=hover)
        trace["customdata"] = [lr for lr, _ in swept]
        best = study.best.lr
        trace["marker"]["size"] = [BEST_SIZE if lr == best else OTHER_SIZE for lr, _ in swept]
        traces += [cloud(study, style, base), trace]
    if not traces:
        return None
    return figure(
        traces,
        hovermode="closest",
        xaxis={
            "title": {"text": "learning rate, times the best trial's"},
            "type": "log",
            "showgrid": False,
            "range": [-1.35, 1.35],
            "tickvals": list(FACTORS),
            "ticktext": [f"{f:g}" if f >= 1 else f"1/{1 / f:g}" for f in FACTORS],
        },
        yaxis={"range": value_range(values)},
    )


def drawn(results: Results, studies: list[Study]) -> Iterator[tuple[Study, Style]]:
    """Studies of optimizers that have a run, and so a colour and a place in the legend."""
    looks = styles(results.runs)
    return ((study, looks[study.place]) for study in studies if study.place is not None)


def line(
    study: Study, style: Style, points: Sequence[tuple[float, float]], *, shape: str, hover: str
) -> dict[str, Any]:
    """A study's line."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": plotly_text(study.name),
        "meta": {"run": study.place},
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "line": {"color": style.light, "dash": style.dash, "width": 2, "shape": shape},
        "marker": marker(style, opacity=1),
        "hovertemplate": hover,
    }


def cloud(study: Study, style: Style, base: float) -> dict[str, Any]:
    """The trials, whose other settings differ too."""
    tried = [t for t in study.trials if t.lr is not None and t.value is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{plotly_text(study.name)}, trials",
        "meta": {"run": study.place},
        "x": [trial.lr / base for trial in tried if trial.lr is not None],
        "y": [trial.value for trial in tried],
        "marker": {**marker(style, opacity=FAINT), "size": 5},
        "hoverinfo": "skip",
    }


def marker(style: Style, opacity: float) -> dict[str, Any]:
    """A marker without a rim."""
    return {
        "color": style.light,
        "symbol": style.marker,
        "opacity": opacity,
        "line": {"width": 0},
    }


def value_range(values: list[float]) -> list[float]:
    """A range that shows what is near the best; what is far below it is cut off."""
    top = max(values)
    low = max(min(values), top - DEEPEST)
    room = 0.08 * max(top - low, 0.002)
    return [low - room, top + room]
