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

from freqsgd.data.dataset import DataError
from freqsgd.data.lock import locked
from freqsgd.training import Rule, Settings
from freqsgd.training.model_folder import load_model
from freqsgd.training.one_pass import Pass, fit_stream
from tests.training.streams import MemoryStream
from tests.training.test_one_pass import without_time

CHILD = """
import sys
from pathlib import Path
from freqsgd.data.lock import locked
from freqsgd.training.one_pass import fit_stream
from tests.training.test_one_pass_killed import PLAN, RULE, SETTINGS, stream
folder = Path(sys.argv[1])
with locked(folder):
    listener = lambda progress, record: print(progress.examples, flush=True)
    fit_stream(stream(), RULE, SETTINGS, PLAN, folder=folder, resume=True, threads=1,
               listener=listener)
"""
RULE = Rule("cfsgd", 1.0, weight_decay=1e-4)
SETTINGS = Settings(dim=8, batch_size=64)
PLAN = Pass(window=500, checkpoint_examples=64)


def stream():
    return MemoryStream(sizes=(3000, 2000), rows=(2000, 3000, 2500), chunk=200)


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert child.stdout is not None
    child.stdout.close()


def same(folder: Path) -> None:
    whole, expected = fit_stream(stream(), RULE, SETTINGS, PLAN, threads=1)
    model, description = load_model(folder)
    assert without_time(description["record"]) == without_time(expected)
    for name, value in whole.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)


def test_killed_five_times_and_resumed_gives_the_bits_of_a_whole_run(tmp_path):
    folder, rng, reached = tmp_path / "run", random.Random(0), []
    for _ in range(5):
        child = start(folder)
        for _ in range(rng.randrange(2, 20)):
            line = child.stdout.readline()
        time.sleep(rng.uniform(0, 0.02))  # into the middle of a step or of a checkpoint
        kill(child)
        reached.append(int(line))
        assert not (folder / "model.safetensors").exists()
    assert reached == sorted(reached)
    assert reached[-1] > reached[0]
    child = start(folder)
    assert child.communicate()[0]
    assert child.returncode == 0
    same(folder)
    assert [path.name for path in folder.iterdir()] == ["model.safetensors"]


def test_killed_while_a_checkpoint_is_written_the_one_before_serves(tmp_path):
    folder = tmp_path / "run"
    partial, whole = folder / ".checkpoint.safetensors.tmp", folder / "checkpoint.safetensors"
    for _ in range(50):
        child = start(folder)
        child.stdout.readline()
        for _ in range(100_000):
            if partial.exists():
                break
        kill(child)
        if partial.exists():
            break
    assert partial.exists()
    assert whole.exists()
    child = start(folder)
    child.communicate()
    assert child.returncode == 0
    same(folder)
    assert [path.name for path in folder.iterdir()] == ["model.safetensors"]


def test_a_second_run_in_a_folder_is_refused_and_a_killed_one_leaves_it_free(tmp_path):
    child = start(tmp_path)
    child.stdout.readline()
    os.kill(child.pid, signal.SIGSTOP)
    with (
        pytest.raises(DataError, match=rf"being used by another run \(process {child.pid}\)"),
        locked(tmp_path),
    ):
        pass
    kill(child)
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text() == str(os.getpid())
    assert not (tmp_path / ".lock").exists()
