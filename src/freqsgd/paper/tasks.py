"""What is to be run, for a mode and the data that are there, and the folder that keeps it."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

import freqsgd
from freqsgd.documents import load_object, read_document
from freqsgd.documents.inspection import Inspection
from freqsgd.documents.paper import PaperRun
from freqsgd.documents.results import Results
from freqsgd.documents.theory import Theory
from freqsgd.errors import DataError
from freqsgd.files import make_folder, write_json
from freqsgd.paper.experiments import Run, Way
from freqsgd.tables.cache import file_key
from freqsgd.tables.catalog import KnownDataset, by_hand, find_file, known_dataset

_TRAINING = ("results.json", "report.html", Results)
WRITTEN: dict[str, tuple[str, str, type[Struct]]] = {  # by command: document, page and content
    **dict.fromkeys(("compare", "stream", "words", "tune"), _TRAINING),
    "inspect": ("inspect.json", "inspect.html", Inspection),
    "theory": ("theory.json", "theory.html", Theory),
}
_BARE = ("inspect",)  # takes neither --threads nor --seed
_NEEDS = {"tune": ("optuna", "tune")}  # commands by the package they need, and its extra

DONE, OUT_OF_TIME, FAILED, NOT_ASKED = "done", "out of time", "failed", "not asked"
NO_DATA, NOT_INSTALLED = "no data", "not installed"
RUNNING = "running"  # as long as nobody has seen the end
MEASURED = (DONE, OUT_OF_TIME)  # their documents answer rules

PAPER, RUNS_FOLDER = "paper.json", "runs"
SEAL = "run.json"  # of a run's folder: what was run there, and how it ended
LOG = "log.txt"


@dataclass(frozen=True)
class Task:
    """A run as it is done here."""

    name: str
    title: str
    way: Way
    command: tuple[str, ...]  # without --out
    stand_in: bool = False
    dataset: str | None = None
    data: tuple[Any, ...] = ()  # what tells the dataset's files from changed ones
    lacks: str = ""  # NO_DATA or NOT_INSTALLED, where it cannot be done
    why: str = ""  # how to get what is not there

    @property
    def written(self) -> tuple[str, str, type[Struct]]:
        """The document and the page that it leaves in its folder, and the document's type."""
        return WRITTEN[self.command[0]]

    @property
    def resumable(self) -> bool:
        """Whether it can go on where it was cut short."""
        return self.written is _TRAINING

    def key(self) -> dict[str, Any]:
        """Return what its results depend on."""
        return {
            "command": shlex.join(self.command),
            "data": list(self.data),
            "version": freqsgd.__version__,
        }


def plan_task(name: str, run: Run, full: bool, options: Sequence[str] = ()) -> Task:
    """Return a run of the table for the data that are there.

    Args:
        name, run: of the table
        full: the paper's size
        options: of the command line, for commands that have them
    """
    way, lacks, why = run.full if full else run.quick, "", ""
    dataset = None if run.data is None else known_dataset(run.data)
    file = None if dataset is None else find_file(str(dataset.file))
    missing = dataset is not None and file is None
    if dataset is not None and missing:
        way, lacks, why = run.stand_in or way, "" if run.stand_in else NO_DATA, _how(dataset)
    command = shlex.split(way.command)
    if command[0] not in _BARE:
        command += shlex.split(" ".join(options))
    package, extra = _NEEDS.get(command[0], ("", ""))
    if package and not lacks and find_spec(package) is None:
        lacks = NOT_INSTALLED
        why = f'freqsgd {command[0]} needs {package}: pip install "freqsgd[{extra}]"'
    paths = [] if dataset is None or file is None else [file, *map(file.with_name, dataset.beside)]
    return Task(
        name,
        run.title,
        way,
        tuple(command),
        stand_in=missing and not lacks,
        dataset=run.data,
        data=tuple(file_key(path) for path in paths if path.is_file()),
        lacks=lacks,
        why=why,
    )


def _how(dataset: KnownDataset) -> str:
    """Return one sentence on how to get data."""
    if dataset.archive:
        return f"{dataset.name} is not here: freqsgd data get {dataset.name} downloads it"
    return f"{dataset.name} is not here. {by_hand(dataset)}"


class PaperFolder:
    """A folder that is new, empty, or was written by ``freqsgd paper``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            held = [entry.name for entry in path.iterdir() if not entry.name.startswith(".")]
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataError(f"cannot use the folder {path}: {error.strerror}") from error
        document = load_object(path / PAPER) or {}
        ours = document.get("kind") == "paper" or any(path.glob(f"{RUNS_FOLDER}/*/{SEAL}"))
        if held and not ours:
            raise DataError(
                f"{path} holds other things ({sorted(held)[0]}) and no {PAPER} of freqsgd paper: "
                "use another --out"
            )

    def of(self, task: Task) -> Path:
        """Return the folder of a run: of its name, or beside it if another command has that one."""
        own, key = self.path / RUNS_FOLDER / task.name, task.key()
        if load_object(own / SEAL) is None or self._is_of(own, key):
            return own
        digest = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=4)
        return own.with_name(f"{task.name}-{digest.hexdigest()}")

    def look(self, task: Task) -> tuple[str, float]:
        """Return how an earlier call left this very run, and its seconds; "" if there is none."""
        folder = self.of(task)
        if not self._is_of(folder, task.key()):
            return "", 0.0
        seal = load_object(folder / SEAL) or {}
        seconds = seal.get("seconds")
        return str(seal.get("status")), seconds if isinstance(seconds, int | float) else 0.0

    def seal(self, task: Task, status: str, seconds: float) -> None:
        """Write down what a run's folder holds."""
        make_folder(self.of(task))
        write_json(self.of(task) / SEAL, {**task.key(), "status": status, "seconds": seconds})

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

    def document(self, task: Task) -> Any:
        """Return what a run has measured so far, as its Struct; None if that cannot be read."""
        name, _, kind = task.written
        found = load_object(self.of(task) / name)
        try:
            return None if found is None else read_document(found, kind, name)
        except DataError:
            return None

    def entry(
        self, task: Task, status: str, why: str = "", seconds: float | None = None
    ) -> PaperRun:
        """Return a run as ``paper.json`` has it."""
        folder = self.of(task)
        document, page = (
            (folder / name).relative_to(self.path).as_posix()
            if status in MEASURED and (folder / name).is_file()
            else None
            for name in task.written[:2]
        )
        return PaperRun(
            title=task.title,
            command=shlex.join(["freqsgd", *task.command, "--out", task.name]),
            stand_in=task.stand_in,
            dataset=task.dataset,
            smaller="" if task.lacks else task.way.smaller,
            status=status,
            why=why,
            seconds=seconds,
            budget=0.0 if task.lacks else task.way.budget,
            document=document,
            report=page,
        )

    def _is_of(self, folder: Path, key: Mapping[str, Any]) -> bool:
        """Return whether a folder is of this very command, data and version."""
        seal = load_object(folder / SEAL) or {}
        return {name: seal.get(name) for name in key} == key
