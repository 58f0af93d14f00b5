"""Folders of word models: interrupted, killed, resumed, compared."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time

import numpy as np
import pytest

from freqsgd.compare import compare
from freqsgd.errors import DataError, InterruptedFitError
from freqsgd.optimizers import Rule
from freqsgd.recommender.settings import Settings
from freqsgd.words.folder import load_words
from freqsgd.words.training import fit_text
from tests.forks import fork
from tests.words.made_up import BOTH, corpus, interrupt_at, same_weights, small


def slow_steps(model, loss):
    return small(model, loss, batch_size=10, checkpoint_steps=1, subsample=0.02)


def tell(pipe, model, loss, folder):
    def listener(progress, record):
        pipe.send((progress.epoch, progress.step))

    settings = slow_steps(model, loss)
    fit_text(corpus(), Rule("cfsgd"), settings, folder=folder, threads=1, listener=listener)


@pytest.mark.parametrize(("model", "loss"), [("skipgram", "softmax"), ("cbow", "negative")])
def test_killed_in_an_epoch_and_resumed_gives_the_bits_of_a_whole_run(model, loss, tmp_path):
    rule, settings, folder = Rule("cfsgd"), slow_steps(model, loss), tmp_path / "run"
    whole, record = fit_text(corpus(), rule, settings, threads=1)
    child, pipe = fork(tell, model, loss, folder)
    for _ in range(35):
        epoch, step = pipe.recv()
    time.sleep(0.002)  # into the middle of a step or of a checkpoint
    child.kill()
    child.join()
    pipe.close()
    assert (epoch, step > 0) == (1, True)
    assert (folder / "checkpoint.safetensors").exists()
    assert not (folder / "model.safetensors").exists()
    resumed, told = fit_text(corpus(), rule, settings, folder=folder, resume=True, threads=1)
    assert same_weights(resumed, whole)
    assert same_weights(load_words(folder)[0], whole)
    for key in ("train_loss", "val_loss"):
        assert [e[key] for e in told["epochs"]] == [e[key] for e in record["epochs"]]
    assert told["test_loss"] == record["test_loss"]


@pytest.mark.parametrize(("model", "loss"), BOTH)
@pytest.mark.parametrize("optimizer", ["cfsgd", "cfadam", "rowwise-adagrad"])
def test_ctrl_c_saves_and_resuming_gives_the_bits_of_an_uninterrupted_run(
    optimizer, model, loss, tmp_path
):
    data, rule = corpus(), Rule(optimizer)
    settings = small(model, loss, checkpoint_steps=2, subsample=0.02)
    whole, record = fit_text(data, rule, settings)
    with pytest.raises(InterruptedFitError):
        fit_text(data, rule, settings, folder=tmp_path, listener=interrupt_at(3))
    resumed, again = fit_text(data, rule, settings, folder=tmp_path, resume=True)
    assert same_weights(resumed, whole)
    timings = ("seconds", "words_per_second")
    for a, b in zip(again["epochs"], record["epochs"], strict=True):
        assert {k: v for k, v in a.items() if k not in timings} == {
            k: v for k, v in b.items() if k not in timings
        }
    assert {k: v for k, v in again.items() if "test" in k} == {
        k: v for k, v in record.items() if "test" in k
    }


def test_the_folder_of_a_finished_run_holds_the_model_and_is_not_trained_again(tmp_path):
    data = corpus()
    model, record = fit_text(data, Rule("cfsgd"), small(), folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    loaded, words, counts, description = load_words(tmp_path)
    assert same_weights(model, loaded)
    assert words == list(data.words)
    assert counts.tolist() == data.counts.tolist()
    assert description["record"] == record
    again, told = fit_text(data, Rule("cfsgd"), small(), folder=tmp_path, resume=True)
    assert told == record
    assert same_weights(model, again)
    with pytest.raises(DataError, match=r"holds a model\.safetensors already"):
        fit_text(data, Rule("cfsgd"), small(), folder=tmp_path)


@pytest.mark.parametrize(
    ("rule", "options", "other", "message"),
    [
        (Rule("cfsgd", 0.5), {}, {}, "lr None, now lr is 0.5"),
        (Rule("sgd", 1.0), {}, {}, "optimizer cfsgd, now optimizer is sgd"),
        (Rule("cfsgd"), {"window": 3}, {}, "window 2, now window is 3"),
        (Rule("cfsgd"), {"model": "cbow"}, {}, "model skipgram, now model is cbow"),
        (Rule("cfsgd"), {"max_norm": 1.0}, {}, "max_norm None, now max_norm is 1.0"),
        (Rule("cfsgd", 0.5), {}, {"seed": 1}, r"the data has changed .*words \d+ then"),
    ],
)
def test_resuming_with_other_options_or_text_is_refused(rule, options, other, message, tmp_path):
    for folder, listener in ((tmp_path / "a", None), (tmp_path / "b", interrupt_at(2))):
        with contextlib.suppress(InterruptedFitError):
            fit_text(corpus(), Rule("cfsgd"), small(), folder=folder, listener=listener)
        with pytest.raises(DataError, match=f"cannot resume.*{message}"):
            fit_text(corpus(**other), rule, small(**options), folder=folder, resume=True)


def test_a_text_of_the_same_size_with_two_words_swapped_is_another_text(tmp_path):
    data = corpus()
    with pytest.raises(InterruptedFitError):
        fit_text(data, Rule("cfsgd"), small(), folder=tmp_path, listener=interrupt_at(2))
    ids = data.train.ids.copy()
    other = int(np.argmax(ids != ids[0]))
    ids[[0, other]] = ids[[other, 0]]
    changed = dataclasses.replace(data, train=dataclasses.replace(data.train, ids=ids))
    with pytest.raises(DataError, match="the data has changed since"):
        fit_text(changed, Rule("cfsgd"), small(), folder=tmp_path, resume=True)


def test_softmax_is_resumed_with_as_many_threads_and_negative_sampling_with_any(tmp_path):
    data = corpus(words=1500)
    for loss in ("softmax", "negative"):
        options = {"folder": tmp_path / loss, "listener": interrupt_at(1)}
        with pytest.raises(InterruptedFitError):
            fit_text(data, Rule("cfsgd"), small(loss=loss), threads=1, **options)
    with pytest.raises(DataError, match="written with threads 1, now threads is 2"):
        fit_text(data, Rule("cfsgd"), small(), threads=2, folder=tmp_path / "softmax", resume=True)
    settings = small(loss="negative")
    resumed, _ = fit_text(
        data, Rule("cfsgd"), settings, threads=2, folder=tmp_path / "negative", resume=True
    )
    assert same_weights(resumed, fit_text(data, Rule("cfsgd"), settings, threads=1)[0])


def test_a_comparison_describes_text_and_model_and_goes_on_where_it_was(tmp_path):
    data, rules = corpus(), [Rule("sgd"), Rule("cfsgd"), Rule("adam")]

    def listener(progress, record):
        if record["optimizer"] == "cfsgd":
            interrupt_at(2)(progress, record)

    with pytest.raises(InterruptedFitError):
        compare(data, rules, small(), out=tmp_path, listener=listener)
    assert len(json.loads((tmp_path / "results.json").read_text())["runs"]) == 1
    trained = []
    results = compare(
        data, rules, small(), out=tmp_path, resume=True,
        listener=lambda progress, record: trained.append((record["optimizer"], progress.epoch)),
    )  # fmt: skip
    assert trained[0] == ("cfsgd", 1)  # sgd is done, and so is its first epoch
    assert json.loads((tmp_path / "results.json").read_text()) == results
    assert results["dataset"] == {
        "name": "made-up",
        "kind": "text",
        "tokens": len(data.words),
        "words": len(data.train.ids),
        "raw_words": data.train.raw_words,
        "paragraphs": len(data.train),
    }
    assert results["splits"]["test"] == len(data.test.ids)
    assert results["model"] == {
        "name": "skipgram", "loss": "softmax", "dim": 6, "window": 2, "hidden": []
    }  # fmt: skip
    alone = fit_text(data, Rule("adam"), small())[1]
    assert results["runs"][2]["test_loss"] == alone["test_loss"]


def test_settings_of_recommenders_do_not_go_with_text():
    with pytest.raises(TypeError, match="a Corpus with TextSettings"):
        compare(corpus(words=1500), [Rule("sgd")], Settings())
