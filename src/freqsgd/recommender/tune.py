"""Search the best settings of each optimizer, with the same number of trials."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from freqsgd.errors import DataError, InterruptedFitError
from freqsgd.files import locked, write_json
from freqsgd.optimizers import OPTIMIZERS, Rule
from freqsgd.recommender.find_lr import find_lr
from freqsgd.recommender.search_space import (
    Point,
    Range,
    apply,
    default,
    search_space,
    typical_frequency,
)
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import describe, fit
from freqsgd.recommender.trials import (
    COMPLETE,
    DIVERGED,
    PRUNED,
    TRIALS,
    Outcome,
    Storage,
    holds_search,
    hopeless,
    need_optuna,
    propose,
)
from freqsgd.runs.documents import MODELS, RESULTS
from freqsgd.runs.epochs import Progress
from freqsgd.tables.dataset import Dataset

__all__ = ["SearchState", "TuneProgress", "check_request", "tune"]

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
        """Return the number of the best trial that came to its end."""
        trials = self.trials[name]
        ended = [number for number, trial in enumerate(trials) if trial.state == COMPLETE]
        return max(ended, key=lambda number: trials[number].curve[-1], default=None)

    def best(self, name: str) -> Outcome | None:
        """Return the best trial, or the same at a rate of the sweep that did better."""
        number = self.best_trial(name)
        if number is None:
            return None
        swept = [other for other in self.sweeps.get(name, []) if other.state == COMPLETE]
        return max([self.trials[name][number], *swept], key=lambda outcome: outcome.curve[-1])

    def progress(
        self, name: str, job: str, *, part: float = 0.0, outcome: Outcome | None = None
    ) -> TuneProgress:
        """Return where the search is, with a part of a job done."""
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
        """Estimate: each job that is left takes as long as the optimizer's trials did."""
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
        """Describe an optimizer's search for ``results.json``."""
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
    """Describe a trial for ``results.json``."""
    return {
        "number": number,
        "value": trial.value,
        "state": trial.state,
        "epochs": len(trial.curve),
        "seconds": trial.seconds,
        "params": trial.point,
    }


Listener = Callable[[TuneProgress], None]


def tune(
    data: Dataset,
    optimizers: Iterable[str],
    settings: Settings | None = None,
    *,
    out: Path,
    trials: int = 40,
    seeds: int = 1,
    threads: int | None = None,
    resume: bool = False,
    listener: Listener | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Search the best settings of each optimizer; return the content of ``results.json``.

    The learning rate of the best trial is then varied with everything else as it is, and what was
    best of all is trained once more with each seed and evaluated on the test rows.

    Args:
        data: samples and their splits
        optimizers: their names
        settings: what they share; ``init_scale`` and ``lr_decay`` are searched, so not looked at
        out: a folder for trials, models and results
        trials: of each optimizer
        seeds: how many times the best settings are trained: with the seed, the seed + 1, ...
        threads: of the kernels
        resume: go on with the trials in ``out``, to the same result
        listener: called some times a second, and after each job
        command: the command line that does the same, for ``results.json``
    """
    names = list(optimizers)
    settings = replace(settings or Settings(), init_scale=1.0, lr_decay="constant")
    check_request(names, settings, out=out, trials=trials, seeds=seeds, resume=resume)
    try:
        with locked(out):
            search = _Search(
                data,
                names,
                settings,
                out=out,
                trials=trials,
                seeds=seeds,
                threads=threads,
                listener=listener or (lambda progress: None),
            )
            return search.go(command)
    except KeyboardInterrupt:  # outside of a run; within one, fit says so itself
        raise InterruptedFitError from None


def check_request(
    names: Sequence[str], settings: Settings, *, out: Path, trials: int, seeds: int, resume: bool
) -> None:
    """Refuse what cannot be searched, before any data is loaded."""
    need_optuna()
    if unknown := [name for name in names if name not in OPTIMIZERS]:
        raise DataError(f"unknown optimizer {unknown[0]!r}; known: {', '.join(OPTIMIZERS)}")
    if not names:
        raise DataError(f"name at least one optimizer of {', '.join(OPTIMIZERS)}")
    if len(set(names)) < len(names):
        raise DataError(f"each optimizer may be named once, got {', '.join(names)}")
    for what, number in (("trials", trials), ("seeds", seeds)):
        if number < 1:
            raise DataError(f"{what} must be at least 1, got {number}")
    if settings.patience is None:
        raise DataError("a search chooses by validation AUC: it needs a patience")
    if settings.seed + seeds > 2**31:
        raise DataError(f"there are no {seeds} seeds from {settings.seed} on: take a smaller one")
    if (out / TRIALS).exists() and not resume:
        if not holds_search(out / TRIALS):
            raise DataError(f"{out / TRIALS} is no search of freqsgd tune: use another --out")
        raise DataError(f"{out} holds a search already: use --resume, or another --out")
    if (out / RESULTS).exists() and not (out / TRIALS).exists():
        raise DataError(f"{out} holds other results already: use another --out")


class _HopelessError(Exception):
    """Ends a run from within."""


class _Search:
    def __init__(
        self,
        data: Dataset,
        names: list[str],
        settings: Settings,
        *,
        out: Path,
        trials: int,
        seeds: int,
        threads: int | None,
        listener: Listener,
    ) -> None:
        self.data, self.settings, self.out = data, settings, out
        self.threads, self.listener = threads, listener
        self.spaces = {
            name: search_space(name, settings, find_lr(data, Rule(name), settings, threads=threads))
            for name in names
        }
        self.frequency = typical_frequency(data)
        self.storage = Storage(out / TRIALS, names, self._about())
        done = {name: self.storage.trials(name, space) for name, space in self.spaces.items()}
        self.state = SearchState(trials, seeds, done)
        if (most := max(map(len, done.values()))) > trials:
            raise DataError(f"{out} holds {most} trials an optimizer: ask for as many or more")

    def _about(self) -> dict[str, Any]:
        """Return what trials depend on."""
        settings = asdict(self.settings) | {"hidden": list(self.settings.hidden)}
        for name in ("init_scale", "lr_decay", "checkpoint_steps"):
            del settings[name]
        if self.settings.kind.network:  # which torch computes
            settings["threads"] = torch.get_num_threads()
        return {
            "optimizers": sorted(self.spaces),
            "data": {**self.data.summary(), "fingerprint": self.data.fingerprint},
            "settings": settings,
            "space": self._space(),
        }

    def _space(self) -> dict[str, Any]:
        return {
            name: {setting: asdict(each) for setting, each in space.items()}
            for name, space in self.spaces.items()
        }

    # ---- the jobs --------------------------------------------------------------------------------

    def go(self, command: str | None) -> dict[str, Any]:
        """Do all that is left; write and return the results."""
        state = self.state
        for number in range(state.planned):  # in turns, so that the time left is soon known
            for name, trials in state.trials.items():
                if len(trials) == number:
                    self._trial(name)
        for name in state.trials:
            if (tried := state.best_trial(name)) is not None:
                self._sweep(name, tried)
                self._train_best(name, tried)
        results = describe(self.data, self.settings, self.threads, command)
        results["runs"] = state.runs
        results["tuning"] = {
            "trials": state.planned,
            "space": self._space(),
            "typical_frequency": self.frequency,
            "studies": [state.study(name) for name in state.trials],
        }
        write_json(self.out / RESULTS, results)
        return results

    def _trial(self, name: str) -> None:
        trials, space = self.state.trials[name], self.spaces[name]
        point = propose(trials, space, self.settings.seed, name) if trials else default(space)
        job = f"trial {len(trials) + 1} of {self.state.planned}"
        outcome = self._try(name, point, job, [o.curve for o in trials if o.state == COMPLETE])
        self.storage.add(name, outcome, space, len(trials))
        trials.append(outcome)
        self._tell(name, job, outcome=outcome)

    def _sweep(self, name: str, number: int) -> None:
        """Vary the learning rate of the best trial, which itself need not be repeated."""
        best = self.state.trials[name][number]
        rates = [best.lr * factor for factor in SWEEP]
        space = {"lr": Range(rates[0], rates[-1], best.lr)}
        study = f"{name}: learning rates around trial {number}"
        done = self.state.sweeps[name] = [
            replace(outcome, point={**best.point, **outcome.point})
            for outcome in self.storage.trials(study, space)
        ]
        for lr in [rate for rate in rates if rate != best.lr][len(done) :]:
            job = f"learning rate {lr:.3g}"
            outcome = self._try(name, {**best.point, "lr": lr}, job)
            self.storage.add(study, outcome, space, len(done))
            done.append(outcome)
            self._tell(name, job, outcome=outcome)

    def _train_best(self, name: str, number: int) -> None:
        """Train with the best settings, once per seed, and keep the models."""
        best = self.state.best(name)
        assert best is not None
        rule, settings = apply(best.point, name, self.settings, self.frequency)
        for seed in range(settings.seed, settings.seed + self.state.seeds):
            job = f"best settings, seed {seed}"

            def watch(progress: Progress, record: dict[str, Any], job: str = job) -> None:
                self._tell(name, job, part=_part(progress, record))

            _, record = fit(
                self.data,
                rule,
                replace(settings, seed=seed),
                threads=self.threads,
                folder=self.out / MODELS / f"{name}-trial-{number}-lr-{best.lr:.4g}-seed-{seed}",
                resume=True,
                listener=watch,
            )
            self.state.runs.append(record)
            self._tell(name, job)

    def _try(
        self, name: str, point: Point, job: str, others: list[list[float]] | None = None
    ) -> Outcome:
        """Train with some settings; stop when trials that ended, if any are given, were better."""
        rule, settings = apply(point, name, self.settings, self.frequency)
        curve: list[float] = []

        def watch(progress: Progress, record: dict[str, Any]) -> None:
            self._tell(name, job, part=_part(progress, record))
            if len(record["epochs"]) == len(curve):
                return
            curve.append(max(epoch["val_auc"] for epoch in record["epochs"]))
            fall = settings.epochs if settings.lr_decay == "linear" else None
            if record["stopped"] is None and hopeless(curve, fall, others or []):
                raise _HopelessError

        start = time.perf_counter()
        try:
            _, record = fit(self.data, rule, settings, threads=self.threads, listener=watch)
            state = DIVERGED if record["stopped"] == "diverged" else COMPLETE
        except _HopelessError:
            state = PRUNED
        return Outcome(point, state, curve, time.perf_counter() - start)

    def _tell(self, name: str, job: str, **more: Any) -> None:
        self.listener(self.state.progress(name, job, **more))


def _part(progress: Progress, record: dict[str, Any]) -> float:
    """Return how much of a run is done, if it lasts as long as it may."""
    epochs = progress.epoch + progress.step / progress.steps
    return 0.0 if record["stopped"] else epochs / record["epochs_planned"]
