"""What the runs say about each other: who is best, and when one reached what another reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

from freqsgd.report.old.measures import Measure, Metric
from freqsgd.report.old.results import Epoch, Results, Run
from freqsgd.report.old.wording import enumerate_words, small_number, spread


@dataclass(frozen=True)
class Standing:
    """Where an optimizer stands: runs that differ in their seed count as one."""

    label: str
    runs: tuple[Run, ...]  # those that have a value, the worst first
    values: tuple[float, ...]

    @property
    def value(self) -> float:
        """The mean over seeds."""
        return mean(self.values)

    @property
    def seeds(self) -> int:
        """How many runs there are."""
        return len(self.runs)

    @property
    def middle(self) -> Run:
        """The run that is in the middle by its value."""
        return self.runs[(len(self.runs) - 1) // 2]


def alike(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs of the same optimizer, rate and decay together."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.family, []).append(run)
    return list(groups.values())


def standings(results: Results, by: Measure) -> list[Standing]:
    """How good each optimizer is, where that was measured."""
    found = []
    for runs in alike(results.runs):
        measured = [(value, run) for run in runs if (value := by.of(run)) is not None]
        measured.sort(key=lambda pair: by.gain(pair[0]))
        if measured:
            values, those = zip(*measured, strict=True)
            label = runs[0].label if len(runs) == 1 else runs[0].family
            found.append(Standing(label, those, values))
    return found


def leaders(found: Sequence[Standing], by: Measure) -> list[Standing]:
    """The best: several if they are equal."""
    top = max((by.gain(one.value) for one in found), default=0.0)
    return [one for one in found if by.gain(one.value) == top]


def best_standing(results: Results, optimizer: str, by: Measure) -> Standing | None:
    """Where an optimizer stands, at its best settings if it has several."""
    own = [one for one in standings(results, by) if one.middle.optimizer == optimizer]
    return next(iter(leaders(own, by)), None)


def representative(results: Results, optimizer: str, by: Measure) -> Run | None:
    """The run that speaks for an optimizer: no luckier with its seed than others."""
    found = best_standing(results, optimizer, by)
    runs = [run for run in results.runs if run.optimizer == optimizer]
    return found.middle if found else next(iter(runs), None)


def first_reaching(run: Run, by: Metric, target: float) -> Epoch | None:
    """The first epoch that is at least as good as ``target``."""
    for epoch in run.epochs:
        value = by.of(epoch)
        if value is not None and by.gain(value, target) >= 0:
            return epoch
    return None


def ranked(what: str, results: Results, by: Measure) -> str:
    """Who scores what, best first, and who has no score; of several seeds, mean and spread."""
    found = sorted(standings(results, by), key=lambda one: -by.gain(one.value))
    if not found:
        return ""
    counts = {one.seeds for one in found}
    if max(counts) > 1:
        seeds = f"{small_number(max(counts))} seeds" if len(counts) == 1 else "seeds"
        what += f", mean and standard deviation over {seeds}"
    entries = []
    for one in found:
        seeds = f" ({one.seeds} {'seed' if one.seeds == 1 else 'seeds'})" if len(counts) > 1 else ""
        entries.append(f"{one.label} {spread(one.values, by.show)}{seeds}")
    known = {run.family for one in found for run in one.runs}
    missing = [runs[0].family for runs in alike(results.runs) if runs[0].family not in known]
    none = f" There is none for {enumerate_words(missing)}." if missing else ""
    return f"{what}: {enumerate_words(entries)}.{none}"
