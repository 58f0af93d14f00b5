"""What runs are measured by: at the end of an epoch, as a whole, by how frequent tokens are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from freqsgd.report.old.results import Epoch, Run
from freqsgd.report.old.wording import score

CLASSES = ("head", "torso", "tail")


@dataclass(frozen=True)
class Metric:
    """A measure of an epoch."""

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


@dataclass(frozen=True)
class Measure:
    """A measure of a whole run."""

    name: str
    of: Callable[[Run], float | None]
    higher_is_better: bool
    show: Callable[[float], str] = score
    metric: Metric | None = None  # of the epoch that was kept, if it is that

    def gain(self, value: float, over: float = 0.0) -> float:
        """How much better ``value`` is: negative if it is worse."""
        return value - over if self.higher_is_better else over - value


@dataclass(frozen=True)
class Breakdown:
    """A test score by how frequent the tokens are."""

    key: str  # in a run
    name: str  # of its chart
    topic: str  # what is said of the tail
    title: str
    score: str  # what it is: AUC, loss
    of_tail: str  # whose score that of the tail is
    of_classes: str  # whose scores all are
    note: str
    higher_is_better: bool
    against_sgd: bool  # drawn as the difference to SGD's: classes differ more than optimizers

    def measure(self, frequency: str) -> Measure:
        """The score of one class."""

        def value(run: Run) -> float | None:
            found: float | None = getattr(run, self.key).get(frequency)
            return found

        return Measure(f"{frequency} {self.score}", value, self.higher_is_better)


class Best(NamedTuple):
    """A run at its best."""

    run: Run
    epoch: Epoch
    value: float


def best(run: Run, by: Metric) -> Best | None:
    """The epoch whose weights were kept; if the run does not say, the first of the best ones."""
    measured = measurements(run, by)
    chosen = [found for found in measured if found.epoch.epoch == run.best_epoch]
    return max(chosen or measured, key=lambda found: by.gain(found.value), default=None)


def optimum(run: Run, by: Metric) -> Best | None:
    """The first of the best epochs, whichever was kept."""
    return max(measurements(run, by), key=lambda found: by.gain(found.value), default=None)


def measurements(run: Run, by: Metric) -> list[Best]:
    """All epochs in which it was measured."""
    return [Best(run, epoch, value) for epoch in run.epochs if (value := by.of(epoch)) is not None]


def kept(by: Metric, name: str) -> Measure:
    """A run's value in the epoch whose weights were kept."""

    def value(run: Run) -> float | None:
        found = best(run, by)
        return None if found is None else found.value

    return Measure(name, value, by.higher_is_better, metric=by)
