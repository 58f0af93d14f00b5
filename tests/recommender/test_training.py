from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import signal

import numpy as np
import pytest
import torch

from freqsgd.compare import compare
from freqsgd.errors import DataError, InterruptedFitError
from freqsgd.optimizers import Rule
from freqsgd.recommender.folder import load_model
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import _Run, fit
from freqsgd.runs.metrics import auc, cross_entropy
from freqsgd.tables.fields import Splits
from tests.recommender.made_up import dataset

SMALL = Settings(dim=4, batch_size=100, epochs=3, patience=3)


def with_swapped_names(data):
    first, second = data.fields
    fields = (dataclasses.replace(first, name="b"), dataclasses.replace(second, name="a"))
    return dataclasses.replace(data, fields=fields)


def with_swapped_labels(data):
    labels = data.labels.copy()
    one, other = np.argmax(labels), np.argmin(labels)
    labels[[one, other]] = labels[[other, one]]
    return dataclasses.replace(data, labels=labels)


def interrupt_at(step):
    """A listener that presses Ctrl-C in the middle of the second epoch."""

    def listener(progress, record):
        if progress.epoch == 1 and progress.step == step:
            signal.raise_signal(signal.SIGINT)

    return listener


@pytest.mark.parametrize(("options", "patience"), [({}, 5), ({"patience": 2}, 2)])
def test_training_stops_when_validation_auc_has_not_risen_for_some_epochs(options, patience):
    _, record = fit(dataset(), Rule("cfsgd", 3.0), Settings(dim=8, batch_size=100, **options))
    scores = [epoch["val_auc"] for epoch in record["epochs"]]
    assert record["stopped"] == "patience"
    assert record["best_epoch"] == int(np.argmax(scores)) + 1 == len(scores) - patience
    assert record["best_val_auc"] == max(scores)
    assert record["still_learning"] is False  # it overfits: the validation loss rises


@pytest.mark.parametrize(
    ("train", "validation", "still"),
    [
        ((0.60, 0.59, 0.58), (0.62, 0.63, 0.61), True),
        ((0.60, 0.59, 0.58), (0.62, 0.61, 0.63), False),  # it begins to overfit
        ((0.60, 0.59, 0.58), (0.62, 0.62, 0.64), False),  # it overfits
        ((0.60, 0.61, 0.60), (0.62, 0.61, 0.61), False),  # there is nothing more to learn
    ],
)
def test_a_run_that_patience_ends_while_its_losses_fall_is_marked(
    train, validation, still, monkeypatch
):
    pairs = zip(validation, (0.7, 0.69, 0.7), strict=True)
    entries = ({"val_loss": loss, "val_auc": auc} for loss, auc in pairs)
    monkeypatch.setattr(_Run, "validate", lambda self: next(entries))
    losses = iter(train)
    monkeypatch.setattr(
        _Run, "mean_loss", lambda self, part: next(losses) if part is self.losses else 0.0
    )
    _, record = fit(dataset(), Rule("cfsgd", 0.1), dataclasses.replace(SMALL, epochs=9, patience=2))
    assert record["stopped"] == "patience"
    assert record["best_epoch"] == 1
    assert record["still_learning"] is still


def test_the_model_returned_is_that_of_the_best_epoch():
    data = dataset()
    model, record = fit(data, Rule("cfsgd", 3.0), Settings(dim=8, batch_size=100))
    assert record["best_epoch"] < len(record["epochs"])
    for rows, prefix in ((data.splits.validation, "val"), (data.splits.test, "test")):
        logits = model(torch.from_numpy(data.ids[rows])).detach().numpy()
        labels = data.labels[rows]
        told = record if prefix == "test" else record["epochs"][record["best_epoch"] - 1]
        assert told[f"{prefix}_auc"] == pytest.approx(auc(logits, labels), abs=1e-6)
        assert told[f"{prefix}_loss"] == pytest.approx(cross_entropy(logits, labels), abs=1e-6)


def test_the_best_epoch_is_kept_over_an_interruption(tmp_path):
    rule, settings = Rule("cfsgd", 3.0), Settings(dim=8, batch_size=100, patience=2)
    whole, record = fit(dataset(), rule, settings)

    def late(progress, so_far):
        if progress.epoch == record["best_epoch"] + 1 and progress.step:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(InterruptedFitError):
        fit(dataset(), rule, settings, folder=tmp_path, listener=late)
    model, resumed = fit(dataset(), rule, settings, folder=tmp_path, resume=True)
    assert resumed["best_epoch"] == record["best_epoch"] < len(record["epochs"])
    assert torch.equal(model.tokens.weight, whole.tokens.weight)


def test_the_training_loss_is_the_mean_over_samples_not_over_batches():
    data = dataset(rows=260)  # 208 to train on: batches of 200 and 8
    settings = Settings(dim=4, batch_size=200, epochs=1)
    model, record = fit(data, Rule("sgd", 0.0), settings)
    train = data.splits.train
    logits = model(torch.from_numpy(data.ids[train])).detach().numpy()
    expected = cross_entropy(logits, data.labels[train])
    assert record["epochs"][0]["train_loss"] == pytest.approx(expected, rel=1e-6)


def test_a_linearly_decaying_rate_ends_near_zero():
    data = dataset()
    settings = dataclasses.replace(SMALL, lr_decay="linear", epochs=2)
    _, record = fit(data, Rule("sgd", 1.0), settings)
    steps = 2 * -(-len(data.splits.train) // 100)
    assert [e["lr"] for e in record["epochs"]] == pytest.approx([0.5 + 1 / steps, 1 / steps])


def test_tokens_that_training_never_shows_add_nothing():
    data = dataset()
    fields = tuple(dataclasses.replace(f, size=f.size + 1) for f in data.fields)
    model, _ = fit(dataclasses.replace(data, fields=fields), Rule("adam", 0.01), SMALL)
    assert not model.tokens.weight[60].any()
    assert not model.tokens.weight[101].any()


def test_one_seed_gives_one_result_and_another_another():
    results = [
        fit(dataset(), Rule("cfsgd", 1.0), dataclasses.replace(SMALL, model=kind, seed=seed))[0]
        for kind in ("fm", "deepfm")
        for seed in (0, 0, 1)
    ]
    for first, again, other in (results[:3], results[3:]):
        assert torch.equal(first.tokens.weight, again.tokens.weight)
        assert not torch.equal(first.tokens.weight, other.tokens.weight)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    fit(dataset(), Rule("cfsgd", 1.0), dataclasses.replace(SMALL, model="deepfm", epochs=1))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("model", ["fm", "deepfm"])
@pytest.mark.parametrize("optimizer", ["cfsgd", "adam", "rowwise-adagrad"])
def test_ctrl_c_saves_and_resuming_gives_the_bits_of_an_uninterrupted_run(
    optimizer, model, tmp_path
):
    data, rule = dataset(), Rule(optimizer, 0.05, weight_decay=1e-3)
    settings = dataclasses.replace(SMALL, model=model, lr_decay="linear", checkpoint_steps=7)
    whole, record = fit(data, rule, settings)
    with pytest.raises(InterruptedFitError):
        fit(data, rule, settings, folder=tmp_path / "run", listener=interrupt_at(14))
    resumed, again = fit(data, rule, settings, folder=tmp_path / "run", resume=True)
    for ours, theirs in zip(
        resumed.state_dict().values(), whole.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs)
    timings = ("seconds", "samples_per_second")
    for a, b in zip(again["epochs"], record["epochs"], strict=True):
        assert {k: v for k, v in a.items() if k not in timings} == {
            k: v for k, v in b.items() if k not in timings
        }
    assert again["test_auc"] == record["test_auc"]


def test_ctrl_c_after_the_last_step_of_an_epoch_is_resumed_with_its_evaluation(tmp_path):
    data, rule = dataset(), Rule("cfsgd", 1.0)
    whole, record = fit(data, rule, SMALL)
    last = -(-len(data.splits.train) // SMALL.batch_size)
    with pytest.raises(InterruptedFitError):
        fit(data, rule, SMALL, folder=tmp_path, listener=interrupt_at(last))
    resumed, again = fit(data, rule, SMALL, folder=tmp_path, resume=True)
    assert torch.equal(resumed.tokens.weight, whole.tokens.weight)
    assert [e["val_auc"] for e in again["epochs"]] == [e["val_auc"] for e in record["epochs"]]


def test_resuming_a_finished_run_returns_its_result_without_training(tmp_path):
    data, rule = dataset(), Rule("cfsgd", 1.0)
    first, record = fit(data, rule, SMALL, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    again, told = fit(data, rule, SMALL, folder=tmp_path, resume=True)
    assert told == record
    assert torch.equal(first.tokens.weight, again.tokens.weight)


def test_a_folder_in_use_is_not_overwritten(tmp_path):
    fit(dataset(), Rule("cfsgd", 1.0), SMALL, folder=tmp_path)
    with pytest.raises(DataError, match=r"holds a model\.safetensors already"):
        fit(dataset(), Rule("cfsgd", 1.0), SMALL, folder=tmp_path)


@pytest.mark.parametrize(
    ("rule", "settings", "data", "message"),
    [
        (Rule("cfsgd", 2.0), SMALL, dataset(), "lr 1.0, now lr is 2.0"),
        (Rule("sgd", 1.0), SMALL, dataset(), "optimizer cfsgd"),
        (Rule("cfsgd", 1.0), dataclasses.replace(SMALL, seed=3), dataset(), "seed 0"),
        (Rule("cfsgd", 1.0), SMALL, dataset(seed=5), "positive_rate"),
        (Rule("cfsgd", 1.0), SMALL, with_swapped_names(dataset()), "data"),
        (Rule("cfsgd", 1.0), SMALL, with_swapped_labels(dataset()), "data"),
    ],
)
def test_resuming_with_other_options_or_data_is_refused(rule, settings, data, message, tmp_path):
    for folder, listener in ((tmp_path / "a", None), (tmp_path / "b", interrupt_at(24))):
        with contextlib.suppress(InterruptedFitError):
            fit(dataset(), Rule("cfsgd", 1.0), SMALL, folder=folder, listener=listener)
        with pytest.raises(DataError, match=f"cannot resume.*{message}"):
            fit(data, rule, settings, folder=folder, resume=True)


def test_a_diverging_run_says_where_and_what_to_do_and_leaves_no_model(tmp_path):
    _, record = fit(dataset(), Rule("sgd", 1e6), Settings(dim=8, batch_size=100), folder=tmp_path)
    assert record["stopped"] == "diverged"
    assert "not a finite number in step" in record["error"]
    assert "lr 1e+06: try a smaller learning rate" in record["error"]
    assert record["best_epoch"] is None
    json.dumps(record, allow_nan=False)
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize("validation", [True, False])
@pytest.mark.parametrize("model", ["fm", "deepfm"])
def test_a_finite_loss_far_above_that_of_a_constant_is_divergence(model, validation, tmp_path):
    data, settings = dataset(), Settings(model=model, dim=4, batch_size=100, epochs=2)
    if not validation:
        splits = Splits(data.splits.train, np.arange(0), data.splits.test)
        data = dataclasses.replace(data, splits=splits)
        settings = dataclasses.replace(settings, patience=None)
    _, record = fit(data, Rule("adam", 100.0), settings, folder=tmp_path)
    assert record["stopped"] == "diverged"
    large = (
        r"the loss is [\d.e+]+, more than 10 times the 0.69 of a constant prediction, in step \d+"
    )
    assert re.match(large, record["error"])
    assert record["best_epoch"] is None
    assert record["test_loss"] is None
    assert not (tmp_path / "model.safetensors").exists()


def test_rare_labels_and_a_slow_start_are_no_divergence():
    data = dataset()
    labels = np.zeros_like(data.labels)
    for rows in (data.splits.train, data.splits.validation):
        labels[rows[:2]] = 1  # NE would be over 100 in the first epoch
    _, record = fit(
        dataclasses.replace(data, labels=labels), Rule("sgd", 1e-4), Settings(dim=4, epochs=1)
    )
    assert record["stopped"] == "epochs"
    assert record["epochs"][0]["val_loss"] == pytest.approx(np.log(2), abs=0.01)


@pytest.mark.parametrize("late", [1e9, 60.0])  # not finite, finite
def test_a_run_that_diverges_late_keeps_its_best_epoch(late, tmp_path, monkeypatch):
    two, whole = fit(dataset(), Rule("sgd", 1.0), dataclasses.replace(SMALL, epochs=2))
    monkeypatch.setattr(_Run, "_lr", lambda self, step: 1.0 if step < 48 else late)
    model, record = fit(dataset(), Rule("sgd", 1.0), SMALL, folder=tmp_path)
    assert record["stopped"] == "diverged"
    assert record["best_epoch"] == whole["best_epoch"] == 2
    assert torch.equal(model.tokens.weight, two.tokens.weight)
    assert torch.equal(load_model(tmp_path)[0].tokens.weight, two.tokens.weight)


def test_a_divergence_in_the_last_step_of_an_epoch_is_noticed():
    data = dataset(rows=200)
    settings = Settings(dim=4, batch_size=10_000, epochs=2)
    _, record = fit(data, Rule("sgd", 1e24), settings)
    assert record["stopped"] == "diverged"
    json.dumps(record, allow_nan=False)


def test_ctrl_c_during_the_last_evaluation_is_not_lost(tmp_path, monkeypatch):
    def listener(progress, record):
        if record["stopped"]:
            signal.raise_signal(signal.SIGINT)

    rules = [Rule("sgd", 1.0), Rule("cfsgd", 1.0)]
    with pytest.raises(InterruptedFitError):
        compare(dataset(), rules, SMALL, out=tmp_path, listener=listener)
    assert not (tmp_path / "models" / "cfsgd").exists()
    results = compare(dataset(), rules, SMALL, out=tmp_path, resume=True)
    assert [run["stopped"] for run in results["runs"]] == ["epochs", "epochs"]


def test_checkpoints_come_after_as_many_steps_as_asked(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(_Run, "_save", lambda self: saved.append(self.engine.steps))
    settings = dataclasses.replace(SMALL, epochs=1, checkpoint_steps=10)
    fit(dataset(), Rule("cfsgd", 1.0), settings, folder=tmp_path)
    assert saved == [10, 20, 24]


def test_models_come_back_ready_to_predict(tmp_path):
    settings = dataclasses.replace(SMALL, model="deepfm")
    first, _ = fit(dataset(), Rule("cfsgd", 1.0), settings, folder=tmp_path)
    again, _ = fit(dataset(), Rule("cfsgd", 1.0), settings, folder=tmp_path, resume=True)
    ids = torch.from_numpy(dataset().ids[:100])
    assert not first.training
    assert torch.equal(first(ids), again(ids))


def test_a_folder_that_cannot_be_made_is_named_before_training(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(DataError, match="cannot make the folder"):
            fit(dataset(), Rule("cfsgd", 1.0), SMALL, folder=folder)


def test_a_comparison_starts_all_optimizers_alike_and_writes_after_each(tmp_path):
    results = compare(dataset(), [Rule("sgd", 0.0), Rule("adam", 0.0)], SMALL, out=tmp_path / "out")
    assert results["runs"][0]["epochs"][0]["val_auc"] == results["runs"][1]["epochs"][0]["val_auc"]
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert written == results
    assert [run["optimizer"] for run in written["runs"]] == ["sgd", "adam"]
    for name in ("sgd", "adam"):
        load_model(tmp_path / "out" / "models" / name)
    with pytest.raises(DataError, match="holds results already"):
        compare(dataset(), [Rule("sgd", 1.0)], SMALL, out=tmp_path / "out")


def test_comparing_nothing_is_refused():
    with pytest.raises(DataError, match="no optimizer"):
        compare(dataset(), [])


def test_an_optimizer_named_twice_is_refused():
    with pytest.raises(DataError, match="named once"):
        compare(dataset(), [Rule("sgd", 1.0), Rule("sgd", 2.0)], SMALL)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: {"splits": Splits(d.splits.train[:0], *[d.splits.validation] * 2)}, "0 rows to"),
        (
            lambda d: {"splits": Splits(d.splits.train, d.splits.train[:0], d.splits.test)},
            "0 to val",
        ),
        (lambda d: {"labels": np.ones_like(d.labels)}, "labels of made-up are 1"),
        (lambda d: {"ids": d.ids + np.int32(40)}, "out of range"),
        (lambda d: {"ids": d.ids - np.int32(1)}, "out of range"),
    ],
)
def test_data_that_cannot_be_trained_on_is_refused(change, message):
    data = dataset()
    with pytest.raises(DataError, match=message):
        fit(dataclasses.replace(data, **change(data)), Rule("sgd", 1.0), SMALL)


def test_without_test_rows_the_test_figures_are_missing():
    data = dataset()
    splits = Splits(data.splits.train, data.splits.validation, data.splits.test[:0])
    _, record = fit(dataclasses.replace(data, splits=splits), Rule("cfsgd", 1.0), SMALL)
    assert record["test_auc"] is None
    assert record["test_auc_by_frequency"] == {"head": None, "torso": None, "tail": None}


def test_without_patience_all_epochs_are_taken_and_the_last_is_kept():
    data = dataset()
    empty = data.splits.validation[:0]
    data = dataclasses.replace(data, splits=Splits(data.splits.train, empty, empty))
    settings = Settings(dim=4, epochs=3, patience=None)
    model, record = fit(data, Rule("cfsgd", 1.0), settings)
    assert (record["best_epoch"], record["stopped"]) == (3, "epochs")
    assert [epoch["val_auc"] for epoch in record["epochs"]] == [None] * 3
    losses = [epoch["train_loss"] for epoch in record["epochs"]]
    assert losses == sorted(losses, reverse=True)
    logits = model(torch.from_numpy(data.ids[data.splits.train])).detach().numpy()
    assert cross_entropy(logits, data.labels[data.splits.train]) < losses[-1]


@pytest.mark.parametrize("model", ["fm", "deepfm"])
def test_without_validation_rows_a_divergence_in_the_last_step_is_noticed(model):
    data = dataset(rows=100)
    splits = Splits(np.arange(100), np.arange(0), np.arange(0))
    settings = Settings(model=model, dim=4, epochs=1, patience=None)  # of one step
    _, record = fit(dataclasses.replace(data, splits=splits), Rule("sgd", 1e38), settings)
    assert record["stopped"] == "diverged"


def test_a_weight_counts_as_much_as_it_says():
    data = dataset()
    kept = data.labels[data.splits.train] == 0
    weights = np.where(data.labels == 1, 4.0, 1.0).astype(np.float32)
    settings = Settings(dim=4, epochs=10, patience=None)
    base, _ = fit(data, Rule("sgd", 1.0), settings)
    more, _ = fit(dataclasses.replace(data, weights=weights), Rule("sgd", 1.0), settings)
    ids = torch.from_numpy(data.ids[data.splits.train][kept])
    raised = (more(ids) - base(ids)).mean().item()
    assert raised == pytest.approx(np.log(4), abs=0.25)  # the odds of a positive are fourfold


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "gbm"}, "unknown model 'gbm'; known: fm, deepfm"),
        ({"epochs": 0}, "epochs"),
        ({"dim": 0}, "dim must be"),
        ({"hidden": (16, 0)}, "hidden"),
        ({"batch_size": -1}, "batch_size"),
        ({"lr_decay": "cosine"}, "constant or linear"),
        ({"init_scale": 0.0}, "init_scale"),
        ({"dropout": 1.0}, "dropout"),
        ({"seed": -1}, "seed"),
        ({"checkpoint_steps": 0}, "checkpoint_steps"),
    ],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Settings(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "adamw"}, "known: sgd, fasgd, cfsgd"),
        ({"lr": -1.0}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"weight_decay_power": 2.0}, "weight_decay_power"),
        ({"linear_lr_scale": -1.0}, "linear_lr_scale"),
        ({"max_lr": 0.0}, "max_lr"),
    ],
)
def test_rules_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Rule(**{"optimizer": "cfsgd", "lr": 1.0, **options})
