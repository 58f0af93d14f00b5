"""The page of one-pass runs: its charts, its tables, their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from freqsgd.documents.results import Tried
from freqsgd.report.old import one_pass_figures as figures
from freqsgd.report.old.charts import memory_chart
from freqsgd.report.old.memory_figure import state_memory, state_words
from freqsgd.report.old.one_pass import OnePass, window_differences
from freqsgd.report.old.one_pass_background import rate_limits
from freqsgd.report.old.one_pass_figures import Points, Score, score_points
from freqsgd.report.old.one_pass_words import ne_score, one_pass_tiles, one_pass_words, signed
from freqsgd.report.old.page import Chart, Section, command_html, opening_html, render
from freqsgd.report.old.sections import footer, title
from freqsgd.report.old.settings import OPTION_NAMES, settings_table
from freqsgd.report.old.tables import Column, plain_table, runs_table
from freqsgd.report.old.wording import count_of, megabytes, score, thousands

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


PASS_NAMES = {
    "window": "Examples of a window",
    "checkpoint_examples": "Examples between checkpoints",
    "evaluation_days": "Days for evaluation",
}


LEAST_WINDOWS = 3  # that make a line over the run


def render_one_pass(found: OnePass, sections: Sequence[Section]) -> str:
    """The page."""
    return render(
        title=f"{title(found.results)}, in one pass",
        opening=opening_html(one_pass_tiles(found), one_pass_words(found)),
        sections=sections,
        footer=footer(found.results),
        runs=found.results.runs,
    )


def one_pass_sections(found: OnePass) -> list[Section]:
    """All sections that have something to show."""
    settings = settings_table(
        found.results, "Examples of a batch", option_names={**OPTION_NAMES, **PASS_NAMES}
    )
    parts = [
        Section("All runs", runs_table(found.results.runs, columns(found))),
        Section("NE over the run", few_windows(found), charts=tuple(ne_charts(found))),
        Section("NE by day", days_table(found)),
        Section("Learning rates", charts=tuple(rate_charts(found))),
        Section("Calibration and AUC over the run", charts=tuple(other_charts(found))),
        Section("Optimizer state", charts=tuple(state_charts(found))),
        Section("Files left out", files_table(found)),
        Section("Settings", settings + command_html(found.results.command)),
    ]
    return [part for part in parts if part.html or part.charts]


def columns(found: OnePass) -> list[Column]:
    """How good every run is, what it was asked, what it cost."""
    base = found.baseline
    against = f"Against {base.label}, %" if base else ""
    return [
        Column("Evaluation NE", lambda run: run.test_ne, ne_score, min),
        Column(against, found.difference, signed),
        Column("Evaluation AUC", lambda run: run.test_auc, score, max),
        Column("Calibration", lambda run: run.test_calibration, score, nearest_to_one),
        Column("NE while training", lambda run: run.train_ne, ne_score, min),
        Column("Learning rate", lambda run: run.lr, "{:g}".format),
        Column("State, MB", lambda run: run.state_bytes, megabytes, min),
        Column("Examples/s", lambda run: run.speed, thousands, max),
    ]


def nearest_to_one(values: Iterable[float]) -> float:
    """The best calibration."""
    return min(values, key=lambda value: abs(value - 1))


def few_windows(found: OnePass) -> str:
    """Why nothing is drawn over the run, if there are too few windows for lines."""
    most = max(len(run.windows) for run in found.runs)
    if not 0 < most < LEAST_WINDOWS:
        return ""
    words = (
        f"With {count_of(most, 'window')} there are no lines of NE, calibration and AUC to draw: a "
        "smaller --window gives more."
    )
    return f'<p class="note">{words}</p>'


def ne_charts(found: OnePass) -> Iterator[Chart]:
    """NE by window, of all so far, and against the baseline."""
    if few_windows(found):
        return
    limit = found.results.best_possible.get("train_ne")
    best = None if limit is None else (limit, "best possible")
    window, lifetime = (
        Score(lambda one: one.ne, 5, best),
        Score(lambda one: one.lifetime_ne, 5, best),
    )
    yield from score_charts(found, "window-ne", "NE of each window", window)
    yield from score_charts(found, "lifetime-ne", "NE of all examples so far", lifetime)
    base, figure = found.baseline, figures.differences(found)
    if base is not None and figure is not None:
        lines = [
            (run.label, window_differences(run, base)) for run in found.runs if run is not base
        ]
        note = (
            f"On the same examples; below 0 is better than {base.label}. "
            "The axis follows the runs that the legend shows."
        )
        name = f"NE of each window against {base.label}, in percent"
        yield line_chart("difference", name, figure, lines, signed, note)


def other_charts(found: OnePass) -> Iterator[Chart]:
    """What else is measured by window."""
    if few_windows(found):
        return
    sums = "Sum of predicted probabilities over the number of positives: 1 is right."
    right = Score(lambda one: one.calibration, 3, (1.0, ""), sums)
    auc = Score(lambda one: one.auc, 4)
    yield from score_charts(found, "calibration", "Calibration of each window", right)
    yield from score_charts(found, "auc", "AUC of each window", auc)


def score_charts(found: OnePass, name: str, title: str, score: Score) -> Iterator[Chart]:
    """A chart of a score by window, if any window has it."""
    figure = figures.over_examples(found, score)
    if figure is not None:
        lines = [(run.label, score_points(run, score)) for run in found.runs]
        note = f"Each batch was scored before it was learned. {score.note}".rstrip()
        if score.level and not figure.layout.shapes:
            note += f" The {score.level[1]} level, {score.show(score.level[0])}, is off the axis."
        yield line_chart(name, title, figure, lines, score.show, note)


def line_chart(
    name: str,
    title: str,
    figure: Figure,
    lines: Sequence[tuple[str, Points]],
    show: Callable[[float], str],
    note: str,
) -> Chart:
    """Lines over examples with their words and data."""
    ends = [
        f"{label} {show(points[0][1])} at first, {show(points[-1][1])} at the end"
        for label, points in lines
        if points
    ]
    return Chart(
        name,
        title=title,
        figure=figure,
        description=f"Line chart of {title}, one line per run: {'; '.join(ends)}.",
        note=note + cut_off(figure, show),
        data=points_table(lines, show),
    )


def cut_off(figure: Figure, show: Callable[[float], str]) -> str:
    """Which values at the start are beyond the axis, if any."""
    low, high = figure.layout.yaxis.range
    values = [value for trace in figure.data for value in trace.y]
    sides = (("below", low, min(values) < low), ("above", high, max(values) > high))
    beyond = " and ".join(f"{side} {show(end)}" for side, end, is_beyond in sides if is_beyond)
    return f" What lies {beyond} is not shown at first." if beyond else ""


def points_table(lines: Sequence[tuple[str, Points]], show: Callable[[float], str]) -> str:
    """Every point of the lines: value and second, by examples and run."""
    known = {
        (label, window.examples): (window, value)
        for label, points in lines
        for window, value in points
    }
    head = ["Examples", *(f"{label}{unit}" for label, _ in lines for unit in ("", ", s"))]
    rows: list[list[str | None]] = []
    for examples in sorted({examples for _, examples in known}):
        rows.append([thousands(examples)])
        for label, _ in lines:
            window, value = known.get((label, examples), (None, None))
            seconds = None if window is None else window.seconds
            rows[-1].append(None if value is None else show(value))
            rows[-1].append(None if seconds is None else f"{seconds:.2f}")
    return plain_table(head, rows)


def days_table(found: OnePass) -> str:
    """NE of every day before it was learned, and of the evaluation days."""
    nes = {(run.label, day.day): day.ne for run in found.runs for day in run.days}
    sizes = {day.day: day.examples for run in found.runs for day in run.days}
    if not sizes:
        return ""
    rows: list[list[str | None]] = [
        [day, shown(examples, thousands)]
        + [shown(nes.get((run.label, day)), ne_score) for run in found.runs]
        for day, examples in sizes.items()
    ]
    if found.is_evaluated:
        test = found.results.splits.get("test")
        scores = [shown(run.test_ne, ne_score) for run in found.runs]
        rows.append(["Evaluation", shown(test, thousands), *scores])
    words = "Each day was scored before it was learned; the evaluation examples never were learned."
    head = ["Day", "Examples", *(run.label for run in found.runs)]
    return plain_table(head, rows) + f'<p class="note">{words}</p>'


def rate_charts(found: OnePass) -> Iterator[Chart]:
    """What the rates that were tried came to."""
    figure = figures.rates_tried(found)
    if figure is None:
        return
    words = [
        f"{run.label} "
        + ", ".join(
            f"{shown(one.train_ne, ne_score) or 'none'} at {one.lr:.3g}" for one in run.search
        )
        for run in found.runs
        if run.search
    ]
    rows = [
        [
            run.label,
            f"{one.lr:.4g}",
            shown(one.train_ne, ne_score) or failure(one),
            shown(one.test_ne, ne_score),
        ]
        for run in found.runs
        for one in run.search
    ]
    yield Chart(
        "rates",
        title="NE while training by learning rate",
        figure=figure,
        description=f"Line chart of NE while training by learning rate: {'; '.join(words)}.",
        note=" ".join(["The large marker is the rate that was chosen.", *rate_limits(found)])
        + cut_off(figure, ne_score),
        data=plain_table(
            ["Optimizer", "Learning rate", "NE while training", "Evaluation NE"], rows
        ),
    )


def failure(one: Tried) -> str:
    """What became of a rate without NE."""
    return "diverged" if one.error is None else f"diverged: {one.error}"


def files_table(found: OnePass) -> str:
    """What could not be read and was to be left out."""
    rows = [[file] for file in found.skipped]
    return plain_table(["File and reason"], rows, kind="settings") if rows else ""


def state_charts(found: OnePass) -> Iterator[Chart]:
    """What optimizers keep beside the weights."""
    figure = state_memory(found.results)
    if figure is not None:
        sizes = [(run.label, state_words(run)) for run in found.results.runs]
        note = "Numbers that the optimizer keeps beside the weights, in bytes."
        yield memory_chart("state", figure, sizes, note)


def shown(value: float | None, show: Callable[[float], str]) -> str | None:
    """A number that may be missing."""
    return None if value is None else show(value)
