"""A diagnosis as Plotly figures, all on log-log scales against how often tokens occur."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from freqsgd.documents.results import Relation
from freqsgd.optimizers import Style
from freqsgd.report.old.diagnosis import Bucket, Moments, Ratios, with_enough
from freqsgd.report.old.figures import NO_BOX, OTHER_SIZE, figure, level_line, log_axis, plotly_text
from freqsgd.report.old.results import Results, Run
from freqsgd.report.old.style import styles

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


COUNT = "occurrences in the training rows"
NAME_ROOM = 0.1  # left of lines for their names, of the length between


def moments_scatter(results: Results, moments: Moments) -> Figure | None:
    """Second moments against counts, and the fitted line."""
    if not moments.points:
        return None
    style = styles(results.runs)[moments.place]
    counts, heights, fields = map(list, zip(*moments.points, strict=True))
    cloud = {
        "type": "scatter",
        "mode": "markers",
        "name": plotly_text(moments.run.label),
        "meta": {"run": moments.place},
        "x": counts,
        "y": heights,
        "customdata": list(map(plotly_text, fields)),
        "marker": {**_marker(style), "size": 4, "opacity": 0.35},
        "hovertemplate": f"%{{customdata}}: counted %{{x:,}}<br>moment %{{y:.3~g}}{NO_BOX}",
    }
    line = _fitted(moments.last, min(counts), max(counts))
    return figure(
        [cloud],
        hovermode="closest",
        xaxis={**log_axis(counts), "title": {"text": "CF-SGD's count"}, "showgrid": False},
        yaxis=log_axis([*heights, *(height for _, height in line)]),
        shapes=[_segment(start, end, dash="solid") for start, end in pairwise(line)],
    )


def _fitted(relation: Relation, *counts: float) -> list[tuple[float, float]]:
    """Counts, and the second moments that the line has there; nothing without a line."""
    slope, intercept = relation.slope, relation.intercept
    if slope is None or intercept is None:
        return []
    return [(count, math.exp(intercept + slope * math.log(count))) for count in counts]


def gradient_ratios(results: Results, found: Sequence[Ratios]) -> Figure:
    """SGD's mean squared gradients over those of others after some epochs, and the prediction."""
    looks = styles(results.runs)
    traces = []
    for ratios in found:
        epochs = some_epochs(ratios.by_epoch)
        for order, epoch in enumerate(epochs):
            buckets = with_enough(ratios.by_epoch[epoch])
            trace = _line(ratios.run, ratios.place, looks[ratios.place], buckets)
            hover = f"<b>{plotly_text(ratios.run.label)}</b>, epoch {epoch}: %{{y:.3~g}}"
            trace["hovertemplate"] = f"{hover}<br>tokens that occur %{{customdata}}{NO_BOX}"
            trace["opacity"] = 1 - 0.5 * (1 - (order + 1) / len(epochs))
            trace |= {
                "mode": "lines+markers+text",
                "text": [f"epoch {epoch}", *[""] * (len(buckets) - 1)],
                "textposition": "middle left",
            }
            traces.append(trace)
    return _by_count(traces, found[0].predicted, "predicted", [level_line(1)])


def error_left(
    results: Results, errors: Mapping[int, Mapping[int, tuple[Bucket, ...]]], epoch: int
) -> Figure:
    """How far predictions are off by bucket, after an epoch and before the first."""
    looks = styles(results.runs)
    traces = []
    for place, by_epoch in errors.items():
        run = results.runs[place]
        trace = _line(run, place, looks[place], with_enough(by_epoch[epoch]))
        hover = f"<b>{plotly_text(run.label)}</b> %{{y:.3~g}}"
        trace["hovertemplate"] = f"{hover}<br>tokens that occur %{{customdata}}{NO_BOX}"
        traces.append(trace)
    start = next((one[0] for one in errors.values() if one.get(0)), ())
    return _by_count(traces, start, "before training", [])


def some_epochs(epochs: Iterable[int]) -> list[int]:
    """The first, the last and one between them."""
    known = sorted(epochs)
    middle = min(known, key=lambda epoch: abs(epoch - math.sqrt(known[0] * known[-1])))
    return sorted({known[0], middle, known[-1]})


def _by_count(
    traces: list[dict[str, Any]],
    reference: Sequence[Bucket],
    words: str,
    shapes: list[dict[str, Any]],
) -> Figure:
    """Lines over buckets, and a dotted one that no run has drawn."""
    shown = with_enough(reference)
    counts = [x for trace in traces for x in trace["x"]]
    heights = [y for trace in traces for y in trace["y"]] + [one.value for one in shown]
    left = min(counts) * (min(counts) / max(counts)) ** NAME_ROOM
    return figure(
        traces,
        hovermode="closest",
        xaxis={**log_axis([left, *counts]), "title": {"text": COUNT}, "showgrid": False},
        yaxis=log_axis(heights),
        shapes=[*shapes, *_segments(shown)],
        annotations=[_name_of(shown[len(shown) // 2], words)] if shown else [],
    )


def _line(run: Run, place: int, style: Style, buckets: Sequence[Bucket]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": plotly_text(run.label),
        "meta": {"run": place},
        "x": [one.middle for one in buckets],
        "y": [one.value for one in buckets],
        "customdata": [one.often for one in buckets],
        "line": {"color": style.light, "dash": style.dash, "width": 2},
        "marker": {**_marker(style), "size": OTHER_SIZE},
    }


def _marker(style: Style) -> dict[str, Any]:
    return {"color": style.light, "symbol": style.marker, "line": {"width": 0}}


def _segments(buckets: Sequence[Bucket]) -> Iterator[dict[str, Any]]:
    points = [(one.middle, one.value) for one in buckets]
    return (_segment(*ends) for ends in pairwise(points))


def _segment(
    start: tuple[float, float], end: tuple[float, float], dash: str = "dot"
) -> dict[str, Any]:
    return {
        "type": "line",
        "x0": start[0],
        "y0": start[1],
        "x1": end[0],
        "y1": end[1],
        "line": {"width": 1.5, "dash": dash},
    }


def _name_of(bucket: Bucket, words: str) -> dict[str, Any]:
    return {
        "text": words,
        "x": math.log10(bucket.middle),
        "y": math.log10(bucket.value),
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
    }
