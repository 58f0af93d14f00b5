"""How a stream is gone through once, and what cannot be done so."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from freqsgd.errors import DataError
from freqsgd.optimizers import Rule
from freqsgd.recommender.settings import Settings
from freqsgd.tables.stream import Stream

__all__ = [
    "GRIDS",
    "Pass",
    "StreamListener",
    "StreamProgress",
    "candidates",
    "capped",
    "check_one_pass",
    "check_optimizer",
    "days_to_learn",
    "pass_settings",
]


@dataclass(frozen=True)
class Pass:
    """How a stream is gone through.

    Args:
        window: examples of a window of the metrics
        checkpoint_examples: write a checkpoint after so many examples
        evaluation_days: the last days, which are not learned from; none if there is one day only
    """

    window: int = 100_000
    checkpoint_examples: int | None = None
    evaluation_days: int = 1

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ValueError(f"window must be at least 1, got {self.window}")
        if self.checkpoint_examples is not None and self.checkpoint_examples < 1:
            raise ValueError(
                f"checkpoint_examples must be at least 1, got {self.checkpoint_examples}"
            )
        if self.evaluation_days < 0:
            raise ValueError(f"evaluation_days must be at least 0, got {self.evaluation_days}")


@dataclass
class StreamProgress:
    """Where a run is."""

    examples: int = 0  # learned
    done: float = 0.0  # the part of the days to learn from, or of the evaluation, from 0 to 1
    seconds: float = 0.0  # of reading and learning
    ne: float | None = None  # of all examples so far
    evaluating: bool = False


StreamListener = Callable[[StreamProgress, dict[str, Any]], None]
"""Called after each batch with where the run is and its record so far."""


def check_one_pass(rule: Rule, settings: Settings) -> None:
    """Refuse what one pass cannot do."""
    if rule.lr is None:
        raise DataError(f"one pass needs a learning rate for {rule.optimizer}: give lr")
    check_optimizer(rule)
    if settings.lr_decay != "constant":
        raise DataError(
            f"lr_decay {settings.lr_decay} needs to know how many examples will come: in one "
            "pass the learning rate is constant"
        )


def pass_settings(settings: Settings) -> dict[str, Any]:
    """The settings that mean something in one pass, as JSON reads them back."""
    without = ("epochs", "patience", "lr_decay", "checkpoint_steps")
    return {k: v for k, v in settings.plain.items() if k not in without}


def days_to_learn(stream: Stream, plan: Pass) -> int:
    """How many days are learned from; the others are for evaluation."""
    days = len(stream.days)
    if days == 1:
        return 1
    if plan.evaluation_days >= days:
        raise DataError(
            f"{stream.name} has {days} days: with {plan.evaluation_days} for evaluation there is "
            "none to learn from"
        )
    return days - plan.evaluation_days


_MOST = 0.03
GRIDS = {
    # a factor of about 3 apart, around the best of clicks-small for batches of 1,024
    "sgd": (1.0, 3.0, 10.0, 30.0, 100.0),
    "cfsgd": (0.1, 0.3, 1.0, 3.0, 10.0),
    "adagrad": (0.003, 0.01, 0.03, 0.1, 0.3),
    "rowwise-adagrad": (0.003, 0.01, 0.03, 0.1, 0.3),
    "adam": (0.0003, 0.001, 0.003, 0.01, 0.03),
}


def check_optimizer(rule: Rule) -> None:
    """Refuse an optimizer that cannot learn from a stream."""
    if rule.optimizer not in GRIDS:
        raise DataError(
            f"{rule.optimizer} must know beforehand how often each token will occur, which a "
            "stream does not tell: use cfsgd, which counts as it goes"
        )


def candidates(rule: Rule, batch_size: int) -> list[Rule]:
    """The rule at its own learning rate, or at each of its optimizer's grid.

    Where batches are counted, rates of the grid are times the root of the batch size.

    Example:
        >>> [rule.lr for rule in candidates(Rule("cfsgd"), batch_size=1024)]
        [0.1, 0.3, 1.0, 3.0, 10.0]
        >>> [rule.lr for rule in candidates(Rule("cfsgd", count="batch"), batch_size=1024)]
        [3.2, 9.6, 32.0, 96.0, 320.0]
    """
    check_optimizer(rule)
    if rule.lr is not None:
        return [rule]
    scale = math.sqrt(batch_size) if rule.count == "batch" else 1.0
    return [replace(rule, lr=float(f"{scale * lr:.3g}")) for lr in GRIDS[rule.optimizer]]


def capped(rule: Rule, batch_size: int) -> Rule:
    """The rule with a cap on a token's rate, for cfsgd if it has none and counts occurrences.

    A token that is new after n examples would have the rate lr * sqrt(n), whatever n. A single
    occurrence moves a row by its rate / batch size, times its gradient: the cap keeps that at 3% of
    lr at most, so it grows with the batch. Where batches are counted there is no cap unless it is
    asked for: TorchRec, which counts them, knows none.

    Example:
        >>> capped(Rule("cfsgd", lr=2.0), batch_size=1000).max_lr
        60.0
    """
    open_ = rule.optimizer == "cfsgd" and rule.max_lr is None and rule.count == "occurrence"
    if not open_ or rule.lr is None:
        return rule
    return replace(rule, max_lr=_MOST * rule.lr * batch_size)
