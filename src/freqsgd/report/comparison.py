"""What the runs say about each other: who is best, and when one reached what another reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import NamedTuple, TypeVar

from freqsgd.report.results import Epoch, Results, Run, display_name

__all__ = [
    "Best",
    "Metric",
    "Standing",
    "alike",
    "best",
    "best_standing",
    "first_reaching",
    "leaders",
    "metric",
    "representative",
    "standings",
]


@dataclass(frozen=True)
class Metric:
    """A measure of an epoch by which runs are compared."""

    key: str  # in an epoch
    name: str
    higher_is_better: bool

    def of(self, epoch: Epoch) -> float | None:
        """Its value in an epoch."""
        value: float | None = getattr(epoch, self.key)
        return value

    def gain(self, value: float, over: float = 0.0) -> float:
        """How much better ``value`` is: negative if it is worse."""
        return value - over if self.higher_is_better else over - value


class Best(NamedTuple):
    """A run at its best."""

    run: Run
    epoch: Epoch
    value: float


class Standing(NamedTuple):
    """Where an optimizer stands: runs that differ in their seed count as one."""

    label: str
    value: float  # at its best, the mean over seeds
    middle: Best  # the run that is in the middle by its best value
    seeds: int


_Valued = TypeVar("_Valued", Best, Standing)

VALIDATION_AUC = Metric("val_auc", "validation AUC", higher_is_better=True)
VALIDATION_LOSS = Metric("val_loss", "validation loss", higher_is_better=False)


def metric(results: Results) -> Metric:
    """The validation AUC; the validation loss where there is no AUC, as for models of text."""
    epochs = [epoch for run in results.runs for epoch in run.epochs]
    for measure in (VALIDATION_AUC, VALIDATION_LOSS):
        if any(measure.of(epoch) is not None for epoch in epochs):
            return measure
    return VALIDATION_AUC


def best(run: Run, by: Metric) -> Best | None:
    """The epoch whose weights were kept; if the run does not say, the first of the best ones."""
    measured = [
        Best(run, epoch, value) for epoch in run.epochs if (value := by.of(epoch)) is not None
    ]
    kept = [found for found in measured if found.epoch.epoch == run.best_epoch]
    return max(kept or measured, key=lambda found: by.gain(found.value), default=None)


def first_reaching(run: Run, by: Metric, target: float) -> Epoch | None:
    """The first epoch that is at least as good as ``target``."""
    for epoch in run.epochs:
        value = by.of(epoch)
        if value is not None and by.gain(value, target) >= 0:
            return epoch
    return None


def leaders(found: Sequence[_Valued], by: Metric) -> list[_Valued]:
    """The best: several if they are equal."""
    top = max((by.gain(one.value) for one in found), default=0.0)
    return [one for one in found if by.gain(one.value) == top]


def alike(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs of the same optimizer, rate and decay together."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        given = run.settings
        key = (run.optimizer, repr(given.get("lr")), repr(given.get("weight_decay")))
        groups.setdefault(key, []).append(run)
    return list(groups.values())


def standings(results: Results, by: Metric) -> list[Standing]:
    """How good each optimizer is, where that was measured."""
    found = []
    for runs in alike(results.runs):
        bests = [one for run in runs if (one := best(run, by)) is not None]
        if bests:
            bests.sort(key=lambda one: by.gain(one.value))
            label = runs[0].label if len(runs) == 1 else display_name(runs[0].optimizer)
            middle = bests[(len(bests) - 1) // 2]
            found.append(Standing(label, mean(one.value for one in bests), middle, len(bests)))
    return found


def best_standing(results: Results, optimizer: str, by: Metric) -> Standing | None:
    """Where an optimizer stands, at its best settings if it has several."""
    own = [one for one in standings(results, by) if one.middle.run.optimizer == optimizer]
    return next(iter(leaders(own, by)), None)


def representative(results: Results, optimizer: str, by: Metric) -> Run | None:
    """The run that speaks for an optimizer: no luckier with its seed than others."""
    found = best_standing(results, optimizer, by)
    runs = [run for run in results.runs if run.optimizer == optimizer]
    return found.middle.run if found else next(iter(runs), None)
