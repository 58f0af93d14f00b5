"""The folder of ``freqsgd paper``: what is ours in it, and what its runs have left."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freqsgd.errors import DataError
from freqsgd.files import make_folder, write_json
from freqsgd.paper.tasks import Task
from freqsgd.report.documents import read_document
from freqsgd.report.results import number

__all__ = ["LOG", "PAPER", "RUNS_FOLDER", "Kept", "PaperFolder"]

PAPER, RUNS_FOLDER = "paper.json", "runs"
SEAL = "run.json"  # of a run's folder: what was run there, and how it ended
LOG = "log.txt"


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
        """The folder of a run: of its name, or beside it if another command has that one."""
        own = self.path / RUNS_FOLDER / task.name
        seal = read_document(own / SEAL)
        return own if seal is None or _is_of(seal, task) else own.with_name(task.unique_name)

    def look(self, task: Task) -> Kept | None:
        """What an earlier call left of this very run; None: nothing that could be used."""
        seal = read_document(self.of(task) / SEAL)
        if seal is None or not _is_of(seal, task):
            return None
        return Kept(str(seal.get("status")), number(seal.get("seconds")) or 0.0)

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
        """What a run has measured so far."""
        return read_document(self.of(task) / task.files[0])

    def relative(self, task: Task, file: str) -> str | None:
        """A file of a run as the paper's document names it; None if it is not there."""
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
        document = read_document(self.path / PAPER) or {}
        ours = document.get("kind") == "paper" or any(self.path.glob(f"{RUNS_FOLDER}/*/{SEAL}"))
        if held and not ours:
            raise DataError(
                f"{self.path} holds other things ({sorted(held)[0]}) and no {PAPER} of freqsgd "
                "paper: use another --out"
            )


def _is_of(seal: Mapping[str, Any], task: Task) -> bool:
    """Whether a folder is of this very command, data and version."""
    return {name: seal.get(name) for name in task.key()} == task.key()
