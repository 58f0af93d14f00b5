"""A run that is killed at any moment goes on from its last checkpoint, to the same bits."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
import torch

from freqsgd.optimizers import Rule
from freqsgd.recommender.folder import load_model
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from tests.recommender.made_up import dataset

CHILD = """
import sys
from pathlib import Path
from freqsgd.recommender import fit
from tests.recommender.test_killed import RULES, settings_for
from tests.recommender.made_up import dataset
optimizer, model, folder = sys.argv[1:]
listener = lambda progress, record: print(progress.epoch, progress.step, flush=True)
fit(dataset(), RULES[optimizer], settings_for(model), folder=Path(folder), resume=True,
    threads=1, listener=listener)
"""
RULES = {
    "cfsgd": Rule("cfsgd", 1.0, weight_decay=1e-3),
    "adam": Rule("adam", 0.01),
}


def settings_for(model):
    return Settings(model=model, dim=4, batch_size=100, epochs=4, patience=4, checkpoint_steps=1)


@pytest.mark.parametrize(("optimizer", "model"), [("cfsgd", "fm"), ("adam", "deepfm")])
def test_killed_three_times_and_resumed_gives_the_bits_of_a_whole_run(optimizer, model, tmp_path):
    whole, record = fit(dataset(), RULES[optimizer], settings_for(model), threads=1)
    folder = tmp_path / "run"
    command = [sys.executable, "-c", CHILD, optimizer, model, str(folder)]
    reached = []
    for lines, delay in ((3, 0.0), (31, 0.001), (20, 0.004)):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for _ in range(lines):
            line = child.stdout.readline()
        time.sleep(delay)  # into the middle of a step or of a checkpoint
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        reached.append(tuple(int(number) for number in line.split()))
        assert (folder / "checkpoint.safetensors").exists()
        assert not (folder / "model.safetensors").exists()
    assert reached == sorted(reached)
    assert reached[0] < (0, 5)
    assert reached[-1] > (1, 0)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    resumed, description = load_model(folder)
    for ours, theirs in zip(
        resumed.state_dict().values(), whole.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs)
    told = description["record"]
    assert [e["val_auc"] for e in told["epochs"]] == [e["val_auc"] for e in record["epochs"]]
    assert [e["train_loss"] for e in told["epochs"]] == [e["train_loss"] for e in record["epochs"]]
    assert told["test_loss"] == record["test_loss"]
