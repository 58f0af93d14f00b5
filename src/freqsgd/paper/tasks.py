"""What is to be run, for a mode and the data that are there, and the folder that keeps it."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import freqsgd
from freqsgd.documents import load_object
from freqsgd.errors import DataError
from freqsgd.files import make_folder, write_json
from freqsgd.paper.experiments import Run, Way
from freqsgd.tables.cache import file_key
from freqsgd.tables.catalog import KnownDataset, by_hand, find_file, known_dataset

FILES = {  # what commands write: the document and its page
    "compare": ("results.json", "report.html"),
    "tune": ("results.json", "report.html"),
    "inspect": ("inspect.json", "inspect.html"),
    "theory": ("theory.json", "theory.html"),
}
_RESUMED = ("compare", "tune")  # commands that know --resume
_BARE = ("inspect",)  # takes neither --threads nor --seed
_NEEDS = {"tune": ("optuna", "tune")}  # commands by the package they need, and its extra
PAPER, RUNS_FOLDER = "paper.json", "runs"
SEAL = "run.json"  # of a run's folder: what was run there, and how it ended
LOG = "log.txt"


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
        """Return what its results depend on."""
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
        """Return the command that does the same elsewhere."""
        return shlex.join(["freqsgd", *self.command, "--out", self.name])


def plan_tasks(
    runs: Mapping[str, Run], *, full: bool, threads: int | None, seed: int | None
) -> dict[str, Task]:
    """Return every run of the table, with the data that are there."""
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
    """Return the dataset's files as they are now."""
    first = find_file(str(dataset.file))
    assert first
    paths = (first, *(first.parent / name for name in dataset.beside))
    return tuple(file_key(path) for path in paths if path.is_file())


def _how(dataset: KnownDataset) -> str:
    """Return one sentence on how to get data."""
    if dataset.archive:
        return f"{dataset.name} is not here: freqsgd data get {dataset.name} downloads it"
    return f"{dataset.name} is not here. {by_hand(dataset)}"


# ---- the folder ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """What is in a run's folder already."""

    status: str  # of a seal; "running" if nobody saw the end
    seconds: float  # of all attempts


class PaperFolder:
    """A folder that is new, empty, or was written by ``freqsgd paper``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._check()

    def of(self, task: Task) -> Path:
        """Return the folder of a run: of its name, or beside it if another command has that one."""
        own = self.path / RUNS_FOLDER / task.name
        seal = load_object(own / SEAL)
        return own if seal is None or _is_of(seal, task) else own.with_name(task.unique_name)

    def look(self, task: Task) -> Kept | None:
        """Return what an earlier call left of this very run; None: nothing that could be used."""
        seal = load_object(self.of(task) / SEAL)
        if seal is None or not _is_of(seal, task):
            return None
        seconds = seal.get("seconds")
        return Kept(str(seal.get("status")), seconds if isinstance(seconds, int | float) else 0.0)

    def clear(self, task: Task) -> None:
        """Remove what cannot be gone on with; refuse what is not ours."""
        folder = self.of(task)
        if not folder.exists() and not folder.is_symlink():
            return
        ours = folder.is_dir() and not folder.is_symlink()
        if not ours or not ((folder / SEAL).is_file() or not any(folder.iterdir())):
            raise DataError(
                f"{folder} was not written by freqsgd paper: move it away, or use another --out"
            )
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise DataError(f"cannot remove {folder}: {error.strerror}") from error

    def seal(self, task: Task, status: str, seconds: float) -> None:
        """Write down what a run's folder holds."""
        make_folder(self.of(task))
        write_json(self.of(task) / SEAL, {**task.key(), "status": status, "seconds": seconds})

    def document(self, task: Task) -> dict[str, Any] | None:
        """Return what a run has measured so far."""
        return load_object(self.of(task) / task.files[0])

    def relative(self, task: Task, file: str) -> str | None:
        """Return a file of a run as the paper's document names it; None if it is not there."""
        path = self.of(task) / file
        return path.relative_to(self.path).as_posix() if path.is_file() else None

    def _check(self) -> None:
        """Refuse a folder that holds something else than what an earlier call left."""
        try:
            held = [entry.name for entry in self.path.iterdir() if not entry.name.startswith(".")]
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataError(f"cannot use the folder {self.path}: {error.strerror}") from error
        document = load_object(self.path / PAPER) or {}
        ours = document.get("kind") == "paper" or any(self.path.glob(f"{RUNS_FOLDER}/*/{SEAL}"))
        if held and not ours:
            raise DataError(
                f"{self.path} holds other things ({sorted(held)[0]}) and no {PAPER} of freqsgd "
                "paper: use another --out"
            )


def _is_of(seal: Mapping[str, Any], task: Task) -> bool:
    """Return whether a folder is of this very command, data and version."""
    return {name: seal.get(name) for name in task.key()} == task.key()
