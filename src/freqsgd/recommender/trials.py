"""Trials of a search: proposed by Optuna, stopped early, and kept in Optuna's storage."""

from __future__ import annotations

import json
import logging
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from freqsgd.errors import DataError
from freqsgd.files import read_json, replacing
from freqsgd.recommender.search_space import Point, Range, parameters, suggest
from freqsgd.runs.resume import check_options

try:
    import optuna
    import sqlalchemy.exc
    import sqlalchemy.pool
except ModuleNotFoundError:
    optuna = None

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
        seconds: time of training
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
    """Return the point of the next trial: what TPE makes of the trials before.

    It follows from the trials, the seed and the name alone, so that a trial which was cut off is
    the same when it is taken again.
    """
    entropy = np.random.SeedSequence([seed, zlib.crc32(name.encode()), len(history)])
    sampler = optuna.samplers.TPESampler(seed=int(entropy.generate_state(1)[0]), multivariate=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.add_trials([freeze(outcome, space) for outcome in history])
    return suggest(study.ask(), space)


def freeze(outcome: Outcome, space: Mapping[str, Range]) -> Any:
    """Return a trial of Optuna's; a diverged one has a value, for TPE ignores failed ones."""
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
    """Undo :func:`freeze`."""
    return Outcome(
        suggest(optuna.trial.FixedTrial(trial.params), space),
        state=trial.user_attrs["state"],
        curve=[value for _, value in sorted(trial.intermediate_values.items())],
        seconds=trial.user_attrs["seconds"],
    )


def hopeless(curve: Sequence[float], fall: int | None, others: Sequence[Sequence[float]]) -> bool:
    """Tell whether a trial should stop.

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


# Finished trials in an SQLite file of Optuna's.
#
# A trial is written when it is over, in one transaction: a process that is killed leaves whole
# trials and nothing else.

TRIALS = "trials.sqlite"
_ABOUT = "freqsgd"  # the attribute of a study that says what its trials depend on


def need_optuna() -> None:
    """Raise an error that says what to install if Optuna is missing; else silence its log."""
    if optuna is None:
        raise DataError("tuning needs optuna: pip install 'freqsgd[tune]'")
    optuna.logging.set_verbosity(logging.ERROR)


def holds_search(path: Path) -> bool:
    """Tell whether a file is a storage with studies of ``freqsgd tune``."""
    query = "SELECT count(*) FROM study_user_attributes WHERE key = ?"
    try:
        with closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute(query, [_ABOUT]).fetchone()[0])
    except sqlite3.Error:
        return False


class Storage:
    """The trials of some studies.

    Args:
        path: the file; made if it is not there
        studies: their names
        about: what the trials depend on, as JSON

    Raises:
        DataError: there is a file, and it is damaged or holds something else
    """

    def __init__(self, path: Path, studies: Iterable[str], about: dict[str, Any]) -> None:
        self.path = path
        with self._errors():
            if path.exists():
                self._check_file()
            else:
                self._create(studies, about)
            self._storage = _open(path)
            self._check_same(about)

    def trials(self, study: str, space: Mapping[str, Range]) -> list[Outcome]:
        """Return the trials of a study, in their order."""
        with self._errors():
            return [thaw(trial, space) for trial in self._study(study).trials]

    def add(self, study: str, outcome: Outcome, space: Mapping[str, Range], number: int) -> None:
        """Keep a finished trial."""
        with self._errors():
            found = self._study(study)
            if len(found.get_trials(deepcopy=False)) != number:
                raise DataError(f"another process writes to {self.path} too: stop one of the two")
            found.add_trial(freeze(outcome, space))

    def _study(self, name: str) -> Any:
        return optuna.create_study(
            storage=self._storage, study_name=name, direction="maximize", load_if_exists=True
        )

    def _create(self, studies: Iterable[str], about: dict[str, Any]) -> None:
        """Make a file with empty studies, whole or not at all."""
        with replacing(self.path) as temporary:
            temporary.unlink(missing_ok=True)
            self._storage = _open(temporary)
            for name in studies:
                self._study(name).set_user_attr(_ABOUT, json.dumps(about))

    def _check_file(self) -> None:
        """Refuse what is damaged or another program's, before Optuna adds its tables to it."""
        with closing(sqlite3.connect(self.path)) as connection:
            answer = connection.execute("PRAGMA integrity_check").fetchone()[0]
            rows = connection.execute("SELECT name FROM sqlite_master").fetchall()
        if answer != "ok":
            raise self._unusable(answer)
        if not {("studies",), ("trials",), ("version_info",)} <= set(rows):
            raise self._unusable("it is not a storage of Optuna's")

    def _check_same(self, about: dict[str, Any]) -> None:
        """Refuse trials of other optimizers, data, settings or ranges."""
        saved = [
            read_json(summary.user_attrs[_ABOUT], dict)
            for summary in optuna.get_all_study_summaries(self._storage)
            if _ABOUT in summary.user_attrs
        ]
        if not saved:
            raise self._unusable("its studies are not of freqsgd tune")
        check_options(self.path, saved[0], about, whole_names=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Name the file in errors of reading and writing."""
        try:
            yield
        except DataError:
            raise
        except (sqlite3.Error, OSError, KeyError, ValueError, RuntimeError) as error:
            raise self._unusable(error) from error
        except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.OptunaError) as error:
            cause = error.__cause__ or error
            raise self._unusable(getattr(cause, "orig", cause)) from error

    def _unusable(self, why: object) -> DataError:
        return DataError(
            f"cannot use {self.path}: {why}; mend that, or start again with another --out"
        )


def _open(path: Path) -> Any:
    options = {
        "creator": partial(sqlite3.connect, path),  # a URL would not take every path
        "poolclass": sqlalchemy.pool.NullPool,  # so that the file is closed after each use
    }
    return optuna.storages.RDBStorage(f"sqlite:///{TRIALS}", engine_kwargs=options)
