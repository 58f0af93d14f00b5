"""Search the best settings of each optimizer, with the same number of trials."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from msgspec import structs

from freqsgd.documents import results as document
from freqsgd.documents import written
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

__all__ = ["Study", "TuneProgress", "check_request", "tune"]

SWEEP = tuple(2.0**k for k in range(-4, 5))  # times the best trial's learning rate


@dataclass(frozen=True)
class TuneProgress:
    """Progress of a search.

    Args:
        optimizer: the optimizer at work
        job: its current job, in words
        outcome: outcome of the job; None while it runs
        best: best validation AUC of the optimizer so far
        done, total: jobs of the whole search; the current one counts in part
        seconds_left: an estimate
    """

    optimizer: str
    job: str
    outcome: Outcome | None
    best: float | None
    done: float
    total: int
    seconds_left: float | None


Listener = Callable[[TuneProgress], None]


@dataclass
class Study:
    """The jobs of one optimizer that are done.

    Args:
        optimizer: its name
        planned: number of trials
        seeds: number of seeds with which the best settings are trained
        trials: finished trials, in their order
        sweep: the best trial at other learning rates
        runs: records of the best settings
    """

    optimizer: str
    planned: int
    seeds: int
    trials: list[Outcome]
    sweep: list[Outcome] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def best_trial(self) -> int | None:
        """The number of the best trial that came to its end."""
        ended = [number for number, trial in enumerate(self.trials) if trial.state == COMPLETE]
        return max(ended, key=lambda number: self.trials[number].curve[-1], default=None)

    @property
    def best(self) -> Outcome | None:
        """The best trial, or the same at a rate of the sweep that did better."""
        number = self.best_trial
        if number is None:
            return None
        swept = [other for other in self.sweep if other.state == COMPLETE]
        return max([self.trials[number], *swept], key=lambda outcome: outcome.curve[-1])

    @property
    def done(self) -> int:
        """Jobs that are done."""
        return len(self.trials) + len(self.sweep) + len(self.runs)

    @property
    def total(self) -> int:
        """Jobs from the first trial to the last seed."""
        return self.planned + len(SWEEP) - 1 + self.seeds

    def seconds_left(self) -> float | None:
        """Estimate: each job that is left takes as long as the trials did."""
        if not self.trials:
            return None
        whole = [trial.seconds for trial in self.trials if trial.state == COMPLETE]
        trials = self.planned - len(self.trials)
        later = self.total - self.done - trials
        seconds = trials * mean(trial.seconds for trial in self.trials)
        return seconds + (later * mean(whole) if whole else 0.0)

    def describe(self) -> document.Study:
        """Describe the search for ``results.json``."""
        trials = tuple(_listed(number, trial) for number, trial in enumerate(self.trials))
        number, best = self.best_trial, self.best
        if number is None or best is None:
            return document.Study(self.optimizer, trials)
        tried = self.trials[number]
        told = structs.asdict(_listed(number, best))
        told["origin"] = "trial" if best is tried else "sweep"
        swept = sorted([tried, *self.sweep], key=lambda trial: trial.lr)
        return document.Study(
            self.optimizer,
            trials,
            document.BestTrial(**told),
            tuple(document.SweepPoint(trial.lr, trial.value) for trial in swept),
        )


def _listed(number: int, trial: Outcome) -> document.Trial:
    epochs = len(trial.curve)
    return document.Trial(number, trial.value, trial.state, epochs, trial.seconds, trial.point)


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
        settings: shared settings; ``init_scale`` and ``lr_decay`` are searched, so ignored here
        out: a folder for trials, models and results
        trials: number per optimizer
        seeds: how many times the best settings are trained: with the seed, the seed + 1, ...
        threads: maximum for the kernels
        resume: go on with the trials in ``out``, to the same result
        listener: called some times a second, and after each job
        command: the command line that does the same, for ``results.json``
    """
    names = list(optimizers)
    settings = replace(settings or Settings(), init_scale=1.0, lr_decay="constant")
    check_request(names, settings, out=out, trials=trials, seeds=seeds, resume=resume)
    try:
        with locked(out):
            search = _Search(data, settings, out, threads, listener or (lambda progress: None))
            search.begin(names, trials, seeds)
            return search.go(trials, command)
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


@dataclass
class _Search:
    data: Dataset
    settings: Settings
    out: Path
    threads: int | None
    listener: Listener

    def begin(self, names: list[str], trials: int, seeds: int) -> None:
        """Make the ranges; take up the trials that the folder holds."""
        self.spaces = {name: self._space(name) for name in names}
        self.frequency = typical_frequency(self.data)
        self.storage = Storage(self.out / TRIALS, names, self._about())
        done = {name: self.storage.trials(name, space) for name, space in self.spaces.items()}
        self.studies = [Study(name, trials, seeds, done[name]) for name in names]
        if (most := max(map(len, done.values()))) > trials:
            raise DataError(f"{self.out} holds {most} trials an optimizer: ask for as many or more")

    def _space(self, name: str) -> dict[str, Range]:
        lr = find_lr(self.data, Rule(name), self.settings, threads=self.threads)
        return search_space(name, self.settings, lr)

    def _plain_spaces(self) -> dict[str, Any]:
        return {
            name: {setting: asdict(each) for setting, each in space.items()}
            for name, space in self.spaces.items()
        }

    def _about(self) -> dict[str, Any]:
        """Describe everything that trials depend on."""
        settings = asdict(self.settings) | {"hidden": list(self.settings.hidden)}
        for name in ("init_scale", "lr_decay", "checkpoint_steps"):
            del settings[name]
        if self.settings.kind.network:  # which torch computes
            settings["threads"] = torch.get_num_threads()
        return {
            "optimizers": sorted(self.spaces),
            "data": {**self.data.summary(), "fingerprint": self.data.fingerprint},
            "settings": settings,
            "space": self._plain_spaces(),
        }

    # ---- the jobs --------------------------------------------------------------------------------

    def go(self, trials: int, command: str | None) -> dict[str, Any]:
        """Do all that is left; write and return the results."""
        for number in range(trials):  # in turns, so that the time left is soon known
            for study in self.studies:
                if len(study.trials) == number:
                    self._trial(study)
        for study in self.studies:
            if (tried := study.best_trial) is not None:
                self._sweep(study, tried)
                self._train_best(study, tried)
        results = describe(self.data, self.settings, self.threads, command)
        results["runs"] = [run for study in self.studies for run in study.runs]
        studies = tuple(study.describe() for study in self.studies)
        tuning = document.Tuning(trials, self._plain_spaces(), self.frequency, studies)
        results["tuning"] = written(tuning)
        write_json(self.out / RESULTS, results)
        return results

    def _trial(self, study: Study) -> None:
        name, trials = study.optimizer, study.trials
        space = self.spaces[name]
        point = propose(trials, space, self.settings.seed, name) if trials else default(space)
        ended = [trial.curve for trial in trials if trial.state == COMPLETE]
        job = f"trial {len(trials) + 1} of {study.planned}"
        outcome = self._try(study, job, point, ended)
        self.storage.add(name, outcome, space, len(trials))
        trials.append(outcome)
        self._tell(study, job, outcome=outcome)

    def _sweep(self, study: Study, number: int) -> None:
        """Vary the learning rate of the best trial, which itself need not be repeated."""
        best = study.trials[number]
        rates = [best.lr * factor for factor in SWEEP]
        space = {"lr": Range(rates[0], rates[-1], best.lr)}
        title = f"{study.optimizer}: learning rates around trial {number}"
        for outcome in self.storage.trials(title, space):
            study.sweep.append(replace(outcome, point={**best.point, **outcome.point}))
        for lr in [rate for rate in rates if rate != best.lr][len(study.sweep) :]:
            job = f"learning rate {lr:.3g}"
            outcome = self._try(study, job, {**best.point, "lr": lr}, [])
            self.storage.add(title, outcome, space, len(study.sweep))
            study.sweep.append(outcome)
            self._tell(study, job, outcome=outcome)

    def _try(self, study: Study, job: str, point: Point, others: list[list[float]]) -> Outcome:
        """Train with some settings; stop when trials that ended, if any are given, were better."""
        rule, settings = apply(point, study.optimizer, self.settings, self.frequency)
        curve: list[float] = []

        def watch(progress: Progress, record: dict[str, Any]) -> None:
            self._tell(study, job, part=_part(progress, record))
            if len(record["epochs"]) == len(curve):
                return
            curve.append(max(epoch["val_auc"] for epoch in record["epochs"]))
            fall = settings.epochs if settings.lr_decay == "linear" else None
            if record["stopped"] is None and hopeless(curve, fall, others):
                raise _HopelessError

        start = time.perf_counter()
        try:
            _, record = fit(self.data, rule, settings, threads=self.threads, listener=watch)
            state = DIVERGED if record["stopped"] == "diverged" else COMPLETE
        except _HopelessError:
            state = PRUNED
        return Outcome(point, state, curve, time.perf_counter() - start)

    def _train_best(self, study: Study, number: int) -> None:
        """Train with the best settings, once per seed, and keep the models."""
        name, best = study.optimizer, study.best
        assert best is not None
        rule, settings = apply(best.point, name, self.settings, self.frequency)
        for seed in range(settings.seed, settings.seed + study.seeds):
            job = f"best settings, seed {seed}"

            def watch(progress: Progress, record: dict[str, Any], job: str = job) -> None:
                self._tell(study, job, part=_part(progress, record))

            _, record = fit(
                self.data,
                rule,
                replace(settings, seed=seed),
                threads=self.threads,
                folder=self.out / MODELS / f"{name}-trial-{number}-lr-{best.lr:.4g}-seed-{seed}",
                resume=True,
                listener=watch,
            )
            study.runs.append(record)
            self._tell(study, job)

    def _tell(
        self, study: Study, job: str, *, part: float = 0.0, outcome: Outcome | None = None
    ) -> None:
        """Report where the search is, with a part of a job done."""
        left = [each.seconds_left() for each in self.studies]
        told = TuneProgress(
            study.optimizer,
            job,
            outcome,
            best=None if study.best is None else study.best.value,
            done=sum(each.done for each in self.studies) + part,
            total=sum(each.total for each in self.studies),
            seconds_left=None if None in left else sum(each or 0.0 for each in left),
        )
        self.listener(told)


def _part(progress: Progress, record: dict[str, Any]) -> float:
    """Return how much of a run is done, if it lasts as long as it may."""
    epochs = progress.epoch + progress.step / progress.steps
    return 0.0 if record["stopped"] else epochs / record["epochs_planned"]
