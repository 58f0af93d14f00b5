"""What is to be run: the commands of the table, for a mode and the data that are there."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import freqsgd
from freqsgd.paper.experiments import Run, Way
from freqsgd.tables.cache import file_key
from freqsgd.tables.catalog import KnownDataset, by_hand, find_file, known_dataset

__all__ = ["FILES", "Task", "plan_tasks"]

FILES = {  # what commands write: the document and its page
    "compare": ("results.json", "report.html"),
    "tune": ("results.json", "report.html"),
    "inspect": ("inspect.json", "inspect.html"),
    "theory": ("theory.json", "theory.html"),
}
_RESUMED = ("compare", "tune")  # commands that know --resume
_BARE = ("inspect",)  # takes neither --threads nor --seed
_NEEDS = {"tune": ("optuna", "tune")}  # commands by the package they need, and its extra


@dataclass(frozen=True)
class Task:
    """A run as it is done here."""

    name: str
    title: str
    way: Way | None  # None: something is not there, and there is no stand-in
    command: tuple[str, ...]  # without --out; the one that it would be, if there is none
    stand_in: bool = False
    dataset: str | None = None
    data: tuple[Any, ...] = ()  # what tells the dataset's files from changed ones
    lacks: str = ""  # "no data" or "not installed", where something is not there
    why: str = ""  # how to get it

    @property
    def files(self) -> tuple[str, str]:
        """The document and the page that it leaves in its folder."""
        return FILES[self.command[0]]

    @property
    def resumable(self) -> bool:
        """Whether it can go on where it was cut short."""
        return self.command[0] in _RESUMED

    def key(self) -> dict[str, Any]:
        """What its results depend on."""
        return {
            "command": shlex.join(self.command),
            "data": list(self.data),
            "version": freqsgd.__version__,
        }

    @property
    def unique_name(self) -> str:
        """Its name with what tells it from the same run by another command or of other data."""
        content = json.dumps(self.key(), sort_keys=True).encode()
        return f"{self.name}-{hashlib.blake2b(content, digest_size=4).hexdigest()}"

    def shown(self) -> str:
        """The command that does the same elsewhere."""
        return shlex.join(["freqsgd", *self.command, "--out", self.name])


def plan_tasks(
    runs: Mapping[str, Run], *, full: bool, threads: int | None, seed: int | None
) -> dict[str, Task]:
    """Every run of the table, with the data that are there."""
    return {name: _task(name, run, full, threads, seed) for name, run in runs.items()}


def _task(name: str, run: Run, full: bool, threads: int | None, seed: int | None) -> Task:
    own = run.full if full else run.quick
    dataset = None if run.data is None else known_dataset(run.data)
    missing = dataset is not None and find_file(str(dataset.file)) is None
    way = own if not missing else run.stand_in
    command = shlex.split((way or own).command)
    for option, value in (("--threads", threads), ("--seed", seed)):
        if value is not None and command[0] not in _BARE:
            command += [option, str(value)]
    lacks, why = ("no data", _how(dataset)) if dataset is not None and missing else ("", "")
    package, extra = _NEEDS.get(command[0], ("", ""))
    if way is not None and package and find_spec(package) is None:
        way, lacks = None, "not installed"
        why = f'freqsgd {command[0]} needs {package}: pip install "freqsgd[{extra}]"'
    return Task(
        name,
        run.title,
        way,
        tuple(command),
        stand_in=missing and way is not None,
        dataset=run.data,
        data=() if dataset is None or missing else _files(dataset),
        lacks=lacks,
        why=why,
    )


def _files(dataset: KnownDataset) -> tuple[Any, ...]:
    """The dataset's files as they are now."""
    first = find_file(str(dataset.file))
    assert first
    paths = (first, *(first.parent / name for name in dataset.beside))
    return tuple(file_key(path) for path in paths if path.is_file())


def _how(dataset: KnownDataset) -> str:
    """One sentence on how to get data."""
    if dataset.archive:
        return f"{dataset.name} is not here: freqsgd data get {dataset.name} downloads it"
    return f"{dataset.name} is not here. {by_hand(dataset)}"
