"""Finished trials in an SQLite file of Optuna's.

A trial is written when it is over, in one transaction: a process that is killed leaves whole trials
and nothing else.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from freqsgd.data.dataset import DataError
from freqsgd.data.files import read_json, replacing
from freqsgd.training.search_space import Range
from freqsgd.training.trials import Outcome, freeze, thaw

__all__ = ["TRIALS", "Storage", "holds_search", "need_optuna"]

TRIALS = "trials.sqlite"
_ABOUT = "freqsgd"  # the attribute of a study that says what its trials depend on


def need_optuna() -> None:
    """Say what to install if Optuna is missing; keep it quiet if it is there."""
    try:
        import optuna
    except ModuleNotFoundError as missing:
        raise DataError("tuning needs optuna: pip install 'freqsgd[tune]'") from missing
    optuna.logging.set_verbosity(logging.ERROR)


def holds_search(path: Path) -> bool:
    """Whether a file is a storage with studies of ``freqsgd tune``."""
    query = "SELECT count(*) FROM study_user_attributes WHERE key = ?"
    try:
        with closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute(query, [_ABOUT]).fetchone()[0])
    except sqlite3.Error:
        return False


class Storage:
    """The trials of some studies.

    Args:
        path: of the file; made if it is not there
        studies: their names
        about: what the trials depend on, as JSON

    Raises:
        DataError: there is a file, and it is damaged or holds something else
    """

    def __init__(self, path: Path, studies: Iterable[str], about: dict[str, Any]) -> None:
        self.path = path
        if path.exists():
            self._check_file()
        else:
            self._create(studies, about)
        with self._errors():
            self._storage = _open(path)
            self._check_same(about)

    def trials(self, study: str, space: Mapping[str, Range]) -> list[Outcome]:
        """The trials of a study, in their order."""
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
        import optuna

        return optuna.create_study(
            storage=self._storage, study_name=name, direction="maximize", load_if_exists=True
        )

    def _create(self, studies: Iterable[str], about: dict[str, Any]) -> None:
        """Make a file with empty studies, whole or not at all."""
        with self._errors(), replacing(self.path) as temporary:
            temporary.unlink(missing_ok=True)
            self._storage = _open(temporary)
            for name in studies:
                self._study(name).set_user_attr(_ABOUT, json.dumps(about))

    def _check_file(self) -> None:
        """Refuse what is damaged or another program's, before Optuna adds its tables to it."""
        with self._errors(), closing(sqlite3.connect(self.path)) as connection:
            answer = connection.execute("PRAGMA integrity_check").fetchone()[0]
            rows = connection.execute("SELECT name FROM sqlite_master").fetchall()
        if answer != "ok":
            raise self._unusable(answer)
        if not {("studies",), ("trials",), ("version_info",)} <= set(rows):
            raise self._unusable("it is not a storage of Optuna's")

    def _check_same(self, about: dict[str, Any]) -> None:
        """Refuse trials of other optimizers, data, settings or ranges."""
        import optuna

        saved = [
            read_json(summary.user_attrs[_ABOUT], dict)
            for summary in optuna.get_all_study_summaries(self._storage)
            if _ABOUT in summary.user_attrs
        ]
        if not saved:
            raise self._unusable("its studies are not of freqsgd tune")
        then, now = _flat(saved[0]), _flat(about)
        for name in now | then:
            if now.get(name) != then.get(name):
                raise DataError(
                    f"cannot resume from {self.path}: it was made with {name} {then.get(name)}, "
                    f"now {name} is {now.get(name)}; use the same options, or another --out"
                )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say which file it was that could not be read or written."""
        import optuna
        import sqlalchemy.exc

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
    import optuna
    from sqlalchemy.pool import NullPool

    options = {
        "creator": partial(sqlite3.connect, path),  # a URL would not take every path
        "poolclass": NullPool,  # so that the file is closed after each use
    }
    return optuna.storages.RDBStorage(f"sqlite:///{TRIALS}", engine_kwargs=options)


def _flat(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values by their whole name."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        name = f"{prefix} {key}".strip()
        flat |= _flat(value, name) if isinstance(value, dict) else {name: value}
    return flat
