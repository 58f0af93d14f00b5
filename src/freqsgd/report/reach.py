"""When CF-SGD got as far as SGD ever did."""

from __future__ import annotations

from dataclasses import dataclass

from freqsgd.report.comparison import first_reaching, representative
from freqsgd.report.kinds import Kind
from freqsgd.report.measures import Best, best
from freqsgd.report.results import Epoch, Results
from freqsgd.report.wording import count_of

__all__ = ["Reach", "point", "reach"]


@dataclass(frozen=True)
class Reach:
    """CF-SGD and SGD, each at its best, and when CF-SGD was as good as SGD."""

    counting: Best
    plain: Best
    epoch: Epoch | None  # None: it never was

    @property
    def is_fair(self) -> bool:
        """Whether SGD's best is all that it could reach, so that its epochs can be counted."""
        return not self.plain.run.still_learning


def reach(results: Results, kind: Kind) -> Reach | None:
    """When CF-SGD got as far as SGD ever did; None if either has no values."""
    found = []
    for optimizer in ("cfsgd", "sgd"):
        run = representative(results, optimizer, kind.kept)
        at_best = None if run is None else best(run, kind.by)
        if at_best is None:
            return None
        found.append(at_best)
    counting, plain = found
    return Reach(counting, plain, first_reaching(counting.run, kind.by, plain.value))


def point(results: Results, kind: Kind) -> str:
    """What learning curves show at a glance, if it is what frequency-aware rates are for."""
    found = reach(results, kind)
    if found is None or not found.is_fair:
        return ""
    if found.epoch is None or found.epoch.epoch >= found.plain.epoch.epoch:
        return ""
    slow, fast = found.plain, found.counting
    epochs = count_of(slow.epoch.epoch, "epoch")
    return f"what takes {slow.run.label} {epochs} takes {fast.run.label} {found.epoch.epoch}"
