"""Commands on several ranks, started by torchrun or forked."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from tests.cli.conftest import run_command
from tests.forks import fork

TIMEOUT = 300.0  # seconds; torchrec alone takes some to load


def start_ranks(*args: str | Path, ranks: int = 2, restarts: int = 0) -> subprocess.Popen[str]:
    """Start ``torchrun args``: a script or ``-m module``, and its arguments; one thread each."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={ranks}", f"--max-restarts={restarts}", *map(str, args)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish_ranks(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Wait for what was started; whatever is left of it after the time allowed is ended."""
    try:
        out, err = process.communicate(timeout=TIMEOUT)
    except BaseException:
        process.terminate()  # torchrun ends its ranks, which are in sessions of their own
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run_ranks(
    *args: str | Path, ranks: int = 2, restarts: int = 0
) -> subprocess.CompletedProcess[str]:
    """What ``torchrun args`` printed, and its exit code."""
    return finish_ranks(start_ranks(*args, ranks=ranks, restarts=restarts))


def fork_ranks(*commands: list[str]) -> list[tuple[int, str, str]]:
    """Run a command on each rank, sooner than torchrun; return exit codes, output and messages."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    shared = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    shared["WORLD_SIZE"] = str(len(commands))
    pipes = [
        fork(_run, command, {**os.environ, **shared, "RANK": str(rank)})[1]
        for rank, command in enumerate(commands)
    ]
    ends = []
    for pipe in pipes:
        assert pipe.poll(TIMEOUT)
        ends.append(pipe.recv())
    return ends


def _run(pipe: Connection, command: list[str], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    out, messages = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(messages):
        code = run_command(command)
    pipe.send((code, out.getvalue(), messages.getvalue()))
