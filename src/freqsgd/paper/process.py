"""Do one run in a process of its own: start it, watch it, stop it in time, judge how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from freqsgd.errors import DataError
from freqsgd.paper.experiments import Way
from freqsgd.paper.tasks import LOG, PaperFolder, Task
from freqsgd.report.wording import duration

DONE, OUT_OF_TIME, FAILED = "done", "out of time", "failed"
_RUNNING = "running"  # as long as nobody has seen the end
_ERROR = "freqsgd: error: "
PROGRAM = (sys.executable, "-m", "freqsgd.cli.child")  # then this process, then the command
GRACE_SECONDS = 10.0  # from the request to stop, in which checkpoints are written
_LOOK_SECONDS = 0.2
_TAIL_BYTES = 4096


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
    """Return the error that a run ended with."""
    said = last_line(log).removeprefix(_ERROR)
    if code < 0:
        return f"ended by signal {-code}; it said last: {said or '-'}"
    return said or f"ended with exit code {code}"


# ---- the process ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    code: int
    seconds: float
    stopped: bool  # it was over its time


def execute(
    program: Sequence[str],
    command: Sequence[str],
    log: Path,
    budget: float,
    watch: Callable[[float, str], None],
) -> Ended:
    """Run a command until it ends or is over its time; it writes what it says to the log.

    Ctrl-C reaches this process alone: the child is asked to stop, then the interrupt goes on.

    Args:
        program: what runs commands; gets the number of this process first
        command: its arguments
        log: is appended to
        budget: seconds after which the child is stopped
        watch: called some times a second with the seconds so far and the last line of the log
    """
    begun = time.monotonic()
    try:
        with log.open("ab") as said:
            child = subprocess.Popen(
                [*program, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=_environment(),
                start_new_session=True,
            )
    except OSError as error:
        what = f"write {log}" if error.filename == str(log) else f"start {program[0]}"
        raise DataError(f"cannot {what}: {error.strerror}") from error
    stopped = False
    try:
        while child.poll() is None:
            seconds = time.monotonic() - begun
            stopped = seconds > budget
            if stopped:
                _stop(child)
                break
            watch(seconds, last_line(log))
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_LOOK_SECONDS)
    except KeyboardInterrupt:
        if not stopped:
            with contextlib.suppress(KeyboardInterrupt):  # a second one does not wait
                _stop(child)
        raise
    finally:
        _kill(child)
    return Ended(child.returncode, time.monotonic() - begun, stopped)


def last_line(log: Path) -> str:
    """Return what was said last, on one line."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            said = file.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [" ".join(line.split()) for line in said.splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Ask a child to stop, so that it writes a checkpoint."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        if sys.platform == "win32":  # where no signal asks a process: it has no checkpoint then
            child.terminate()
        else:
            child.send_signal(signal.SIGINT)
        child.wait(GRACE_SECONDS)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End a child that is still there, with its own children."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            if sys.platform == "win32":
                child.kill()
            else:
                os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _environment() -> dict[str, str]:
    """Return ours, for plain lines that are written at once."""
    wanted = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    return {**wanted, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "TERM": "dumb"}
