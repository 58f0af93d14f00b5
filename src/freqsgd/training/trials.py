"""Trials of a search, as Optuna knows them, and what the next one should be."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freqsgd.training.search_space import Point, Range, parameters, point_of, suggest

__all__ = ["COMPLETE", "DIVERGED", "PRUNED", "Outcome", "freeze", "propose", "thaw"]

COMPLETE, PRUNED, DIVERGED = "complete", "pruned", "diverged"
_WORST = 0.0  # what the search takes for the AUC of a diverged trial


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
