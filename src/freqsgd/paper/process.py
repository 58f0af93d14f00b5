"""Run a command of freqsgd in a process of its own, with its time limited.

The process is ``python -m freqsgd.paper.process PARENT COMMAND...``, which does what
``freqsgd COMMAND...`` does, but ends when its parent is gone.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from freqsgd.errors import DataError

PROGRAM = (sys.executable, "-m", "freqsgd.paper.process")
GRACE_SECONDS = 10.0  # from the request to stop, in which checkpoints are written
_LOOK_SECONDS = 0.2
_TAIL_BYTES = 4096


def execute(
    program: Sequence[str],
    command: Sequence[str],
    log: Path,
    budget: float,
    watch: Callable[[float, str], None],
) -> int:
    """Run a command until it ends or is over its time; return its exit code.

    Ctrl-C reaches this process alone: the child is asked to stop, then the interrupt goes on.

    Args:
        program: what runs commands; it is given the number of this process first
        command: its arguments
        log: takes what the command says, after what is there
        budget: seconds after which the child is stopped
        watch: called some times a second with the seconds so far and the last line of the log
    """
    begun = time.monotonic()
    environment = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    plain = {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "TERM": "dumb"}  # lines, written at once
    try:
        with log.open("ab") as said:
            child = subprocess.Popen(
                [*program, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=environment | plain,
                start_new_session=True,
            )
    except OSError as error:
        what = f"write {log}" if error.filename == str(log) else f"start {program[0]}"
        raise DataError(f"cannot {what}: {error.strerror}") from error
    try:
        while child.poll() is None and (seconds := time.monotonic() - begun) <= budget:
            watch(seconds, last_line(log))
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_LOOK_SECONDS)
    finally:
        _end(child)
    return child.returncode


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


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ask a child to stop, so that it writes a checkpoint; then end it, with its own children.

    Ctrl-C does not wait for the checkpoint.
    """
    try:
        if child.poll() is None:
            if sys.platform == "win32":  # where no signal asks a process: it has no checkpoint then
                child.terminate()
            else:
                child.send_signal(signal.SIGINT)
            child.wait(GRACE_SECONDS)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass
    finally:
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                if sys.platform == "win32":
                    child.kill()
                else:
                    os.killpg(child.pid, signal.SIGKILL)
            child.wait()


# ---- the child -----------------------------------------------------------------------------------


def follow_parent(parent: int) -> None:
    """End this process when its parent ends, however that is, and stop it at SIGINT.

    Shells start commands in the background with SIGINT ignored, which their children inherit.
    """
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)  # from any thread


if __name__ == "__main__":
    follow_parent(int(sys.argv.pop(1)))
    runpy.run_module("freqsgd", run_name="__main__", alter_sys=True)
