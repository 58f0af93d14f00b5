"""A search for the best settings of each optimizer, with the same number of trials for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from freqsgd.data.dataset import DataError, Dataset
from freqsgd.training.compare import MODELS, RESULTS, describe, write_results
from freqsgd.training.find_lr import find_lr
from freqsgd.training.fit import InterruptedFitError, Progress, fit
from freqsgd.training.model_folder import make_folder
from freqsgd.training.pruning import hopeless
from freqsgd.training.rules import OPTIMIZERS, Rule
from freqsgd.training.search_space import Point, Range, apply, default, search_space
from freqsgd.training.search_space import describe as describe_space
from freqsgd.training.settings import Settings
from freqsgd.training.trial_storage import TRIALS, Storage, need_optuna
from freqsgd.training.trials import COMPLETE, DIVERGED, PRUNED, Outcome, propose

__all__ = ["TuneProgress", "check_request", "tune"]

SWEEP = tuple(2.0**k for k in range(-4, 5))  # times the best learning rate


@dataclass(frozen=True)
class TuneProgress:
    """Where a search is.

    Args:
        optimizer: that is at work
        job: what it does, in words
        outcome: of the job; None while it runs
        best: validation AUC of the optimizer's trials so far
        done, total: jobs of the whole search; the current one counts in part
        seconds_left: of training, as far as can be told
    """

    optimizer: str
    job: str
    outcome: Outcome | None
    best: float | None
    done: float
    total: int
    seconds_left: float | None


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
) -> dict[str, Any]:
    """Search the best settings of each optimizer; return the content of ``results.json``.

    The best are then trained once more with each seed and evaluated on the test rows, and their
    learning rate is varied with everything else as it is.

    Args:
        data: samples and their splits
        optimizers: their names
        settings: what they share; what is searched is left as it is
        out: a folder for trials, models and results
        trials: of each optimizer
        seeds: how many times the best settings are trained: with the seed, the seed + 1, ...
        threads: of the kernels
        resume: go on with the trials in ``out``, to the same result
        listener: called some times a second, and after each job
    """
    names, settings = list(optimizers), settings or Settings()
    check_request(names, settings, trials, seeds)
    make_folder(out)
    if (out / RESULTS).exists() and not (out / TRIALS).exists():
        raise DataError(f"{out} holds other results already: use another --out")
    search = _Search(
        data,
        names,
        settings,
        out=out,
        trials=trials,
        seeds=seeds,
        threads=threads,
        resume=resume,
        listener=listener or (lambda progress: None),
    )
    try:
        return search.go()
    except KeyboardInterrupt:  # between two runs; within one, fit says so itself
        raise InterruptedFitError from None
    finally:
        search.storage.close()


def check_request(names: Sequence[str], settings: Settings, trials: int, seeds: int) -> None:
    """Refuse what cannot be searched, before any data is loaded."""
    need_optuna()
    if unknown := [name for name in names if name not in OPTIMIZERS]:
        raise DataError(f"unknown optimizer {unknown[0]!r}; known: {', '.join(OPTIMIZERS)}")
    if not names or len(set(names)) < len(names):
        raise DataError(f"name optimizers once each, at least one, got {', '.join(names) or None}")
    for what, number in (("trials", trials), ("seeds", seeds)):
        if number < 1:
            raise DataError(f"{what} must be at least 1, got {number}")
    if settings.patience is None:
        raise DataError("a search chooses by validation AUC: it needs a patience")
    if settings.seed + seeds > 2**31:
        raise DataError(f"there are no {seeds} seeds from {settings.seed} on: take a smaller one")


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
        resume: bool,
        listener: Listener,
    ) -> None:
        self.data, self.settings, self.out, self.listener = data, settings, out, listener
        self.trials, self.seeds, self.threads = trials, seeds, threads
        self.spaces = {name: search_space(name, settings) for name in names}
        self.storage = Storage(out / TRIALS, names, self._about(), resume=resume)
        self.history = {n: self.storage.trials(n, space) for n, space in self.spaces.items()}
        self.sweeps: dict[str, list[Outcome]] = {name: [] for name in names}
        self.runs: list[dict[str, Any]] = []
        if (most := max(map(len, self.history.values()))) > trials:
            raise DataError(f"{out} holds {most} trials an optimizer: ask for as many or more")

    def _about(self) -> dict[str, Any]:
        """What trials depend on."""
        settings = asdict(self.settings) | {"hidden": list(self.settings.hidden)}
        for name in ("init_scale", "lr_decay", "checkpoint_steps"):
            del settings[name]
        if self.settings.model == "deepfm":  # whose network torch computes
            settings["threads"] = torch.get_num_threads()
        return {
            "optimizers": sorted(self.spaces),
            "data": {**self.data.summary(), "fingerprint": self.data.fingerprint},
            "settings": settings,
            "space": self._space(),
        }

    def _space(self) -> dict[str, Any]:
        return {name: describe_space(space) for name, space in self.spaces.items()}

    # ---- the jobs --------------------------------------------------------------------------------

    def go(self) -> dict[str, Any]:
        """Do all that is left; write and return the results."""
        for number in range(self.trials):  # in turns, so that time left can be told soon
            for name, trials in self.history.items():
                if len(trials) == number:
                    self._trial(name)
        for name in self.history:
            if (best := self._best(name)) is not None:
                self._sweep(name, best)
                self._train_best(name, best)
        results = describe(self.data, self.settings, self.threads)
        results["runs"] = self.runs
        results["tuning"] = {
            "trials": self.trials,
            "space": self._space(),
            "studies": [self._study(name) for name in self.history],
        }
        write_results(results, self.out / RESULTS)
        return results

    def _trial(self, name: str) -> None:
        trials, space = self.history[name], self.spaces[name]
        if trials:
            point = propose(trials, space, self.settings.seed, name)
        else:
            rule = Rule(name, space["lr"].low)  # whose rate is not looked at
            point = default(space, find_lr(self.data, rule, self.settings, threads=self.threads))
        job = f"trial {len(trials) + 1} of {self.trials}"
        outcome = self._try(name, point, job, [o.curve for o in trials if o.state == COMPLETE])
        self.storage.add(name, outcome, space, len(trials))
        trials.append(outcome)
        self._tell(name, job, outcome=outcome)

    def _sweep(self, name: str, number: int) -> None:
        """Vary the learning rate of the best trial, which itself need not be repeated."""
        best = self.history[name][number]
        rates = [best.lr * factor for factor in SWEEP]
        space = {"lr": Range(rates[0], rates[-1])}
        study = f"{name}: learning rates around trial {number}"
        done = self.sweeps[name] = self.storage.trials(study, space)
        for lr in [rate for rate in rates if rate != best.lr][len(done) :]:
            job = f"learning rate {lr:.3g}"
            outcome = replace(self._try(name, {**best.point, "lr": lr}, job), point={"lr": lr})
            self.storage.add(study, outcome, space, len(done))
            done.append(outcome)
            self._tell(name, job, outcome=outcome)

    def _train_best(self, name: str, number: int) -> None:
        """Train with the settings of the best trial, once per seed, and keep the models."""
        rule, settings = apply(self.history[name][number].point, name, self.settings)
        for seed in range(settings.seed, settings.seed + self.seeds):
            job = f"best settings, seed {seed}"
            tell = partial(self._tell, name, job)
            _, record = fit(
                self.data,
                rule,
                replace(settings, seed=seed),
                threads=self.threads,
                folder=self.out / MODELS / f"{name}-trial-{number}-seed-{seed}",
                resume=True,
                listener=tell,
            )
            self.runs.append(record)
            tell()

    def _try(
        self, name: str, point: Point, job: str, others: list[list[float]] | None = None
    ) -> Outcome:
        """Train with some settings; stop when trials that ended, if any are given, were better."""
        rule, settings = apply(point, name, self.settings)
        curve: list[float] = []

        def watch(progress: Progress, record: dict[str, Any]) -> None:
            self._tell(name, job, progress, record)
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

    # ---- what came of them -----------------------------------------------------------------------

    def _best(self, name: str) -> int | None:
        """The number of the best trial that came to its end."""
        trials = self.history[name]
        ended = [number for number, outcome in enumerate(trials) if outcome.state == COMPLETE]
        return max(ended, key=lambda number: trials[number].curve[-1], default=None)

    def _study(self, name: str) -> dict[str, Any]:
        """An optimizer's search, for ``results.json``."""
        trials, number = self.history[name], self._best(name)
        study: dict[str, Any] = {
            "optimizer": name,
            "trials": [_listed(number, outcome) for number, outcome in enumerate(trials)],
            "best": None,
            "lr_sweep": [],
        }
        if number is not None:
            study["best"] = _listed(number, trials[number])
            swept = sorted([trials[number], *self.sweeps[name]], key=lambda o: o.lr)
            study["lr_sweep"] = [{"lr": o.lr, "val_auc": o.value} for o in swept]
        return study

    def _tell(
        self,
        name: str,
        job: str,
        progress: Progress | None = None,
        record: dict[str, Any] | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        """Tell the listener where the search is."""
        best = self._best(name)
        part = 0.0
        if progress is not None and record is not None and record["stopped"] is None:
            epochs = progress.epoch + progress.step / progress.steps
            part = epochs / record["epochs_planned"]
        done = len(self.runs)
        done += sum(map(len, self.history.values())) + sum(map(len, self.sweeps.values()))
        self.listener(
            TuneProgress(
                name,
                job,
                outcome,
                best=None if best is None else self.history[name][best].value,
                done=done + part,
                total=len(self.history) * (self.trials + len(SWEEP) - 1 + self.seeds),
                seconds_left=self._seconds_left(),
            )
        )

    def _seconds_left(self) -> float | None:
        """Jobs that are left, each as long as an optimizer's took so far."""
        seconds = 0.0
        for name, trials in self.history.items():
            if not trials:
                return None
            whole = [o.seconds for o in trials if o.state == COMPLETE] or [0.0]
            swept, trained = len(self.sweeps[name]), [run["optimizer"] for run in self.runs]
            runs = len(SWEEP) - 1 - swept + self.seeds - trained.count(name)
            seconds += (self.trials - len(trials)) * mean(o.seconds for o in trials)
            seconds += runs * mean(whole)
        return seconds


def _listed(number: int, outcome: Outcome) -> dict[str, Any]:
    """A trial, for ``results.json``."""
    return {
        "number": number,
        "value": outcome.value,
        "state": outcome.state,
        "epochs": len(outcome.curve),
        "seconds": outcome.seconds,
        "params": outcome.point,
    }
