from __future__ import annotations

import dataclasses
import json
import re
import sys
import warnings

import numpy as np
import pytest
import torch

from freqsgd.errors import DataError, DataWarning
from freqsgd.optimizers import Rule
from freqsgd.words.corpus import Corpus, Paragraphs
from freqsgd.words.training import fit_text
from freqsgd.words.windows import cbow_samples, skipgram_samples, take
from tests.words.made_up import BOTH, corpus, same_weights, small

NOTHING = Paragraphs(np.empty(0, np.int32), np.zeros(1, np.int64), 0)


def slow_losses(model, text, window):
    """The cross-entropy of every pair of a text of full windows: (centre, context, loss)."""
    chances = model(torch.arange(model.words)).log_softmax(1).tolist()
    for start, end in zip(text.starts[:-1], text.starts[1:], strict=True):
        words = text.ids[start:end].tolist()
        for place in range(window, len(words) - window):
            for other in range(place - window, place + window + 1):
                if other != place:
                    yield words[place], words[other], -chances[words[place]][words[other]]


@pytest.fixture
def calls(monkeypatch):
    """What the engine is given in every epoch: order, rates, number."""
    told = []
    module = sys.modules[fit_text.__module__]
    make = module.word_engine

    def spying(*arguments, **compiling):
        engine = make(*arguments, **compiling)
        if compiling:
            return engine
        train = engine.train

        def spy(text, order, lrs, epoch):
            told.append((order.tolist(), lrs.tolist(), epoch))
            return train(text, order, lrs, epoch)

        engine.train = spy
        return engine

    monkeypatch.setattr(module, "word_engine", spying)
    return told


# ---- the loop ------------------------------------------------------------------------------------


def test_losses_are_means_over_samples_by_word_and_by_centre():
    data = corpus(words=1500)
    model, record = fit_text(data, Rule("sgd", 0.0), small(epochs=1))  # 0.0: nothing moves
    epoch = record["epochs"][0]
    for text, told in (
        (data.train, epoch["train_loss"]),
        (data.validation, epoch["val_loss"]),
        (data.test, record["test_loss"]),
    ):
        expected = np.mean([loss for *_, loss in slow_losses(model, text, 2)])
        assert told == pytest.approx(expected, rel=1e-5)
    assert record["best_val_loss"] == epoch["val_loss"]
    covered = np.cumsum(data.counts) - data.counts  # occurrences of words more frequent than each
    head = covered < 0.8 * data.counts.sum()
    for key, place in (("test_loss_by_frequency", 1), ("test_loss_by_centre_frequency", 0)):
        of_head = [s[2] for s in slow_losses(model, data.test, 2) if head[s[place]]]
        assert record[key]["head"] == pytest.approx(np.mean(of_head), rel=1e-5)


@pytest.mark.parametrize(("model", "loss"), BOTH)
def test_training_lowers_the_loss_on_words_it_has_not_seen(model, loss):
    _, record = fit_text(corpus(), Rule("cfsgd"), small(model, loss, epochs=4))
    losses = [epoch["val_loss"] for epoch in record["epochs"]]
    assert losses[-1] < losses[0]
    assert ("test_loss_by_centre_frequency" in record) == (model == "skipgram")


def test_every_epoch_sees_every_paragraph_once_in_an_order_of_its_own(calls):
    data = corpus()
    for optimizer in ("sgd", "adam"):
        fit_text(data, Rule(optimizer), small(epochs=2))
    first, second, again, _ = (order for order, *_ in calls)
    assert sorted(first) == list(range(len(data.train)))
    assert sorted(first) == sorted(second)
    assert first != second
    assert first == again
    assert [epoch for *_, epoch in calls] == [0, 1, 0, 1]


@pytest.mark.parametrize("decay", ["constant", "linear", "epochs"])
def test_the_rate_falls_as_asked(decay, calls):
    _, record = fit_text(corpus(), Rule("sgd", 2.0), small(epochs=4, lr_decay=decay))
    steps = len(calls[0][1])
    for epoch, (_, lrs, _) in enumerate(calls):
        passed = {
            "constant": np.zeros(steps),
            "linear": (epoch + np.arange(steps) / steps) / 4,
            "epochs": np.full(steps, epoch / 4),
        }[decay]
        assert lrs == pytest.approx(2.0 * (1 - passed))
        assert record["epochs"][epoch]["lr"] == lrs[-1]


def test_speed_is_counted_in_words_of_the_raw_text():
    data = corpus()
    assert data.train.raw_words > len(data.train.ids)  # some are rare
    _, record = fit_text(data, Rule("sgd"), small())
    seconds = [epoch["seconds"] for epoch in record["epochs"]]
    for epoch, took in zip(record["epochs"], np.diff([0, *seconds]), strict=True):
        assert epoch["words_per_second"] == pytest.approx(data.train.raw_words / took)
    assert record["words_per_second"] == pytest.approx(3 * data.train.raw_words / seconds[-1])


def test_patience_ends_a_run_and_keeps_the_epoch_of_the_lowest_loss():
    data, settings = corpus(words=1500), small(epochs=40, patience=2, lr_decay="constant")
    model, record = fit_text(data, Rule("adam", 0.1), settings)
    losses = [epoch["val_loss"] for epoch in record["epochs"]]
    assert record["stopped"] == "patience"
    assert record["best_epoch"] == int(np.argmin(losses)) + 1 == len(losses) - 2
    kept = np.mean([loss for *_, loss in slow_losses(model, data.validation, 2)])
    assert kept == pytest.approx(min(losses), rel=1e-5)


@pytest.mark.parametrize(("model", "loss"), BOTH)
def test_one_seed_gives_one_result_and_leaves_the_global_random_state_alone(model, loss):
    before = torch.get_rng_state()
    first, again, other = (
        fit_text(corpus(), Rule("cfsgd"), small(model, loss, epochs=1, seed=seed, subsample=0.01))[
            0
        ]
        for seed in (0, 0, 1)
    )
    assert same_weights(first, again)
    assert not same_weights(first, other)
    assert torch.equal(before, torch.get_rng_state())


def test_without_held_out_text_there_are_no_held_out_losses():
    data = dataclasses.replace(corpus(), validation=NOTHING, test=NOTHING)
    _, record = fit_text(data, Rule("cfsgd"), small())
    assert [epoch["val_loss"] for epoch in record["epochs"]] == [None] * 3
    assert record["best_epoch"] == 3
    assert record["test_loss"] is None
    assert record["test_loss_by_frequency"] == {"head": None, "torso": None, "tail": None}
    with pytest.raises(DataError, match="made-up has no text to validate on, by which patience"):
        fit_text(data, Rule("cfsgd"), small(patience=2))


def test_similarity_is_told_where_its_files_are(tmp_path, monkeypatch):
    data = corpus()
    folder = tmp_path / "word-similarity"
    folder.mkdir()
    pairs = [f"{a}\t{b}\t{score}\n" for score, (a, b) in enumerate(zip(*[iter(data.words)] * 2))]  # noqa: B905
    (folder / "wordsim353.tsv").write_text("".join([*pairs, "king\tqueen\t8\n"]))
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    _, record = fit_text(data, Rule("cfsgd"), small())
    told = record["similarity"]["wordsim353"]
    assert (told["pairs"], told["covered"]) == (len(pairs) + 1, len(pairs))
    assert -1 <= told["spearman"] <= 1
    assert "simlex999" not in record["similarity"]


# ---- rules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "optimizer", "lr", "cap"),
    [
        ("softmax", "sgd", 1.0, None),
        ("softmax", "cfsgd", 1.0, None),
        ("softmax", "fasgd", 1.0, None),
        ("softmax", "adam", 0.025, None),
        ("softmax", "cfadam", 0.025, None),
        ("negative", "sgd", 0.025, None),
        ("negative", "cfadam", 0.001, None),
    ],
)
def test_every_optimizer_has_a_default_rate(loss, optimizer, lr, cap):
    _, record = fit_text(corpus(words=1500), Rule(optimizer), small(loss=loss, epochs=1))
    assert (record["lr"], record["max_lr"]) == (lr, cap)


def test_a_rate_that_is_given_comes_without_the_cap_of_the_default_one():
    data, settings = corpus(words=1500), small(loss="negative", epochs=1)
    default = fit_text(data, Rule("cfsgd"), settings)[1]
    assert default["max_lr"] > default["lr"] > 0
    assert fit_text(data, Rule("cfsgd", 1e-4), settings)[1]["max_lr"] is None
    assert fit_text(data, Rule("cfsgd", max_lr=0.5), settings)[1]["max_lr"] == 0.5


@pytest.mark.parametrize(
    ("rule", "loss", "message"),
    [
        (Rule("adam"), "negative", "adam keeps numbers for every weight.*use sgd, fasgd, cfsgd"),
        (Rule("adagrad", 0.1), "negative", "adagrad keeps numbers.*rowwise-adagrad"),
        (Rule("sgd", weight_decay=0.1), "negative", "weight_decay does not go"),
        (Rule("cfsgd", linear_lr_scale=0.5), "softmax", "linear_lr_scale is for fm"),
        (Rule("cfsgd", count="batch"), "softmax", "count 'batch' is for fm"),
        (Rule("cfsgd", linear_decay_scale=0.5), "negative", "linear_decay_scale is for fm"),
    ],
)
def test_rules_that_word_vectors_cannot_use_are_refused(rule, loss, message):
    with pytest.raises(DataError, match=message):
        fit_text(corpus(words=1500), rule, small(loss=loss))


# ---- bad input -----------------------------------------------------------------------------------


def test_paragraphs_that_are_all_too_short_are_refused_with_what_to_do():
    data = Corpus.of_sentences(["a b c"] * 10, min_count=1, name="short")
    with pytest.raises(DataError, match=r"has the 5 words.*has 3.*windows all"):
        fit_text(data, Rule("sgd"), small())
    _, record = fit_text(data, Rule("sgd"), small(windows="all"))
    assert record["stopped"] == "epochs"
    alone = Corpus.of_sentences([["a"], ["b"]] * 5, min_count=1)
    with pytest.raises(DataError, match=r"has the 2 words.*has 1: try whole sentences on a line$"):
        fit_text(alone, Rule("sgd"), small(windows="all"))
    rare = Corpus.of_sentences([["a", "c"], ["b", "d"]] * 5 + [["a"], ["b"]], min_count=6)
    with pytest.raises(DataError, match=r"has 1 after rare words .*smaller min_count$"):
        fit_text(rare, Rule("sgd"), small(windows="all"))


def test_subsampling_that_leaves_nothing_is_refused():
    data = Corpus.of_sentences(["a b", "b a"] * 10, min_count=1)
    with pytest.raises(DataError, match="no two words together: use a larger subsample"):
        fit_text(data, Rule("sgd"), small(windows="all", subsample=1e-9))


@pytest.mark.parametrize("windows", ["full", "all"])
@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_subsampling_that_leaves_little_is_warned_of(model, windows):
    data = corpus(words=20_000)
    settings = small(model, windows=windows, epochs=1, window=1)
    make = skipgram_samples if model == "skipgram" else cbow_samples
    ids, starts = take(data.train, np.arange(len(data.train)))
    whole = len(make(ids, starts, 1, full=windows == "full"))
    with pytest.warns(DataWarning, match=rf"leaves \d+ of {whole:,} samples .*a larger value"):
        fit_text(data, Rule("sgd"), dataclasses.replace(settings, subsample=5e-6))
    with warnings.catch_warnings(action="error"):
        fit_text(data, Rule("sgd"), dataclasses.replace(settings, subsample=1e-2))


def test_held_out_text_without_a_known_word_is_warned_of():
    empty = Paragraphs(np.empty(0, np.int32), np.zeros(1, np.int64), raw_words=70)
    data = dataclasses.replace(corpus(words=1500), test=empty)
    with pytest.warns(DataWarning, match="none of the 70 words of the test text is in the vocab"):
        _, record = fit_text(data, Rule("sgd"), small(epochs=1))
    assert record["test_loss"] is None


@pytest.mark.parametrize(("model", "loss"), BOTH)
def test_a_window_wider_than_every_paragraph_reaches_its_ends(model, loss):
    data = Corpus.of_sentences(["a b c d e", "c a b"] * 20, min_count=1)
    models, records = zip(
        *(
            fit_text(data, Rule("cfsgd"), small(model, loss, windows="all", window=window))
            for window in (4, 10**9)
        ),
        strict=True,
    )
    assert same_weights(*models)
    assert records[1]["options"]["settings"]["window"] == 10**9


@pytest.mark.parametrize("validation", [True, False])
@pytest.mark.parametrize(("model", "loss"), BOTH)
def test_a_diverging_run_says_so_and_leaves_no_model(model, loss, validation, tmp_path):
    data = corpus(words=1500)
    if not validation:
        data = dataclasses.replace(data, validation=NOTHING)
    settings = small(model, loss, epochs=1, batch_size=1000)  # one step: noticed afterwards
    optimizer = "sgd" if loss == "softmax" else "rowwise-adagrad"
    large = r"is [\d.e+]+, more than 10 times the [\d.]+ of a model that knows nothing,"
    for rate, each, said in (
        (1e30, settings, "is not a finite number"),
        (1e30, small(model, loss), "is not a finite number"),
        (1e4, settings, large),
    ):
        folder = tmp_path / f"{each.batch_size}-{rate}"
        _, record = fit_text(data, Rule(optimizer, rate), each, folder=folder)
        assert record["stopped"] == "diverged"
        told = rf"the loss {said} in step \d \(epoch 1\) at lr [\d.e+]+: try a smaller .*"
        assert re.fullmatch(told, record["error"])
        assert record["test_loss"] is None
        assert record["similarity"] == {}
        json.dumps(record, allow_nan=False)
        assert not (folder / "model.safetensors").exists()
