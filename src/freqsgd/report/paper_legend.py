"""One legend for the charts of many runs: an entry per optimizer, whichever run it is of.

Charts are made with the places that runs have in their own document. Here each trace first gets the
name of its optimizer, and once all charts are known the place of that name on the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from freqsgd.optimizers import OPTIMIZERS
from freqsgd.report.inspection_figures import LINES
from freqsgd.report.page import Chart
from freqsgd.report.results import display_name
from freqsgd.report.style import Drawn, Series

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["legend_of", "named_by_optimizer", "placed"]

ORDER = tuple(OPTIMIZERS)


def named_by_optimizer(figure: Figure, drawn: Sequence[Drawn]) -> Figure:
    """A copy whose traces say which optimizer they are of, given what its document draws."""
    return with_runs(figure, lambda place: drawn[place].optimizer)


def legend_of(charts: Iterable[Chart]) -> tuple[list[Series], list[Series]]:
    """The optimizers that charts draw, and the other lines."""
    names = {trace.meta["run"]: None for chart in charts for trace in chart.figure.data}
    lines = [line for line in LINES if line.optimizer in names]
    found = sorted(names.keys() - {line.optimizer for line in lines}, key=rank)
    return [Series(name, display_name(name)) for name in found], lines


def rank(optimizer: str) -> tuple[int, str]:
    """SGD first, strangers last."""
    return (ORDER.index(optimizer) if optimizer in ORDER else len(ORDER), optimizer)


def placed(chart: Chart, series: Sequence[Series]) -> Chart:
    """The chart with places in the page's legend."""
    places = {one.optimizer: place for place, one in enumerate(series)}
    return replace(chart, figure=with_runs(chart.figure, lambda name: places[name]))


def with_runs(figure: Figure, run: Callable[..., object]) -> Figure:
    """A copy in which every trace has another run."""
    from plotly.graph_objects import Figure

    copy = Figure(figure)
    for trace in copy.data:
        trace.meta = {**trace.meta, "run": run(trace.meta["run"])}
    return copy
