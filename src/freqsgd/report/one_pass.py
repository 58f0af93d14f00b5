"""Reads what one-pass runs have in ``results.json``, and sets them against a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from freqsgd.report.results import Results, Run, mapping, number, read_results, text

__all__ = [
    "BASELINE",
    "Day",
    "OnePass",
    "Scores",
    "Streamed",
    "Tried",
    "Window",
    "percent_apart",
    "read_one_pass",
    "window_differences",
]

BASELINE = "adagrad"
CUT_SHORT = ("diverged", "interrupted")


@dataclass(frozen=True)
class Scores:
    """How good predictions of some examples are."""

    ne: float | None
    auc: float | None
    calibration: float | None


NO_SCORES = Scores(None, None, None)


@dataclass(frozen=True)
class Window:
    """Consecutive examples of a run, scored before they were learned."""

    examples: float  # seen up to its end
    seconds: float | None
    own: Scores
    lifetime: Scores  # of all examples up to its end


@dataclass(frozen=True)
class Day:
    """A day that was learned from, scored before it was learned."""

    name: str
    examples: float | None
    ne: float | None


@dataclass(frozen=True)
class Tried:
    """A learning rate, and what it came to."""

    lr: float
    train_ne: float | None
    test_ne: float | None
    error: str | None


@dataclass(frozen=True)
class Streamed:
    """A run that saw every example once."""

    run: Run
    windows: tuple[Window, ...]
    days: tuple[Day, ...]
    train: Scores  # of every example before it was learned; none if not all were
    test: Scores  # of the evaluation days
    tried: tuple[Tried, ...]  # by rate
    at_edge: bool  # the best rate is the smallest or the largest
    peak_memory: float | None
    dropped: float | None
    skipped: tuple[str, ...]

    @property
    def label(self) -> str:
        """The run's name for readers."""
        return self.run.label


@dataclass(frozen=True)
class OnePass:
    """All runs over one stream, and what they have in common."""

    results: Results
    runs: tuple[Streamed, ...]

    @property
    def skipped(self) -> list[str]:
        """Files that were left out, with the reasons."""
        return list(dict.fromkeys(file for run in self.runs for file in run.skipped))

    @property
    def is_evaluated(self) -> bool:
        """Whether there are examples that were not learned from."""
        return any(run.test.ne is not None for run in self.runs)

    @property
    def ne_name(self) -> str:
        """What runs are compared by."""
        return "evaluation NE" if self.is_evaluated else "NE while training"

    def ne(self, run: Streamed) -> float | None:
        """The NE that runs are compared by."""
        return run.test.ne if self.is_evaluated else run.train.ne

    @property
    def baseline(self) -> Streamed | None:
        """Adagrad's run; without it the first that has an NE; None with nothing to compare."""
        known = [run for run in self.runs if self.ne(run) is not None]
        if len(known) < 2:
            return None
        return next((run for run in known if run.run.optimizer == BASELINE), known[0])

    def difference(self, run: Streamed) -> float | None:
        """How many percent a run's NE is above the baseline's; None for the baseline itself."""
        base = self.baseline
        if base is None or run is base:
            return None
        return percent_apart(self.ne(run), self.ne(base))


def percent_apart(value: float | None, base: float | None) -> float | None:
    """100 (value - base) / base, where both are known."""
    return None if value is None or not base else 100 * (value - base) / base


def window_differences(run: Streamed, base: Streamed) -> list[tuple[Window, float]]:
    """How many percent the NE of each window is above that of the baseline's same examples."""
    bases = {window.examples: window.own.ne for window in base.windows}
    found = ((each, percent_apart(each.own.ne, bases.get(each.examples))) for each in run.windows)
    return [(window, apart) for window, apart in found if apart is not None]


def read_one_pass(results: Mapping[str, Any]) -> OnePass:
    """The content of a ``results.json`` with ``"one_pass": true``."""
    read = read_results(results)
    runs = zip(results["runs"], read.runs, strict=True)
    return OnePass(read, tuple(read_streamed(raw, run) for raw, run in runs))


def read_streamed(raw: Mapping[str, Any], run: Run) -> Streamed:
    """One entry of ``runs``; what is unusable counts as absent."""
    skipped = raw.get("skipped")
    return Streamed(
        run,
        windows=tuple(read_windows(entries(raw, "windows"))),
        days=tuple(read_days(entries(raw, "days"))),
        train=NO_SCORES if run.stopped in CUT_SHORT else read_scores(raw, "train_"),
        test=read_scores(raw, "test_"),
        tried=tuple(sorted(read_tried(entries(raw, "search")), key=lambda one: one.lr)),
        at_edge=raw.get("search_edge") is True,
        peak_memory=number(raw.get("peak_memory_bytes")),
        dropped=number(raw.get("dropped")),
        skipped=tuple(map(str, skipped if isinstance(skipped, list) else [])),
    )


def entries(raw: Mapping[str, Any], key: str) -> Iterable[Mapping[str, Any]]:
    """The objects of a list that may be missing."""
    found = raw.get(key)
    return map(mapping, found if isinstance(found, list) else [])


def read_scores(raw: Mapping[str, Any], prefix: str = "") -> Scores:
    """The scores whose names start with ``prefix``."""
    return Scores(*(number(raw.get(prefix + name)) for name in ("ne", "auc", "calibration")))


def read_windows(raw: Iterable[Mapping[str, Any]]) -> Iterable[Window]:
    """Windows that say where they end."""
    for entry in raw:
        examples = number(entry.get("examples"))
        if examples is not None:
            scores = read_scores(entry), read_scores(entry, "lifetime_")
            yield Window(examples, number(entry.get("seconds")), *scores)


def read_days(raw: Iterable[Mapping[str, Any]]) -> Iterable[Day]:
    """Days that have a name."""
    for entry in raw:
        name = text(entry.get("day"))
        if name is not None:
            yield Day(name, number(entry.get("examples")), number(entry.get("ne")))


def read_tried(raw: Iterable[Mapping[str, Any]]) -> Iterable[Tried]:
    """Rates that a logarithmic axis can show."""
    for entry in raw:
        lr = number(entry.get("lr"))
        if lr is not None and lr > 0:
            error = text(entry.get("error"))
            train_ne = None if error else number(entry.get("train_ne"))
            yield Tried(lr, train_ne, number(entry.get("test_ne")), error)
