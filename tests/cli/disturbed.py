"""The command line on ranks of which some are killed, or wait for Ctrl-C.

The environment variable DISTURB says which, where: ``attempt.rank.what.step`` for each.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from freqsgd.cli.app import run
from freqsgd.runs import checkpoint
from freqsgd.runs.resume import CHECKPOINT
from freqsgd.torchrec.limits import require_torchrec


def place() -> tuple[str, str]:
    """Which start of torchrun this is, and which of its ranks."""
    return os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]


def say(line: str) -> None:
    """Write a line at once: ranks share their output, and print writes the line's end apart."""
    os.write(1, f"{line}\n".encode())


def disturb(what: str, step: int) -> None:
    """Do what is asked of this rank at this moment, if anything."""
    asked = os.environ["DISTURB"].split()
    attempt, rank = place()
    if f"{attempt}.{rank}.{what}.{step}" in asked:
        os.kill(os.getpid(), signal.SIGKILL)
    if f"{attempt}.{rank}.wait.{step}" in asked:
        say("waiting")
        while signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            time.sleep(0.01)  # until Ctrl-C was noticed


def main() -> None:
    require_torchrec()
    from freqsgd.torchrec.trainer import ShardedRun

    save, learn = checkpoint.save, ShardedRun.learn
    begun: list[int] = []

    def save_disturbed(path: Any, tensors: Any, description: Any) -> Any:
        if path.name == CHECKPOINT:
            disturb("save", description["steps"])
        return save(path, tensors, description)

    def learn_disturbed(self: Any, *batch: Any) -> None:
        if not begun:
            begun.append(self.steps)
            attempt, rank = place()
            say(f"attempt {attempt} of rank {rank} begins with step {self.steps}")
        disturb("learn", self.steps)
        learn(self, *batch)

    checkpoint.save, ShardedRun.learn = save_disturbed, learn_disturbed
    run()


if __name__ == "__main__":
    main()
