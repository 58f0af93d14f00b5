"""The parts of a report that tell of a search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from freqsgd.report.old import tuning_figures as figures
from freqsgd.report.old.page import Chart, Section
from freqsgd.report.old.results import Results
from freqsgd.report.old.tables import plain_table
from freqsgd.report.old.tuning import CLOSE, Study, factor_words, good_range, read_studies
from freqsgd.report.old.wording import enumerate_words, score

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


SETTING_NAMES = {
    "lr": "Learning rate",
    "decay_epochs": "It falls to 0 over epochs",
    "max_lr_ratio": "Cap on a token's rate, times it",
    "linear_lr_scale": "Rate of linear weights, times it",
    "weight_decay": "Weight decay",
    "typical_decay": "Weight decay of a typical token",
    "weight_decay_power": "Its power of frequency",
    "linear_decay_scale": "Decay of linear weights, times it",
    "init_scale": "Scale of the start",
}
LEFT_OUT = {"decay_epochs": "constant"}


def tuning_sections(results: Results) -> list[Section]:
    """What was searched and found; nothing if nothing was tuned."""
    studies = read_studies(results)
    if not studies:
        return []
    return [
        Section("Tuning", charts=tuple(charts(results, studies))),
        Section("Learning rates that do well", rates_table(studies)),
        Section("Best settings", settings_table(studies)),
    ]


def charts(results: Results, studies: list[Study]) -> Iterator[Chart]:
    """How the search went, and how much the learning rate matters."""
    search = figures.best_so_far(results, studies)
    if search is not None:
        lines = {study.name: figures.so_far(study) for study in studies}
        told = [
            f"{name} {score(line[0][1])} at first, {score(line[-1][1])} after {line[-1][0]} trials"
            for name, line in lines.items()
            if line
        ]
        yield Chart(
            "search",
            title="Best validation AUC so far",
            figure=search,
            description=f"Line chart of the best validation AUC: {'; '.join(told)}.",
            note="Every optimizer has the same number of trials." + cut_off(search),
            data=search_table(studies, lines),
        )
    sensitivity = figures.rate_sensitivity(results, studies)
    if sensitivity is not None:
        yield Chart(
            "learning-rates",
            title="Sensitivity to the learning rate",
            figure=sensitivity,
            description="Line chart of validation AUC by learning rate, other settings as in the "
            f"best trial: {sweep_words(studies)}.",
            note="Lines: all other settings as in the best trial; the large marker is the best. "
            "Faint: the trials, where other settings differ too." + cut_off(sensitivity),
            data=sweep_table(studies),
        )


def cut_off(figure: Figure) -> str:
    """Where the axis starts, if some values lie below."""
    low = figure.layout.yaxis.range[0]
    lowest = min(value for trace in figure.data for value in trace.y)
    return "" if lowest >= low else f" What lies below {low:.3f} is not shown."


def sweep_words(studies: list[Study]) -> str:
    """Every line of the sweep, in words."""
    lines = []
    for study in studies:
        points = (f"{shown(value) or 'diverged'} at {lr:.3g}" for lr, value in study.sweep)
        if study.sweep:
            lines.append(f"{study.name} {', '.join(points)}")
    return "; ".join(lines)


def search_table(studies: list[Study], lines: dict[str, list[tuple[int, float]]]) -> str:
    """Every trial, and the best so far."""
    trials = {(study.name, trial.number): trial for study in studies for trial in study.trials}
    bests = {(name, at): value for name, line in lines.items() for at, value in line}
    head = ["Trial", *(f"{name}{of}" for name in lines for of in ("", ", best so far"))]
    rows: list[list[str | None]] = []
    for number in sorted({number for _, number in trials}):
        rows.append([str(number + 1)])
        for name in lines:
            trial = trials.get((name, number))
            value = None if trial is None else shown(trial.value)
            if trial is not None and trial.state != "complete":
                value = f"{value} (stopped)" if value else trial.state
            rows[-1] += [value, shown(bests.get((name, number + 1)))]
    return plain_table(head, rows)


def sweep_table(studies: list[Study]) -> str:
    """Every point of the sweep."""
    rows = [
        [study.name, f"{lr:.3g}", shown(value) or "diverged"]
        for study in studies
        for lr, value in study.sweep
    ]
    return plain_table(["Optimizer", "Learning rate", "Validation AUC"], rows)


def shown(value: float | None) -> str | None:
    """A score that may be missing."""
    return None if value is None else score(value)


def rates_table(studies: list[Study]) -> str:
    """How wide the good range of each optimizer is."""
    rows: list[list[str | None]] = []
    for study in studies:
        found = good_range(study.sweep)
        if found is None:
            rows.append([study.name, None, None, None, None])
        else:
            ends = [f"{found.low:.3g}", f"{found.high:.3g}"]
            rows.append([study.name, factor_words(found), *ends, score(found.best)])
    head = ["Optimizer", "Factor", "Good from", "Good to", "Best validation AUC"]
    words = (
        f"Good is a rate between the best and the first on each side that is over {CLOSE} worse."
    )
    return plain_table(head, rows) + f'<p class="note">{words}</p>'


def settings_table(studies: list[Study]) -> str:
    """What is best for each optimizer, and how the trials ended."""
    head = ["Setting", *(study.name for study in studies)]
    rows: list[list[str | None]] = [
        [title, *(setting(study, name) for study in studies)]
        for name, title in SETTING_NAMES.items()
        if any(name in study.params for study in studies)
    ]
    rows.append(["Validation AUC", *(best_words(study) for study in studies)])
    rows.append(["Trials", *(count_words(study) for study in studies)])
    return plain_table(head, rows, kind="settings")


def setting(study: Study, name: str) -> str | None:
    """One of the best settings."""
    value = study.params.get(name)
    if value is None:
        return LEFT_OUT.get(name, "none") if name in study.params else None
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def best_words(study: Study) -> str | None:
    """The best score, and where it was reached."""
    if study.best is None or study.best.value is None:
        return None
    place = "in the sweep around" if study.from_sweep else "in"
    return f"{score(study.best.value)} {place} trial {study.best.number + 1}"


def count_words(study: Study) -> str:
    """How many trials ended how."""
    ways = (("complete", "to the end"), ("pruned", "stopped early"), ("diverged", "diverged"))
    counts = [(sum(trial.state == state for trial in study.trials), way) for state, way in ways]
    return enumerate_words(f"{count} {way}" for count, way in counts if count)
