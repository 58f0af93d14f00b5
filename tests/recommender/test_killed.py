"""A run that is killed at any moment goes on from its last checkpoint, to the same bits."""

from __future__ import annotations

import time

import pytest
import torch

from freqsgd.optimizers import Rule
from freqsgd.recommender.folder import load_model
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from tests.forks import fork
from tests.recommender.made_up import dataset

RULES = {
    "cfsgd": Rule("cfsgd", 1.0, weight_decay=1e-3),
    "adam": Rule("adam", 0.01),
}


def settings_for(model):
    return Settings(model=model, dim=4, batch_size=100, epochs=4, patience=4, checkpoint_steps=1)


def run(pipe, optimizer, model, folder):
    def listener(progress, record):
        pipe.send((progress.epoch, progress.step))

    settings = settings_for(model)
    fit(dataset(), RULES[optimizer], settings, folder=folder, resume=True, threads=1,
        listener=listener)  # fmt: skip


@pytest.mark.parametrize(("optimizer", "model"), [("cfsgd", "fm"), ("adam", "deepfm")])
def test_killed_three_times_and_resumed_gives_the_bits_of_a_whole_run(optimizer, model, tmp_path):
    whole, record = fit(dataset(), RULES[optimizer], settings_for(model), threads=1)
    folder = tmp_path / "run"
    reached = []
    for steps, delay in ((3, 0.0), (31, 0.001), (20, 0.004)):
        child, pipe = fork(run, optimizer, model, folder)
        for _ in range(steps):
            last = pipe.recv()
        time.sleep(delay)  # into the middle of a step or of a checkpoint
        child.kill()
        child.join()
        pipe.close()
        reached.append(last)
        assert (folder / "checkpoint.safetensors").exists()
        assert not (folder / "model.safetensors").exists()
    assert reached == sorted(reached)
    assert reached[0] < (0, 5)
    assert reached[-1] > (1, 0)
    fit(dataset(), RULES[optimizer], settings_for(model), folder=folder, resume=True, threads=1)
    resumed, description = load_model(folder)
    for ours, theirs in zip(
        resumed.state_dict().values(), whole.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs)
    told = description["record"]
    assert [e["val_auc"] for e in told["epochs"]] == [e["val_auc"] for e in record["epochs"]]
    assert [e["train_loss"] for e in told["epochs"]] == [e["train_loss"] for e in record["epochs"]]
    assert told["test_loss"] == record["test_loss"]
