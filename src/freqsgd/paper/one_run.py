"""Do one run, unless it is there already."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from freqsgd.paper.experiments import Way
from freqsgd.paper.folder import LOG, PaperFolder
from freqsgd.paper.process import Ended, execute, last_line
from freqsgd.paper.tasks import Task
from freqsgd.report.wording import duration

__all__ = ["DONE", "FAILED", "OUT_OF_TIME", "Outcome", "do_run"]

DONE, OUT_OF_TIME, FAILED = "done", "out of time", "failed"
_RUNNING = "running"  # as long as nobody has seen the end
_ERROR = "freqsgd: error: "


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    status: str
    why: str
    seconds: float  # of all attempts
    cached: bool = False  # it was there already


def do_run(
    folder: PaperFolder,
    task: Task,
    way: Way,
    program: Sequence[str],
    watch: Callable[[float, str], None],
) -> Outcome:
    """Run a task's command, or go on with what was cut short."""
    kept = folder.look(task)
    if kept and kept.status == DONE and folder.document(task) is not None:
        return Outcome(DONE, "", kept.seconds, cached=True)
    goes_on = kept is not None and kept.status in (_RUNNING, OUT_OF_TIME) and task.resumable
    if not goes_on:
        folder.clear(task)
    before = kept.seconds if kept and goes_on else 0.0
    folder.seal(task, _RUNNING, before)
    command = [*task.command, "--out", str(folder.of(task)), *(["--resume"] if goes_on else [])]
    begun = time.monotonic()
    try:
        ended = execute(program, command, folder.of(task) / LOG, way.budget, watch)
    except KeyboardInterrupt:
        folder.seal(task, _RUNNING, before + time.monotonic() - begun)
        raise
    status, why = _judge(folder, task, way, ended)
    folder.seal(task, status, before + ended.seconds)
    return Outcome(status, why, before + ended.seconds)


def _judge(folder: PaperFolder, task: Task, way: Way, ended: Ended) -> tuple[str, str]:
    log = folder.of(task) / LOG
    if ended.code == 0:
        whole = folder.document(task) is not None
        return (DONE, "") if whole else (FAILED, f"it wrote no {task.files[0]}")
    if ended.stopped:
        how = "goes on with it" if task.resumable else "begins it again"
        return OUT_OF_TIME, f"stopped after {duration(way.budget)}; the same command {how}"
    return FAILED, _last_words(log, ended.code)


def _last_words(log: Path, code: int) -> str:
    """The error that a run ended with."""
    said = last_line(log).removeprefix(_ERROR)
    if code < 0:
        return f"ended by signal {-code}; it said last: {said or '-'}"
    return said or f"ended with exit code {code}"
