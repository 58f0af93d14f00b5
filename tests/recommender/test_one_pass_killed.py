"""A pass that is killed at any moment goes on from its last checkpoint, to the same bits."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from freqsgd.errors import DataError
from freqsgd.files import locked
from freqsgd.optimizers import Rule
from freqsgd.recommender.folder import load_model
from freqsgd.recommender.one_pass import fit_stream
from freqsgd.recommender.settings import Pass, Settings
from tests.recommender.streams import MemoryStream
from tests.recommender.test_one_pass import without_time

RUNS = """
import os, sys
from pathlib import Path
from freqsgd.recommender.one_pass import fit_stream
from tests.recommender.test_one_pass_killed import PLAN, RULE, SETTINGS, stream

def run(folder):
    fit_stream(stream(), RULE, SETTINGS, PLAN, folder=folder, resume=True, threads=1,
               listener=lambda progress, record: print(progress.examples, flush=True))

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        print(os.getpid(), flush=True)
        run(Path(line.strip()))
        os._exit(0)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
RULE = Rule("cfsgd", 1.0, weight_decay=1e-4)
SETTINGS = Settings(dim=8, batch_size=64)
PLAN = Pass(window=500, checkpoint_examples=64)


def stream():
    return MemoryStream(sizes=(3000, 2000), rows=(6000, 9000, 2500), chunk=200)


class Runs:
    """Runs in processes of their own, forked from one that has imported everything."""

    def __init__(self):
        command = [sys.executable, "-c", RUNS]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._parent = subprocess.Popen(command, text=True, bufsize=1, **pipes)

    def start(self, folder):
        """Begin or resume a run; wait until it has learned something."""
        self._parent.stdin.write(f"{folder}\n")
        self.process = int(self.line())
        assert int(self.line()) > 0

    def line(self):
        return self._parent.stdout.readline().strip()

    def kill(self):
        os.kill(self.process, signal.SIGKILL)
        assert self.end() == -signal.SIGKILL

    def end(self):
        """Wait for the end of the run; give its exit code."""
        while not (line := self.line()).startswith("ended"):
            assert line
        return int(line.split()[1])

    def close(self):
        self._parent.stdin.close()
        self._parent.wait()
        self._parent.stdout.close()


@pytest.fixture(scope="module")
def runs():
    made = Runs()
    yield made
    made.close()


def same(folder: Path) -> None:
    whole, expected = fit_stream(stream(), RULE, SETTINGS, PLAN, threads=1)
    model, description = load_model(folder)
    assert without_time(description["record"]) == without_time(expected)
    for name, value in whole.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)


def test_killed_five_times_and_resumed_gives_the_bits_of_a_whole_run(runs, tmp_path):
    folder, rng, reached = tmp_path / "run", random.Random(0), []
    for _ in range(5):
        runs.start(folder)
        for _ in range(rng.randrange(2, 15)):
            line = runs.line()
        time.sleep(rng.uniform(0, 0.01))  # into the middle of a step or of a checkpoint
        runs.kill()
        reached.append(int(line))
        assert not (folder / "model.safetensors").exists()
    assert reached == sorted(set(reached))
    runs.start(folder)
    assert runs.end() == 0
    same(folder)
    assert [path.name for path in folder.iterdir()] == ["model.safetensors"]


def test_killed_while_a_checkpoint_is_written_the_one_before_serves(runs, tmp_path):
    folder = tmp_path / "run"
    partial, whole = folder / ".checkpoint.safetensors.tmp", folder / "checkpoint.safetensors"
    for _ in range(20):
        runs.start(folder)
        while not (partial.exists() or (folder / "model.safetensors").exists()):
            pass
        runs.kill()
        if partial.exists():
            break
    assert partial.exists()
    assert whole.exists()
    runs.start(folder)
    assert runs.end() == 0
    same(folder)
    assert [path.name for path in folder.iterdir()] == ["model.safetensors"]


def test_a_second_run_in_a_folder_is_refused_and_a_killed_one_leaves_it_free(runs, tmp_path):
    runs.start(tmp_path)
    os.kill(runs.process, signal.SIGSTOP)
    with pytest.raises(DataError, match=rf"used by another run \(process {runs.process}\)"):
        fit_stream(stream(), RULE, SETTINGS, PLAN, folder=tmp_path, resume=True)
    runs.kill()
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text() == str(os.getpid())
    assert not (tmp_path / ".lock").exists()
