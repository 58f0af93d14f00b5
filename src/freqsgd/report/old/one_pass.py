"""Runs that saw every example once, set against a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from freqsgd.documents.results import Tried, Window
from freqsgd.report.old.results import Results, Run, read_results

BASELINE = "adagrad"
CUT_SHORT = ("diverged", "interrupted")


@dataclass(frozen=True)
class OnePass:
    """All runs over one stream, and what they have in common."""

    results: Results

    @property
    def runs(self) -> tuple[Run, ...]:
        """Those of the results."""
        return self.results.runs

    @property
    def skipped(self) -> list[str]:
        """Files that were left out, with the reasons."""
        return list(dict.fromkeys(file for run in self.runs for file in run.skipped))

    @property
    def is_evaluated(self) -> bool:
        """Whether there are examples that were not learned from."""
        return any(run.test_ne is not None for run in self.runs)

    @property
    def ne_name(self) -> str:
        """What runs are compared by."""
        return "evaluation NE" if self.is_evaluated else "NE while training"

    def ne(self, run: Run) -> float | None:
        """The NE that runs are compared by."""
        return run.test_ne if self.is_evaluated else run.train_ne

    @property
    def baseline(self) -> Run | None:
        """Adagrad's run; without it the first that has an NE; None with nothing to compare."""
        known = [run for run in self.runs if self.ne(run) is not None]
        if len(known) < 2:
            return None
        return next((run for run in known if run.optimizer == BASELINE), known[0])

    def difference(self, run: Run) -> float | None:
        """How many percent a run's NE is above the baseline's; None for the baseline itself."""
        base = self.baseline
        if base is None or run is base:
            return None
        return percent_apart(self.ne(run), self.ne(base))


def percent_apart(value: float | None, base: float | None) -> float | None:
    """100 (value - base) / base, where both are known."""
    return None if value is None or not base else 100 * (value - base) / base


def window_differences(run: Run, base: Run) -> list[tuple[Window, float]]:
    """How many percent the NE of each window is above that of the baseline's same examples."""
    bases = {window.examples: window.ne for window in base.windows}
    found = ((each, percent_apart(each.ne, bases.get(each.examples))) for each in run.windows)
    return [(window, apart) for window, apart in found if apart is not None]


def read_one_pass(document: Mapping[str, Any]) -> OnePass:
    """The content of a ``results.json`` with ``"one_pass": true``."""
    results = read_results(document)
    return OnePass(replace(results, runs=tuple(map(whole, results.runs))))


def whole(run: Run) -> Run:
    """A run without scores of a part of its examples, and its rates in order."""
    tried = sorted(map(ended, run.search), key=lambda one: one.lr)
    run = replace(run, search=tuple(one for one in tried if one.lr > 0))
    if run.stopped not in CUT_SHORT:
        return run
    return replace(run, train_ne=None, train_auc=None, train_calibration=None)


def ended(one: Tried) -> Tried:
    """A rate without the score of a run that diverged."""
    return replace(one, train_ne=None) if one.error else one
