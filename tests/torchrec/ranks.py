"""Commands that torchrun starts on several ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
