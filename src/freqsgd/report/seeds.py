"""Mean and spread of runs that differ in their seed alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, stdev

from freqsgd.report.comparison import Metric, alike, best
from freqsgd.report.results import Results, Run, display_name
from freqsgd.report.tables import plain_table
from freqsgd.report.wording import enumerate_words, score, small_number

__all__ = ["over_seeds", "seeds_table"]


@dataclass(frozen=True)
class Group:
    """An optimizer's runs with several seeds."""

    name: str
    runs: tuple[Run, ...]


def groups(results: Results) -> list[Group]:
    """Runs of the same optimizer, rate and decay, if they have several seeds."""
    return [
        Group(display_name(runs[0].optimizer), tuple(runs))
        for runs in alike(results.runs)
        if len({repr(run.settings.get("seed")) for run in runs}) == len(runs) > 1
    ]


def over_seeds(results: Results) -> str:
    """Test scores of each optimizer, averaged."""
    told = []
    for group in groups(results):
        values = [run.test_auc for run in group.runs if run.test_auc is not None]
        if len(values) > 1:
            count = small_number(len(values))
            told.append(f"{group.name} {spread_words(values)} ({count} seeds)")
    if not told:
        return ""
    return f"Test AUC, mean and standard deviation: {enumerate_words(told)}."


def seeds_table(results: Results, by: Metric) -> str:
    """Mean and standard deviation of what matters, one row per optimizer."""

    def value(run: Run) -> float | None:
        found = best(run, by)
        return None if found is None else found.value

    measures: dict[str, Callable[[Run], float | None]] = {
        f"Best {by.name}": value,
        "Test AUC": lambda run: run.test_auc,
        "Test loss": lambda run: run.test_loss,
        "Tail AUC": lambda run: run.test_auc_by_frequency.get("tail"),
    }
    rows: list[list[str | None]] = []
    for group in groups(results):
        rows.append([group.name, str(len(group.runs))])
        for measure in measures.values():
            values = [found for run in group.runs if (found := measure(run)) is not None]
            rows[-1].append(spread_words(values) if len(values) > 1 else None)
    return plain_table(["Optimizer", "Seeds", *measures], rows) if rows else ""


def spread_words(values: list[float]) -> str:
    """Mean and standard deviation."""
    return f"{score(mean(values))} \N{PLUS-MINUS SIGN} {score(stdev(values))}"
