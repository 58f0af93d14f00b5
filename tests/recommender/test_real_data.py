"""What the paper's experiments must show on the real data."""

from __future__ import annotations

import os

import pytest

from freqsgd.optimizers import Rule
from freqsgd.recommender.settings import Settings, preset, with_preset
from freqsgd.recommender.training import fit
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions

pytestmark = pytest.mark.skipif(
    "FREQSGD_DATA" not in os.environ, reason="FREQSGD_DATA names no folder with the datasets"
)


def run(dataset, optimizer, settings, split_seed=0):
    data = load(DataOptions(dataset=dataset, split_seed=split_seed))
    values = preset("paper", dataset, settings.model, optimizer)
    return fit(data, *with_preset(Rule(optimizer), settings, values))[1]


def first_epoch_at(record, auc):
    return next((e["epoch"] for e in record["epochs"] if e["val_auc"] >= auc), None)


def test_movielens_fm_learns_as_in_the_paper():
    runs = {
        name: run("movielens-1m", name, Settings())
        for name in ("sgd", "cfsgd", "fasgd", "adagrad", "adam")
    }
    for name, record in runs.items():
        assert 0.81 <= record["best_val_auc"] <= 0.825, name
    cfsgd, sgd = runs["cfsgd"], runs["sgd"]
    assert cfsgd["best_epoch"] <= 8
    assert sgd["best_epoch"] > 3 * cfsgd["best_epoch"]
    level = min(cfsgd["best_val_auc"], sgd["best_val_auc"])
    assert first_epoch_at(sgd, level) > 3 * first_epoch_at(cfsgd, level)
    assert abs(runs["fasgd"]["best_val_auc"] - cfsgd["best_val_auc"]) < 0.003
    assert cfsgd["state_bytes"] * 100 < runs["adam"]["state_bytes"]


def test_cfsgd_reaches_an_auc_of_0815_on_movielens_over_five_splits():
    records = [run("movielens-1m", "cfsgd", Settings(), split_seed=seed) for seed in range(5)]
    assert all(record["best_epoch"] <= 8 for record in records)
    assert sum(record["best_val_auc"] for record in records) / 5 >= 0.815


def test_movielens_deepfm_learns_soonest_with_cfsgd():
    settings = Settings(model="deepfm", epochs=2)
    after_two = {
        name: run("movielens-1m", name, settings)["epochs"][1]["val_auc"]
        for name in ("sgd", "cfsgd", "adagrad", "adam")
    }
    assert max(after_two, key=after_two.__getitem__) == "cfsgd"


def test_criteo_fm_with_cfsgd_is_no_worse_than_adagrad_and_adam():
    best = {
        name: run("criteo", name, Settings(dim=16))["best_val_auc"]
        for name in ("sgd", "cfsgd", "adagrad", "adam")
    }
    assert best["cfsgd"] >= max(best["adagrad"], best["adam"]) - 0.0005
    assert best["sgd"] < best["cfsgd"] - 0.02


def test_the_best_preset_passes_adam_on_movielens_in_under_half_its_epochs():
    data = load(DataOptions(dataset="movielens-1m"))

    def best(optimizer, seed=0):
        values = preset("best", "movielens-1m", "fm", optimizer)
        return fit(data, *with_preset(Rule(optimizer), Settings(seed=seed), values))[1]

    adam, runs = best("adam"), [best("cfsgd", seed) for seed in range(3)]
    assert sum(run["test_auc"] for run in runs) / 3 >= 0.8235
    assert min(run["test_auc"] for run in runs) > adam["test_auc"]
    for run in runs:
        assert 2 * first_epoch_at(run, adam["best_val_auc"]) < adam["best_epoch"]


def test_the_rate_that_finds_itself_ends_near_the_best_of_a_grid_on_movielens():
    data = load(DataOptions(dataset="movielens-1m"))
    found = fit(data, Rule("cfsgd"), Settings())[1]
    grid = [fit(data, Rule("cfsgd", lr), Settings())[1] for lr in (0.15, 0.3, 0.6, 1.2)]
    assert found["best_val_auc"] >= max(run["best_val_auc"] for run in grid) - 0.002
