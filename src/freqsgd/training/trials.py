"""Trials of a search: as Optuna knows them, what the next one should be, when one should stop."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freqsgd.training.search_space import Point, Range, parameters, point_of, suggest

__all__ = [
    "COMPLETE",
    "DIVERGED",
    "FIRST",
    "PRUNED",
    "Outcome",
    "freeze",
    "hopeless",
    "propose",
    "thaw",
]

COMPLETE, PRUNED, DIVERGED = "complete", "pruned", "diverged"
_WORST = 0.0  # what the search takes for the AUC of a diverged trial

FIRST = 8  # trials that end by themselves before any is stopped
_PERCENTILE = 25
_FEWEST_EPOCHS = 2


@dataclass(frozen=True)
class Outcome:
    """A trial that is over.

    Args:
        point: what was tried
        state: "complete", "pruned" (stopped because others were better) or "diverged"
        curve: the best validation AUC after each epoch
        seconds: of training
    """

    point: Point
    state: str
    curve: list[float]
    seconds: float

    @property
    def lr(self) -> float:
        """The learning rate."""
        lr = self.point["lr"]
        assert lr is not None
        return lr

    @property
    def value(self) -> float | None:
        """The best validation AUC; None if it diverged."""
        return None if self.state == DIVERGED else self.curve[-1]


def propose(history: Sequence[Outcome], space: Mapping[str, Range], seed: int, name: str) -> Point:
    """The point of the next trial: what TPE makes of the trials before.

    It follows from the trials, the seed and the name alone, so that a trial which was cut off is
    the same when it is taken again.
    """
    import optuna

    entropy = np.random.SeedSequence([seed, zlib.crc32(name.encode()), len(history)])
    sampler = optuna.samplers.TPESampler(seed=int(entropy.generate_state(1)[0]), multivariate=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.add_trials([freeze(outcome, space) for outcome in history])
    return suggest(study.ask(), space)


def freeze(outcome: Outcome, space: Mapping[str, Range]) -> Any:
    """A trial of Optuna's. Failed ones would teach TPE nothing, so a diverged one has a value."""
    import optuna

    given = parameters(outcome.point, space)
    trial = optuna.trial.FixedTrial(given)
    suggest(trial, space)
    states = optuna.trial.TrialState
    return optuna.trial.create_trial(
        state=states.PRUNED if outcome.state == PRUNED else states.COMPLETE,
        value=_WORST if outcome.value is None else outcome.value,
        params=given,
        distributions=trial.distributions,
        intermediate_values=dict(enumerate(outcome.curve, start=1)),
        user_attrs={"state": outcome.state, "seconds": outcome.seconds},
    )


def thaw(trial: Any, space: Mapping[str, Range]) -> Outcome:
    """:func:`freeze` backwards."""
    return Outcome(
        point_of(trial.params, space),
        state=trial.user_attrs["state"],
        curve=[value for _, value in sorted(trial.intermediate_values.items())],
        seconds=trial.user_attrs["seconds"],
    )


def hopeless(curve: Sequence[float], fall: int | None, others: Sequence[Sequence[float]]) -> bool:
    """Whether a trial should stop.

    It should if its best validation AUC is among the lowest quarter of what trials that came to
    their end had reached after as many epochs; one that ended sooner counts with its best.

    A learning rate that falls to 0 brings most of its gain late: until then the run looks like one
    whose rate is too high. So it is not judged in the first half of the fall.

    Args:
        curve: its best validation AUC after each epoch so far
        fall: epochs over which its learning rate falls; None if it is constant
        others: the curves of trials that came to their end
    """
    epoch = len(curve)
    if len(others) < FIRST or epoch < max(_FEWEST_EPOCHS, (fall or 0) / 2):
        return False
    reached = [other[min(epoch, len(other)) - 1] for other in others]
    return bool(curve[-1] < np.percentile(reached, _PERCENTILE))
