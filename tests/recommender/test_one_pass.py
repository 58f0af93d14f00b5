"""One pass over a stream, against a loop that has all examples at hand."""

from __future__ import annotations

import json
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from freqsgd.errors import DataError, DivergedError, InterruptedFitError
from freqsgd.optimizers import Rule
from freqsgd.recommender.engine import engine_for, new_model
from freqsgd.recommender.folder import load_model
from freqsgd.recommender.one_pass import fit_stream
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.recommender.training import fit
from freqsgd.runs.metrics import auc, cross_entropy, normalized_entropy
from tests.recommender.made_up import dataset
from tests.recommender.streams import MemoryStream

RULE = Rule("cfsgd", 1.0, max_lr=20.0)
SETTINGS = Settings(dim=4, batch_size=64)
DEEP = Settings(model="deepfm", dim=4, batch_size=64, hidden=(8,))
METRICS = ("loss", "ne", "auc", "calibration")


def scores(logits, labels):
    loss = cross_entropy(logits, labels)
    probabilities = 1 / (1 + np.exp(-logits.astype(np.float64)))
    return {
        "loss": loss,
        "ne": normalized_entropy(loss, labels),
        "auc": auc(logits, labels),
        "calibration": probabilities.sum() / labels.sum(),
    }


def agree(found, expected, prefix=""):
    for name in METRICS:
        assert found[prefix + name] == pytest.approx(expected[name], abs=2e-4), name


def slow(stream, rule, settings, days):
    """Predict, then learn, batch after batch."""
    model = new_model(stream.fields, settings)
    engine = engine_for(model, rule, seed=settings.seed, batch_size=settings.batch_size)
    ids, labels, of_day = stream.whole(0, days)
    logits = []
    for first in range(0, len(labels), settings.batch_size):
        part = slice(first, first + settings.batch_size)
        some = np.ascontiguousarray(ids[part])
        logits.append(engine.predict(some))
        rows = np.arange(len(some))
        list(engine.train(some, labels[part].copy(), rows, np.array([rule.lr])))
    return model.eval(), engine, np.concatenate(logits), labels, of_day


def test_rates_of_cfsgd_are_capped_unless_a_cap_is_given():
    stream, batch = MemoryStream(), SETTINGS.batch_size
    asked = replace(RULE, max_lr=None)
    model, record = fit_stream(stream, asked, SETTINGS)
    assert record["max_lr"] == pytest.approx(0.03 * batch)
    expected = slow(stream, replace(RULE, max_lr=record["max_lr"]), SETTINGS, 2)[0]
    assert torch.equal(model.tokens.weight, expected.tokens.weight)
    assert fit_stream(stream, RULE, SETTINGS)[1]["max_lr"] == 20.0
    assert fit_stream(stream, Rule("sgd", 1.0), SETTINGS)[1]["max_lr"] is None


@pytest.mark.parametrize("settings", [SETTINGS, DEEP], ids=["fm", "deepfm"])
@pytest.mark.parametrize("cap", [None, 20.0])
def test_where_batches_are_counted_there_is_no_cap_that_was_not_given(settings, cap):
    rule = Rule("cfsgd", 8.0, count="batch", dense_lr=0.5, max_lr=cap)
    model, record = fit_stream(MemoryStream(), rule, settings)
    assert record["max_lr"] == cap
    expected = slow(MemoryStream(), rule, settings, 2)[0]
    for name, value in expected.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)


@pytest.mark.parametrize("settings", [SETTINGS, DEEP], ids=["fm", "deepfm"])
@pytest.mark.parametrize("chunk", [1000, 37])
def test_every_example_is_scored_and_then_learned(settings, chunk):
    stream = MemoryStream(chunk=chunk)
    model, record = fit_stream(stream, RULE, settings, Pass(window=300))
    expected, engine, logits, labels, days = slow(stream, RULE, settings, 2)
    for name, value in expected.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)
    agree(record, scores(logits, labels), "train_")
    assert record["examples"] == len(labels) == 1600
    ends = [320, 640, 960, 1216, 1536, 1600]  # the first batches to reach 300, 600, ...
    assert [window["examples"] for window in record["windows"]] == ends
    for first, window in zip([0, *ends], record["windows"], strict=False):
        last = window["examples"]
        agree(window, scores(logits[first:last], labels[first:last]))
        until = scores(logits[:last], labels[:last])
        del until["loss"]
        for name, value in until.items():
            assert window[f"lifetime_{name}"] == pytest.approx(value, abs=2e-4)
    assert [day["day"] for day in record["days"]] == ["day-0", "day-1"]
    for number, day in enumerate(record["days"]):
        assert day["examples"] == (days == number).sum()
        agree(day, scores(logits[days == number], labels[days == number]))
    ids, labels, _ = stream.whole(2, 3)
    agree(record, scores(engine.predict(ids), labels), "test_")
    assert record["test_rows"] == 650
    assert record["stopped"] == "end"


def test_the_record_is_one_of_results_json():
    _, record = fit_stream(MemoryStream(), RULE, SETTINGS)
    json.dumps(record, allow_nan=False)
    assert record["peak_memory_bytes"] > record["parameter_bytes"] == 4 * (100 * 5 + 1)
    assert record["state_bytes"] == 400
    assert record["samples_per_second"] == record["examples"] / record["seconds"]
    assert record["options"]["pass"]["evaluation_days"] == 1
    assert (record["dropped"], record["skipped"]) == (0, [])


def test_listeners_are_told_after_each_batch():
    told = []

    def listen(progress, record):
        told.append((progress.evaluating, progress.examples, progress.done, progress.ne))

    _, record = fit_stream(MemoryStream(), RULE, SETTINGS, listener=listen)
    learning = [line for line in told if not line[0]]
    assert [line[1] for line in learning] == [*range(64, 1600, 64), 1600]
    assert learning[-1][2] == told[-1][2] == 1.0
    assert learning[-1][3] == pytest.approx(record["train_ne"], rel=1e-12)
    assert len(told) - len(learning) == 11  # batches of the evaluation


def test_one_day_is_learned_and_nothing_evaluated():
    _, record = fit_stream(MemoryStream(rows=(500,)), RULE, SETTINGS)
    assert record["examples"] == 500
    assert [record[f"test_{name}"] for name in (*METRICS, "rows")] == [None] * 5


def test_an_evaluation_day_of_one_class_has_no_ne_and_no_auc():
    stream = MemoryStream()
    for _, labels in stream.files[-2:]:
        labels[:] = 0
    _, record = fit_stream(stream, RULE, SETTINGS)
    assert record["test_loss"] > 0
    assert [record[f"test_{name}"] for name in METRICS[1:]] == [None] * 3


def test_several_days_can_be_kept_for_evaluation():
    _, record = fit_stream(MemoryStream(), RULE, SETTINGS, Pass(evaluation_days=2))
    assert (record["examples"], record["test_rows"]) == (700, 1550)
    with pytest.raises(DataError, match="has 3 days: with 3 for evaluation there is none"):
        fit_stream(MemoryStream(), RULE, SETTINGS, Pass(evaluation_days=3))


@pytest.mark.parametrize(
    ("rule", "settings", "said"),
    [
        (Rule("cfsgd"), SETTINGS, "needs a learning rate for cfsgd"),
        (Rule("fasgd", 1.0), SETTINGS, "use cfsgd"),
        (RULE, replace(SETTINGS, lr_decay="linear"), "learning rate is constant"),
    ],
)
def test_what_one_pass_cannot_do_is_refused(rule, settings, said):
    with pytest.raises(DataError, match=said):
        fit_stream(MemoryStream(), rule, settings)


def test_a_plan_beyond_memory_is_refused_before_anything_is_built():
    stream = MemoryStream()
    stream.fields = tuple(replace(field, size=10**12) for field in stream.fields)
    with pytest.raises(DataError, match=r"cfsgd does not fit: 2,000,000,000,000 rows x 5 weights"):
        fit_stream(stream, RULE, SETTINGS)


def test_a_run_that_diverges_says_so_and_is_not_taken_again(tmp_path):
    rule = Rule("sgd", 1e30)
    _, record = fit_stream(MemoryStream(), rule, SETTINGS, folder=tmp_path / "run")
    assert record["stopped"] == "diverged"
    assert "at lr 1e+30: try a smaller learning rate" in record["error"]
    assert record["test_loss"] is None
    json.dumps(record, allow_nan=False)
    assert not (tmp_path / "run" / "model.safetensors").exists()
    again = fit_stream(MemoryStream(), rule, SETTINGS, folder=tmp_path / "run", resume=True)[1]
    assert again == record


@pytest.mark.parametrize("lr", [1e30, 1e38])  # squares overflow, or the weights themselves
def test_a_model_that_breaks_in_its_last_step_has_diverged(lr, tmp_path):
    stream = MemoryStream(rows=(64,))
    _, record = fit_stream(stream, Rule("sgd", lr), SETTINGS, folder=tmp_path)
    assert record["stopped"] == "diverged"
    assert "in step 0 at lr" in record["error"]
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize("rows", [(700, 900, 650), (64,)])  # noticed in training, or afterwards
@pytest.mark.parametrize("settings", [SETTINGS, DEEP])
def test_a_finite_loss_far_above_that_of_a_constant_is_divergence(settings, rows, tmp_path):
    stream = MemoryStream(rows=(*rows, 100))
    _, record = fit_stream(stream, Rule("adam", 100.0), settings, folder=tmp_path)
    assert record["stopped"] == "diverged"
    assert "more than 10 times the 0." in record["error"]
    assert "of a constant prediction, in step" in record["error"]
    assert record["test_loss"] is None
    assert not (tmp_path / "model.safetensors").exists()


def test_rare_labels_and_a_slow_start_are_no_divergence():
    stream = MemoryStream(rows=(900, 300))
    for _, labels in stream.files:
        labels[:] = 0
        labels[5] = 1
    _, record = fit_stream(stream, Rule("sgd", 1e-4), SETTINGS)
    assert record["stopped"] == "end"
    assert record["train_ne"] > 10


def without_time(record):
    """What does not depend on when and where a run was."""
    kept = {k: v for k, v in record.items() if k not in TIMES}
    kept["windows"] = [{k: v for k, v in w.items() if k != "seconds"} for w in record["windows"]]
    kept["options"] = {k: v for k, v in record["options"].items() if k != "pass"}
    return kept


TIMES = ("seconds", "samples_per_second", "peak_memory_bytes")


def interrupt_at(batch):
    told = []

    def listen(progress, record):
        told.append(0)
        if len(told) == batch:
            raise KeyboardInterrupt

    return listen


RULES = {
    "cfsgd": Rule("cfsgd", 1.0, weight_decay=1e-4),
    "fading": Rule("cfsgd", 1.0, halflife=2.5),
    "batches": Rule("cfsgd", 8.0, count="batch", dense_lr=0.5),
    "adam": Rule("adam", 0.01, weight_decay=1e-4),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("settings", [SETTINGS, DEEP], ids=["fm", "deepfm"])
@pytest.mark.parametrize("batch", [3, 17, 30])  # in two files, and in the evaluation
def test_a_run_that_was_broken_off_goes_on_to_the_same_bits(rule, settings, batch, tmp_path):
    whole, expected = fit_stream(MemoryStream(), rule, settings, Pass(window=300))
    folder, plan = tmp_path / "run", Pass(window=300, checkpoint_examples=128)
    with pytest.raises(KeyboardInterrupt):
        fit_stream(
            MemoryStream(), rule, settings, plan, folder=folder, listener=interrupt_at(batch)
        )
    assert (folder / "checkpoint.safetensors").exists()
    went_on = []

    def listen(progress, record):
        went_on.append(progress.examples)

    model, record = fit_stream(
        MemoryStream(chunk=99), rule, settings, plan, folder=folder, resume=True, listener=listen
    )
    assert went_on[0] == min(batch // 2 * 2 * 64 + 64, 1600)
    assert without_time(record) == without_time(expected)
    for ours in (model, load_model(folder)[0]):
        for name, value in whole.state_dict().items():
            assert torch.equal(ours.state_dict()[name], value)
    assert sorted(path.name for path in folder.iterdir()) == ["model.safetensors"]
    again = fit_stream(MemoryStream(), rule, settings, plan, folder=folder, resume=True)[1]
    assert again == record


@pytest.mark.parametrize("batch", [7, 30])
def test_after_ctrl_c_it_goes_on_from_there(batch, tmp_path):
    told = []

    def listen(progress, record):
        told.append(progress.examples)
        if len(told) == batch:
            signal.raise_signal(signal.SIGINT)

    folder = tmp_path / "run"
    with pytest.raises(InterruptedFitError):
        fit_stream(MemoryStream(), RULE, SETTINGS, folder=folder, listener=listen)
    assert len(told) == batch
    went_on = []
    model, record = fit_stream(
        MemoryStream(),
        RULE,
        SETTINGS,
        folder=folder,
        resume=True,
        listener=lambda progress, record: went_on.append(progress.evaluating),
    )
    assert went_on.count(False) == max(0, 25 - batch)
    assert went_on.count(True) == 11
    whole, expected = fit_stream(MemoryStream(), RULE, SETTINGS)
    assert without_time(record) == without_time(expected)
    assert torch.equal(model.tokens.weight, whole.tokens.weight)


class Damaged(MemoryStream):
    """The first file of each day is left out half-way, after three malformed rows of it."""

    def chunks(self, first, last, start=None):
        dropped = 0 if start is None else start.dropped
        for chunk in super().chunks(first, last, start):
            if chunk.file % 2 == 0 and chunk.numbers[0] > 100:
                said = f"file {chunk.file} is damaged"
                if said not in self.skipped:
                    self.skipped.append(said)
                    dropped += 3
            else:
                yield replace(chunk, dropped=dropped)


@pytest.mark.parametrize("batch", [3, 10, 20, 24])
def test_what_was_left_out_is_told_once_also_after_a_resume(batch, tmp_path):
    plan = Pass(checkpoint_examples=64)
    options = {"folder": tmp_path / "run", "listener": interrupt_at(batch)}
    with pytest.raises(KeyboardInterrupt):
        fit_stream(Damaged(), RULE, SETTINGS, plan, **options)
    _, record = fit_stream(Damaged(), RULE, SETTINGS, plan, folder=tmp_path / "run", resume=True)
    assert record["skipped"] == [f"file {n} is damaged" for n in (0, 2, 4)]
    assert record["dropped"] == 9


def test_a_run_interrupted_after_its_last_batch_ends_at_once(tmp_path):
    def listen(progress, record):
        if progress.done == 1.0:
            signal.raise_signal(signal.SIGINT)

    stream, folder = MemoryStream(rows=(500,)), tmp_path / "run"
    with pytest.raises(InterruptedFitError):
        fit_stream(stream, RULE, SETTINGS, folder=folder, listener=listen)
    model, record = fit_stream(stream, RULE, SETTINGS, folder=folder, resume=True)
    whole, expected = fit_stream(stream, RULE, SETTINGS)
    assert without_time(record) == without_time(expected)
    assert torch.equal(model.tokens.weight, whole.tokens.weight)


@pytest.fixture
def broken_off(tmp_path):
    folder = tmp_path / "run"
    plan = Pass(checkpoint_examples=128)
    with pytest.raises(KeyboardInterrupt):
        fit_stream(MemoryStream(), RULE, SETTINGS, plan, folder=folder, listener=interrupt_at(9))
    return folder


@pytest.mark.parametrize(
    ("stream", "rule", "settings", "plan", "said"),
    [
        (MemoryStream(seed=1), RULE, SETTINGS, None, r"the data has changed .*\(data "),
        (
            MemoryStream(),
            replace(RULE, lr=0.5),
            SETTINGS,
            None,
            "written with lr 1.0, now lr is 0.5",
        ),
        (MemoryStream(), RULE, replace(SETTINGS, dim=5), None, "dim 4, now dim is 5"),
        (MemoryStream(), RULE, SETTINGS, Pass(window=7), "window 100000, now window is 7"),
        (MemoryStream(), RULE, SETTINGS, Pass(evaluation_days=2), "evaluation_days 1, now"),
    ],
)
def test_other_data_or_options_are_refused(broken_off, stream, rule, settings, plan, said):
    with pytest.raises(DataError, match=said):
        fit_stream(stream, rule, settings, plan, folder=broken_off, resume=True)
    with pytest.raises(DataError, match=r"holds a checkpoint.safetensors already"):
        fit_stream(stream, rule, settings, plan, folder=broken_off)


def test_other_checkpoints_and_epochs_may_be_asked_for(broken_off):
    settings = replace(SETTINGS, epochs=7, patience=None)
    plan = Pass(checkpoint_examples=500)
    _, record = fit_stream(MemoryStream(), RULE, settings, plan, folder=broken_off, resume=True)
    assert record["stopped"] == "end"


@pytest.mark.parametrize("change", ["cut", "bit"])
def test_a_damaged_checkpoint_is_refused(broken_off, change):
    path = broken_off / "checkpoint.safetensors"
    content = bytearray(path.read_bytes())
    if change == "cut":
        del content[-1:]
    else:
        content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"checkpoint.safetensors (is damaged|was changed)"):
        fit_stream(MemoryStream(), RULE, SETTINGS, folder=broken_off, resume=True)


def test_ctrl_c_is_not_lost_where_a_run_diverges(monkeypatch, tmp_path):
    def diverge(*_args, **_options):
        signal.raise_signal(signal.SIGINT)
        raise DivergedError(0)

    monkeypatch.setattr("freqsgd.recommender.engine.Engine.train", diverge)
    with pytest.raises(InterruptedFitError):
        fit_stream(MemoryStream(), RULE, SETTINGS, folder=tmp_path / "stream")
    with pytest.raises(InterruptedFitError):
        fit(dataset(), RULE, Settings(dim=2), folder=tmp_path / "epochs")
    record = fit_stream(MemoryStream(), RULE, SETTINGS, folder=tmp_path / "stream", resume=True)[1]
    assert record["stopped"] == "diverged"
