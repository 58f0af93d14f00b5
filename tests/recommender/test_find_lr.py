from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from freqsgd.errors import DataWarning
from freqsgd.optimizers import OPTIMIZERS, Rule
from freqsgd.recommender.find_lr import find_lr, lowest
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.fields import ABSENT, Field, Splits
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions
from tests.recommender.made_up import dataset

SMALL = Settings(dim=4, epochs=2)


@pytest.mark.parametrize("place", [-9.3, -4, -1.6, -0.4, 0.0, 0.5, 1.0, 2.7, 8.2])
def test_the_lowest_point_of_a_parabola_is_found(place):
    assert lowest(lambda x: 3 * (x - place) ** 2 + 1)[0] == pytest.approx(place)


@pytest.mark.parametrize("edge", [-7.5, -0.5, 3.5])
def test_beyond_an_edge_the_loss_may_be_infinite(edge):
    found, _ = lowest(lambda x: -x if x < edge else math.inf)
    assert edge - 1 <= found < edge


def test_a_function_without_a_lowest_point_is_followed_only_so_far():
    assert lowest(lambda x: x) == (-13, -13)
    assert lowest(lambda x: -x) == (13, -13)
    assert lowest(lambda x: math.inf) == (0, math.inf)


def test_few_rates_are_tried():
    tried = []
    lowest(lambda x: tried.append(x) or (x + 2.6) ** 2)
    assert len(tried) == len(set(tried)) == 5


@pytest.mark.parametrize("model", ["fm", "deepfm"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_rate_is_near_the_best_of_a_grid(optimizer, model):
    data = load(DataOptions(samples=30_000))
    settings = Settings(model=model, dim=4, epochs=12 if model == "fm" else 5)
    lr = find_lr(data, Rule(optimizer), settings)
    aucs = [_auc(data, optimizer, factor * lr, settings) for factor in (1 / 12, 1 / 4, 1, 4, 12)]
    assert aucs[2] > max(aucs) - (0.005 if model == "fm" else 0.025)  # few epochs, few rows


def test_where_few_steps_tell_nothing_a_usual_rate_is_taken():
    data = dataset()
    labels = np.random.default_rng(1).integers(0, 2, len(data.labels)).astype(np.uint8)
    noise = dataclasses.replace(data, labels=labels)
    settings = Settings(dim=4, epochs=10_000, lr_decay="linear")
    with pytest.warns(DataWarning, match="no learning rate of cfsgd lowers the loss"):
        assert find_lr(noise, Rule("cfsgd"), settings) == 0.25


@pytest.mark.parametrize("model", ["fm", "deepfm"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_constant_rate_does_not_depend_on_the_most_epochs(optimizer, model):
    data, settings = dataset(), Settings(model=model, dim=4)
    found = {
        find_lr(data, Rule(optimizer), dataclasses.replace(settings, epochs=n, patience=patience))
        for n, patience in ((1, None), (7, 2), (60, 5), (10**6, 5))
    }
    assert len(found) == 1


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_are_easily_told_apart_do_not_drive_the_rate_up(seed):
    ids = np.random.default_rng(seed).integers(0, 3, (20, 3)).astype(np.int32)
    labels = (ids[:, 0] == 1).astype(np.uint8)
    splits = Splits(np.arange(20), np.arange(0), np.arange(0))
    data = Dataset("easy", tuple(Field(name, 3) for name in "abc"), ids, labels, splits)
    settings = Settings(dim=4, batch_size=64, epochs=20, patience=None)
    _, record = fit(data, Rule("cfsgd"), settings)
    assert record["stopped"] == "epochs"
    assert record["lr"] < 2


def test_rates_that_fall_over_fewer_epochs_are_larger():
    data = dataset(rows=9000)
    falling = Settings(dim=4, lr_decay="linear")
    found = [
        find_lr(data, Rule("adam"), dataclasses.replace(falling, epochs=n))
        for n in (1, 3, 50, 1000, 10**6)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > 10 * found[-1]
    assert found[-1] == found[-2]  # a whole run; longer ones change nothing


@pytest.mark.filterwarnings("ignore::freqsgd.errors.DataWarning")
def test_noisier_batches_get_smaller_rates():
    data = load(DataOptions(samples=30_000))
    small, large = (
        find_lr(data, Rule("cfsgd"), Settings(dim=4, batch_size=size, epochs=1000))
        for size in (64, 4096)
    )
    assert small < large / 4


def test_rows_of_weight_0_do_not_matter():
    data = dataset()
    weights = (data.ids[:, 0] % 2).astype(np.float32)
    labels = np.where(weights == 0, 0, data.labels).astype(np.uint8)
    first, second = (
        dataclasses.replace(data, weights=weights, labels=each) for each in (data.labels, labels)
    )
    assert find_lr(first, Rule("cfsgd"), SMALL) == find_lr(second, Rule("cfsgd"), SMALL)


def _auc(data, optimizer, lr, settings):
    return fit(data, Rule(optimizer, lr), settings)[1]["best_val_auc"] or 0.5


def test_the_search_is_deterministic_and_does_not_depend_on_threads():
    data = dataset(rows=9000)
    settings = Settings(dim=40)  # enough work for two threads
    found = {find_lr(data, Rule("cfsgd"), settings, threads=threads) for threads in (1, 1, 2)}
    assert len(found) == 1


def test_only_training_rows_are_looked_at():
    data = dataset()
    ids, labels = data.ids.copy(), data.labels.copy()
    others = np.concatenate([data.splits.validation, data.splits.test])
    ids[others], labels[others] = 0, 1 - labels[others]
    changed = dataclasses.replace(data, ids=ids, labels=labels)
    assert find_lr(data, Rule("adam"), SMALL) == find_lr(changed, Rule("adam"), SMALL)
    labels = data.labels.copy()
    labels[data.splits.train] = 1 - labels[data.splits.train] * (ids[data.splits.train, 0] > 1)
    changed = dataclasses.replace(data, labels=labels)
    assert find_lr(data, Rule("adam"), SMALL) != find_lr(changed, Rule("adam"), SMALL)


@pytest.mark.filterwarnings("ignore::freqsgd.errors.DataWarning")
@pytest.mark.parametrize("rows", [10, 11, 40, 500])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_any_number_of_rows_will_do(rows, optimizer):
    lr = find_lr(dataset(rows=rows), Rule(optimizer), SMALL)
    assert 0 < lr < 1e4


def test_tokens_that_the_sample_does_not_hold_do_not_matter():
    """A table a thousand times larger, with bags and weights, takes the same search."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 30, (2000, 3)).astype(np.int32)
    ids[rng.random(2000) < 0.3, 2] = ABSENT
    labels = (ids[:, 0] % 2 == 0).astype(np.uint8)
    rows = np.arange(2000)
    splits = Splits(rows[:1600], rows[1600:], rows[:0])
    weights = rng.exponential(1, 2000).astype(np.float32)

    def of(size, ids, init_scale):
        fields = (Field("a", size), Field("b", size, width=2))
        data = Dataset(
            "made-up", fields, np.ascontiguousarray(ids), labels, splits, weights=weights
        )
        return find_lr(data, Rule("adam", weight_decay=1e-3), Settings(init_scale=init_scale))

    spread = np.where(ids == ABSENT, ABSENT, ids * 1000 + 7).astype(np.int32)
    scale = math.sqrt((2 * 30_000 + 64) / (2 * 30 + 64))  # the start depends on the number of rows
    assert of(30, ids, 1.0) == of(30_000, spread, scale)


def test_a_rule_without_a_rate_finds_it_and_resumes_with_it(tmp_path):
    data = dataset()
    _, record = fit(data, Rule("cfsgd"), SMALL, folder=tmp_path / "a")
    assert record["lr"] == find_lr(data, Rule("cfsgd"), SMALL)
    assert record["options"]["rule"]["lr"] is None  # what was asked for
    assert record["max_lr"] == 100 * record["lr"]
    _, same = fit(data, Rule("cfsgd", record["lr"], max_lr=record["max_lr"]), SMALL)
    assert [e["val_auc"] for e in same["epochs"]] == [e["val_auc"] for e in record["epochs"]]
    _, again = fit(data, Rule("cfsgd"), SMALL, folder=tmp_path / "a", resume=True)
    assert again["lr"] == record["lr"]
    _, capped = fit(data, Rule("cfsgd", max_lr=2.0), SMALL)
    assert capped["max_lr"] == 2.0
    _, adam = fit(data, Rule("adam"), SMALL)
    assert adam["max_lr"] is None
