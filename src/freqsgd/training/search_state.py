"""How far a search is, and what came of it so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from freqsgd.training.trials import COMPLETE, Outcome

__all__ = ["SWEEP", "SearchState", "TuneProgress"]

SWEEP = tuple(2.0**k for k in range(-4, 5))  # times the best trial's learning rate


@dataclass(frozen=True)
class TuneProgress:
    """Where a search is.

    Args:
        optimizer: that is at work
        job: what it does, in words
        outcome: of the job; None while it runs
        best: validation AUC of the optimizer so far
        done, total: jobs of the whole search; the current one counts in part
        seconds_left: as far as can be told
    """

    optimizer: str
    job: str
    outcome: Outcome | None
    best: float | None
    done: float
    total: int
    seconds_left: float | None


@dataclass
class SearchState:
    """The jobs that are done.

    Args:
        planned: trials of each optimizer
        seeds: with which the best settings are trained
        trials: of each optimizer
        sweeps: each optimizer's best trial with other learning rates
        runs: records of the best settings
    """

    planned: int
    seeds: int
    trials: dict[str, list[Outcome]]
    sweeps: dict[str, list[Outcome]] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)

    def best_trial(self, name: str) -> int | None:
        """The number of the best trial that came to its end."""
        trials = self.trials[name]
        ended = [number for number, trial in enumerate(trials) if trial.state == COMPLETE]
        return max(ended, key=lambda number: trials[number].curve[-1], default=None)

    def best(self, name: str) -> Outcome | None:
        """The best trial, or the same at a learning rate of the sweep that did better."""
        number = self.best_trial(name)
        if number is None:
            return None
        swept = [other for other in self.sweeps.get(name, []) if other.state == COMPLETE]
        return max([self.trials[name][number], *swept], key=lambda outcome: outcome.curve[-1])

    def progress(
        self, name: str, job: str, *, part: float = 0.0, outcome: Outcome | None = None
    ) -> TuneProgress:
        """Where the search is, with a part of a job done."""
        best = self.best(name)
        done = sum(map(len, (*self.trials.values(), *self.sweeps.values()))) + len(self.runs)
        return TuneProgress(
            name,
            job,
            outcome,
            best=None if best is None else best.value,
            done=done + part,
            total=len(self.trials) * (self.planned + len(SWEEP) - 1 + self.seeds),
            seconds_left=self._seconds_left(),
        )

    def _seconds_left(self) -> float | None:
        """As if each job that is left took as long as the optimizer's trials did."""
        seconds = 0.0
        for name, trials in self.trials.items():
            if not trials:
                return None
            swept, trained = self.sweeps.get(name, []), [run["optimizer"] for run in self.runs]
            whole = [trial.seconds for trial in trials if trial.state == COMPLETE]
            runs = len(SWEEP) - 1 - len(swept) + self.seeds - trained.count(name)
            seconds += (self.planned - len(trials)) * mean(trial.seconds for trial in trials)
            seconds += runs * mean(whole) if whole else 0.0
        return seconds

    def study(self, name: str) -> dict[str, Any]:
        """An optimizer's search, for ``results.json``."""
        trials, number, best = self.trials[name], self.best_trial(name), self.best(name)
        listed = [_listed(place, trial) for place, trial in enumerate(trials)]
        study = {"optimizer": name, "trials": listed, "best": None, "lr_sweep": []}
        if number is None or best is None:
            return study
        swept = sorted([trials[number], *self.sweeps[name]], key=lambda trial: trial.lr)
        sweep = [{"lr": trial.lr, "val_auc": trial.value} for trial in swept]
        origin = "trial" if best is trials[number] else "sweep"
        return {**study, "best": {**_listed(number, best), "from": origin}, "lr_sweep": sweep}


def _listed(number: int, trial: Outcome) -> dict[str, Any]:
    """A trial, for ``results.json``."""
    return {
        "number": number,
        "value": trial.value,
        "state": trial.state,
        "epochs": len(trial.curve),
        "seconds": trial.seconds,
        "params": trial.point,
    }
