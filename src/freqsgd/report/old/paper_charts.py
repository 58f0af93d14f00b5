"""Which charts each figure of the paper has here: those of the runs' own reports, with its legend.

Charts are in parts, each of which is a picture too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from freqsgd import optimizers
from freqsgd.documents.paper import PaperFigure
from freqsgd.report.old.charts import cost_charts, learning_charts
from freqsgd.report.old.diagnosis import read_moments
from freqsgd.report.old.diagnosis_sections import moments_charts
from freqsgd.report.old.figures import NO_BOX, figure, log_axis
from freqsgd.report.old.headline import point
from freqsgd.report.old.inspection_figures import LINES, OPTIMIZERS
from freqsgd.report.old.inspection_sections import rank_charts
from freqsgd.report.old.kinds import kind_of
from freqsgd.report.old.one_pass_sections import ne_charts
from freqsgd.report.old.page import Chart
from freqsgd.report.old.paper import LEARNING, Paper
from freqsgd.report.old.results import display_name
from freqsgd.report.old.style import Drawn, Series, styles
from freqsgd.report.old.tables import plain_table
from freqsgd.report.old.theory_figures import TOKENS
from freqsgd.report.old.theory_sections import improvement_charts
from freqsgd.report.old.tuning import read_studies
from freqsgd.report.old.tuning_sections import charts as search_charts
from freqsgd.report.old.wording import capitalized

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


Parts = dict[str, list[Chart]]
Made = tuple[Iterable[Chart], Sequence[Drawn]]  # charts, and what their document draws

FEW = 6  # charts; more are drawn small
APPENDIX_FIELDS = 28
LINES_NOTE = "Solid: counted. Dashed: the exponential tail that fits best; dotted: the polynomial."


def charts_of(paper: Paper, figure: PaperFigure) -> Parts:
    """The charts of a figure by part; parts without any are left out."""
    makers = MAKERS.get(figure.name, {})
    parts: Parts = {}
    for part, make in makers.items():
        for order, run in enumerate(figure.runs):
            charts, drawn = make(paper, run)
            for chart in charts:
                name = f"{figure.name}-{order}-{chart.name}"
                own = named_by_optimizer(chart.figure, drawn)
                title = f"{chart.title}: {paper.runs[run].label}"
                parts.setdefault(part, []).append(
                    replace(chart, name=name, title=title, figure=own)
                )
    if figure.name == "fig1":
        parts = {"tails": list(tail_charts()), **parts}
    return parts


def leading_chart(paper: Paper) -> tuple[str, Chart] | None:
    """The chart that makes the point, with it: FM on MovieLens-1M, or the next best."""
    for run in LEARNING:
        results = paper.results(run)
        if results is None:
            continue
        kind = kind_of(results)
        for chart in learning_charts(results, kind.by):
            if chart.name == "validation":
                own = named_by_optimizer(chart.figure, results.runs)
                title = f"{chart.title}: {paper.runs[run].label}"
                said = capitalized(point(results, kind)) or "How the optimizers learn"
                return said, replace(chart, name="leading", title=title, figure=own)
    return None


def curves(paper: Paper, run: str) -> Made:
    """Training loss and the validation measure over epochs."""
    results = paper.results(run)
    if results is None:
        return (), ()
    return learning_charts(results, kind_of(results).by), results.runs


def moments(paper: Paper, run: str) -> Made:
    """Second moments against counts."""
    results = paper.results(run)
    if results is None:
        return (), ()
    return moments_charts(results, read_moments(results)), results.runs


def memory(paper: Paper, run: str) -> Made:
    """Bars of optimizer state."""
    results = paper.results(run)
    if results is None:
        return (), ()
    charts = (chart for chart in cost_charts(results, kind_of(results)) if chart.name == "state")
    return charts, results.runs


def sweep(paper: Paper, run: str) -> Made:
    """How good learning rates around the best are."""
    results = paper.results(run)
    if results is None:
        return (), ()
    charts = search_charts(results, read_studies(results))
    return (chart for chart in charts if chart.name == "learning-rates"), results.runs


def progressive(paper: Paper, run: str) -> Made:
    """NE of all examples so far, and its difference to Adagrad's."""
    found = paper.one_pass(run)
    if found is None:
        return (), ()
    charts = (chart for chart in ne_charts(found) if chart.name != "window-ne")
    return charts, found.results.runs


def ranks(paper: Paper, run: str) -> Made:
    """Occurrences by rank, field by field."""
    inspection = paper.inspection(run)
    if inspection is None:
        return (), ()
    return islice(with_lines(rank_charts(inspection)), APPENDIX_FIELDS), [*LINES, *OPTIMIZERS]


def with_lines(charts: Iterable[Chart]) -> Iterator[Chart]:
    """Charts of ranks, the first of which says what its lines are."""
    for order, chart in enumerate(charts):
        yield chart if order else replace(chart, note=f"{chart.note} {LINES_NOTE}")


def improvements(tail: str) -> Callable[[Paper, str], Made]:
    """SGD's error over that of FA-SGD and CF-SGD, by rank."""

    def make(paper: Paper, run: str) -> Made:
        theory = paper.theory(run)
        if theory is None or theory.problem.tail != tail:
            return (), ()
        return improvement_charts(theory), [*theory.runs, TOKENS]

    return make


MAKERS: dict[str, dict[str, Callable[[Paper, str], Made]]] = {
    "fig1": {"counts": ranks},
    "fig2": {"": curves},
    "fig3ab": {"": moments},
    "fig3cd": {"": curves},
    "fig4ab": {"": curves},
    "table1": {"": progressive},
    "table2": {"": sweep},
    "table3": {"": sweep},
    "memory": {"": memory},
    "fig5": {"": curves},
    "appendix-c": {"": ranks},
    "theory": {tail: improvements(tail) for tail in ("exponential", "polynomial")},
}


SHOWN_RANKS = 50
TAU, NU = 0.2, 2.0  # as freqsgd theory has them
TAILS: dict[str, tuple[str, Callable[[int], float]]] = {
    "exponential": (f"exp(-{TAU:g} n)", lambda rank: math.exp(-TAU * rank)),
    "polynomial": (f"1 / n^{NU:g}", lambda rank: rank**-NU),
}


def tail_charts() -> Iterator[Chart]:
    """A chart per tail, of probabilities that sum to 1; nothing was measured."""
    ranks = range(1, SHOWN_RANKS + 1)
    for family, (formula, weight) in TAILS.items():
        total = sum(map(weight, ranks))
        shares = [weight(rank) / total for rank in ranks]
        yield Chart(
            f"fig1-{family}",
            title=f"{family.capitalize()} tail, by its formula",
            figure=tail_figure(family, shares),
            description=f"Line chart of the frequency of {SHOWN_RANKS} tokens, p in proportion to "
            f"{formula}: {shares[0]:.3g} at rank 1, {shares[-1]:.3g} at rank {SHOWN_RANKS}.",
            note=f"Drawn from the formula, p in proportion to {formula}: no data.",
            data=plain_table(
                ["Rank", "p"],
                [[str(rank), f"{p:.3g}"] for rank, p in zip(ranks, shares, strict=True)],
            ),
        )


def tail_figure(family: str, shares: list[float]) -> Figure:
    """Frequency by rank; an exponential tail is straight where ranks are linear."""
    (style,) = styles([Series(family, family)])
    ranks = list(range(1, len(shares) + 1))
    kind = log_axis(ranks, whole=True) if family == "polynomial" else {"tickformat": "d"}
    trace = {
        "type": "scatter",
        "mode": "lines",
        "name": f"{family} tail",
        "meta": {"run": family},
        "x": ranks,
        "y": shares,
        "line": {"color": style.light, "dash": style.dash, "width": 2},
        "hovertemplate": f"rank %{{x}}<br>p = %{{y:.3~g}}{NO_BOX}",
    }
    return figure(
        [trace],
        hovermode="closest",
        xaxis={"title": {"text": "rank"}, "showgrid": False, **kind},
        yaxis={**log_axis(shares), "title": {"text": "p"}},
        meta={"height": 300},
    )


ORDER = tuple(optimizers.OPTIMIZERS)


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
