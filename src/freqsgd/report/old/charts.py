"""The charts of a report with the words and numbers that belong to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from freqsgd.report.old import figures
from freqsgd.report.old.frequency import by_frequency, sgd_level
from freqsgd.report.old.kinds import TRAINING_LOSS, Kind
from freqsgd.report.old.measures import CLASSES, Breakdown, Metric
from freqsgd.report.old.memory_figure import state_memory, state_words
from freqsgd.report.old.page import Chart
from freqsgd.report.old.results import Results
from freqsgd.report.old.tables import plain_table
from freqsgd.report.old.wording import capitalized, enumerate_words, score

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def learning_charts(results: Results, by: Metric) -> Iterator[Chart]:
    """Training loss and the validation measure over time."""
    measures = {"training-loss": TRAINING_LOSS}
    if by is not TRAINING_LOSS:
        measures["validation"] = by
    for name, measure in measures.items():
        figure = figures.curves(results, measure, by)
        if figure is not None:
            yield Chart(
                name,
                title=capitalized(measure.name),
                figure=figure,
                description=curves_description(results, measure),
                note="The large marker is the epoch whose weights were kept.",
                data=curves_table(results, measure),
            )


def curves_description(results: Results, measure: Metric) -> str:
    """Start and end of every line, in words."""
    lines = []
    for run in results.runs:
        shown = [(epoch, value) for epoch in run.epochs if (value := measure.of(epoch)) is not None]
        if shown:
            ends = (
                f"{score(value)} in epoch {epoch.epoch}" for epoch, value in (shown[0], shown[-1])
            )
            lines.append(f"{run.label} {', '.join(ends)}")
    return f"Line chart of the {measure.name}, one line per run: {'; '.join(lines)}."


def curves_table(results: Results, measure: Metric) -> str:
    """Every point of the lines: value and second, by epoch and run."""
    points = {(run.label, epoch.epoch): epoch for run in results.runs for epoch in run.epochs}
    labels = [run.label for run in results.runs]
    head = ["Epoch", *(f"{label}{unit}" for label in labels for unit in ("", ", s"))]
    rows: list[list[str | None]] = []
    for number in sorted({number for _, number in points}):
        rows.append([str(number)])
        for label in labels:
            epoch = points.get((label, number))
            seconds = None if epoch is None else epoch.seconds
            rows[-1].append(None if epoch is None else shown(measure.of(epoch)))
            rows[-1].append(None if seconds is None else f"{seconds:.2f}")
    return plain_table(head, rows)


def cost_charts(results: Results, kind: Kind) -> Iterator[Chart]:
    """What the state costs, and where quality differs."""
    memory = state_memory(results)
    if memory is not None:
        sizes = [(run.label, state_words(run)) for run in results.runs]
        note = "Numbers that the optimizer keeps beside the weights, in bytes."
        yield memory_chart("state", memory, sizes, note)
    for breakdown in kind.breakdowns:
        level = sgd_level(results, kind, breakdown)
        figure = by_frequency(results, breakdown, level)
        if figure is not None:
            yield frequency_chart(results, breakdown, level, figure)


def memory_chart(name: str, memory: Figure, sizes: Sequence[tuple[str, str]], note: str) -> Chart:
    """The size of the optimizers' state, given by their names and in words."""
    listed = enumerate_words(map(" ".join, sizes))
    scale = "The axis is logarithmic. " if memory.layout.xaxis.type == "log" else ""
    return Chart(
        name,
        title="Optimizer state",
        figure=memory,
        description=f"Bar chart of optimizer state: {listed}.",
        note=scale + note,
        data=plain_table(["Optimizer", "State"], [list(row) for row in sizes]),
    )


def frequency_chart(
    results: Results, breakdown: Breakdown, level: Mapping[str, float], figure: Figure
) -> Chart:
    """The scores of frequent and rare tokens."""
    rows = [
        [run.label, *(shown(breakdown.measure(name).of(run)) for name in CLASSES)]
        for run in results.runs
    ]
    start = figure.layout.yaxis.range[0]
    if level:
        axis = " Bars show the loss less that of SGD: what is below 0 is better than SGD."
    else:
        axis = f" The axis starts at {start:.2f}, not at 0." if start > 0 else ""
    return Chart(
        breakdown.name,
        title=f"{breakdown.title}{', less that of SGD' if level else ''}",
        figure=figure,
        description=f"Bar chart of test {breakdown.score} for {breakdown.of_classes}: "
        + "; ".join(" ".join(entry or "unknown" for entry in row) for row in rows)
        + f".{axis}",
        note=breakdown.note + axis,
        data=plain_table(["Optimizer", *CLASSES], rows),
    )


def shown(value: float | None) -> str | None:
    """A score that may be missing."""
    return None if value is None else score(value)
