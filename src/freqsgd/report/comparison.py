"""What the runs say about each other: who is best, and when one reached what another reached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from freqsgd.report.results import Epoch, Results, Run

__all__ = ["Best", "Metric", "best", "first_reaching", "leaders", "metric", "representative"]


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


def leaders(runs: Iterable[Run], by: Metric) -> list[Best]:
    """The best runs: several if they are equal, none if nothing was measured."""
    measured = [found for run in runs if (found := best(run, by)) is not None]
    top = max((by.gain(found.value) for found in measured), default=0.0)
    return [found for found in measured if by.gain(found.value) == top]


def representative(results: Results, optimizer: str, by: Metric) -> Run | None:
    """The run that speaks for an optimizer: its best one."""
    runs = [run for run in results.runs if run.optimizer == optimizer]
    return next((found.run for found in leaders(runs, by)), runs[0] if runs else None)
