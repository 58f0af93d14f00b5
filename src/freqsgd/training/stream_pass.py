"""How a stream is gone through once, and what cannot be done so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from freqsgd.data.dataset import DataError
from freqsgd.streams.stream import Stream
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings
from freqsgd.training.stream_rates import check_optimizer

__all__ = [
    "Pass",
    "StreamListener",
    "StreamProgress",
    "check_one_pass",
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
