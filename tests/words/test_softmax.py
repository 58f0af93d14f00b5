from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from freqsgd.errors import DataError, DivergedError
from freqsgd.nn import CBOW, SkipGram
from freqsgd.optimizers import OPTIMIZERS, Rule
from freqsgd.words.settings import TextSettings
from freqsgd.words.softmax import SoftmaxEngine
from tests.words.slow import SlowWords
from tests.words.test_windows import random_paragraphs, slow_windows, text_of

KINDS = {"skipgram": SkipGram, "cbow": CBOW}
NAMES = [name for name, facts in OPTIMIZERS.items() if facts.softmax is not None]
LR = {"sgd": 1.0, "fasgd": 1.0, "cfsgd": 1.0}  # the others: 0.05
WORDS, DIM, WINDOW, BATCH = 8, 5, 2, 4
FACTORS = np.array([0.5, 0.2, 0.1])  # the learning rate changes from step to step

PARAGRAPHS = [*random_paragraphs()[:7], [3], [6], [], [0]]  # the last batch has no samples
TEXT = text_of(*PARAGRAPHS)
COUNTS = np.bincount(TEXT.ids, minlength=WORDS)
ORDER = np.array([2, 0, 1, 6, 5, 4, 3, 7, 8, 9, 10])


def settings_of(model, **options):
    return TextSettings(
        model=model, loss="softmax", dim=DIM, window=WINDOW, batch_size=BATCH, **options
    )


def model_of(name, **options):
    torch.manual_seed(3)
    return KINDS[name](WORDS, DIM, **options)


def rule_of(name, **options):
    return Rule(name, LR.get(name, 0.05), **options)


def samples_of(name, paragraphs, full):
    """What predicts which word, one sample at a time."""
    for word, around in slow_windows(paragraphs, WINDOW, full):
        if name == "cbow":
            yield torch.tensor([around]), word
        else:
            yield from ((torch.tensor([word]), k) for k in around if k >= 0)


def train(engine, passes=2):
    lrs = engine.rule.lr * FACTORS
    return np.concatenate(
        [part for epoch in range(passes) for part in engine.train(TEXT, ORDER, lrs, epoch)]
    )


def slow_train(slow, name, full, passes=2):
    for _ in range(passes):
        for number, factor in enumerate(FACTORS):
            batch = [PARAGRAPHS[k] for k in ORDER[number * BATCH : (number + 1) * BATCH]]
            samples = list(samples_of(name, batch, full))
            yield [slow.step(samples, slow.rule.lr * factor) if samples else 0.0, len(samples)]


def assert_same(model, other):
    for (key, ours), theirs in zip(
        model.state_dict().items(), other.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=2e-6, msg=key)


@pytest.mark.parametrize("options", [{}, {"max_norm": 0.9}], ids=["free", "max_norm"])
@pytest.mark.parametrize("windows", ["full", "all"])
@pytest.mark.parametrize("model_name", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_the_engine_equals_training_sample_by_sample(name, model_name, windows, options):
    model, rule = model_of(model_name, **options), rule_of(name)
    p = np.maximum(COUNTS, 1) / COUNTS.sum()
    slow = SlowWords(model, rule, frequencies=(p * (4 if model_name == "cbow" else 1), p))
    expected = list(slow_train(slow, model_name, windows == "full"))
    engine = SoftmaxEngine(model, rule, settings_of(model_name, windows=windows, **options), COUNTS)
    found = train(engine)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert_same(model, slow.model)
    assert engine.steps == 6
    assert engine.samples == slow.samples == sum(number for _, number in expected)
    if rule.counts:
        for side, table in enumerate(("input.weight", "output.weight")):
            np.testing.assert_array_equal(engine.state[f"{table}.counts"], slow.counts[side])
        np.testing.assert_array_equal(engine.state["output.bias.counts"], slow.counts[1])


@pytest.mark.parametrize("model_name", KINDS)
@pytest.mark.parametrize("name", [name for name in NAMES if OPTIMIZERS[name].word_decay])
def test_weight_decay_and_the_cap_equal_training_sample_by_sample(name, model_name):
    model = model_of(model_name)
    rule = rule_of(name, weight_decay=0.05, weight_decay_power=0.5, max_lr=1.5)
    p = np.maximum(COUNTS, 1) / COUNTS.sum()
    slow = SlowWords(model, rule, frequencies=(p * (4 if model_name == "cbow" else 1), p))
    expected = list(slow_train(slow, model_name, True))
    found = train(SoftmaxEngine(model, rule, settings_of(model_name), COUNTS))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert_same(model, slow.model)


@pytest.mark.parametrize("model_name", KINDS)
def test_pieces_of_logits_add_up_to_the_whole(model_name, monkeypatch):
    whole, parts = model_of(model_name), model_of(model_name)
    train(SoftmaxEngine(whole, rule_of("cfsgd"), settings_of(model_name), COUNTS))
    monkeypatch.setattr("freqsgd.words.softmax._PIECE", 1)
    monkeypatch.setattr("freqsgd.words.softmax._FEWEST", 3)
    engine = SoftmaxEngine(parts, rule_of("cfsgd"), settings_of(model_name), COUNTS)
    train(engine)
    for ours, theirs in zip(parts.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("model_name", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_saved_state_continues_to_the_same_bits(name, model_name):
    settings = settings_of(model_name, max_norm=0.9, subsample=0.02)
    lrs = rule_of(name).lr * FACTORS

    def engine_of(model):
        return SoftmaxEngine(model, rule_of(name), settings, COUNTS, threads=1)

    model = model_of(model_name, max_norm=0.9)
    through = engine_of(model)
    for epoch in range(2):
        list(through.train(TEXT, ORDER, lrs, epoch))

    first = engine_of(model_of(model_name, max_norm=0.9))
    list(first.train(TEXT, ORDER, lrs, 0))
    list(first.train(TEXT, ORDER[:BATCH], lrs[:1], 1))
    first.evaluate(TEXT)
    saved = {key: value.clone() for key, value in first.state.items()}
    second = engine_of(copy.deepcopy(first.model))
    second.load_state(saved, first.samples, first.steps)
    list(second.train(TEXT, ORDER[BATCH:], lrs[1:], 1))

    assert (second.samples, second.steps) == (through.samples, through.steps)
    assert second.state.keys() == through.state.keys()
    for key, value in through.state.items():
        assert torch.equal(second.state[key], value), key
    for ours, theirs in zip(second.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_subsampling_draws_anew_in_every_step_and_epoch():
    engine = SoftmaxEngine(
        model_of("skipgram"),
        Rule("sgd", 0.0),
        settings_of("skipgram", windows="all", subsample=0.02),
        COUNTS,
    )
    found = train(engine, passes=4)[:, 1].reshape(4, -1)
    without = SoftmaxEngine(
        model_of("skipgram"), Rule("sgd", 0.0), settings_of("skipgram", windows="all"), COUNTS
    )
    assert (found.sum(1) < train(without, passes=1)[:, 1].sum()).all()
    assert len({tuple(epoch) for epoch in found.tolist()}) > 1


@pytest.mark.parametrize("max_norm", [None, 0.5])
@pytest.mark.parametrize("windows", ["full", "all"])
@pytest.mark.parametrize("model_name", KINDS)
def test_evaluation_adds_losses_up_by_word(model_name, windows, max_norm, monkeypatch):
    monkeypatch.setattr("freqsgd.words.engine._NUMBERS", 200)
    model = model_of(model_name, max_norm=max_norm)
    before = model.input.weight.detach().clone()
    settings = settings_of(model_name, windows=windows, max_norm=max_norm, subsample=0.01)
    losses = SoftmaxEngine(model, rule_of("sgd"), settings, COUNTS).evaluate(TEXT)
    assert torch.equal(model.input.weight, before)
    loss, samples = np.zeros((2, WORDS)), np.zeros((2, WORDS))
    for inputs, target in samples_of(model_name, PARAGRAPHS, windows == "full"):
        value = cross_entropy(model(inputs), torch.tensor([target])).item()
        for k, word in enumerate((target, int(inputs.reshape(-1)[0]))):
            loss[k, word] += value
            samples[k, word] += 1
    rows = 2 if model_name == "skipgram" else 1
    np.testing.assert_allclose(losses.loss, loss[:rows], rtol=1e-5)
    np.testing.assert_array_equal(losses.samples, samples[:rows])
    assert losses.mean == pytest.approx(loss[0].sum() / samples[0].sum(), rel=1e-5)


@pytest.mark.parametrize("model_name", KINDS)
def test_evaluating_no_samples_gives_no_mean(model_name):
    engine = SoftmaxEngine(model_of(model_name), rule_of("sgd"), settings_of(model_name), COUNTS)
    assert engine.evaluate(text_of()).mean is None
    assert engine.evaluate(text_of([1, 2], [])).mean is None


@pytest.mark.parametrize("model_name", KINDS)
def test_losses_of_certain_words_are_exact(model_name):
    model = model_of(model_name)
    model.output.bias.data[:] = torch.linspace(-300.0, 300.0, WORDS)
    losses = SoftmaxEngine(model, rule_of("sgd"), settings_of(model_name), COUNTS).evaluate(TEXT)
    double = copy.deepcopy(model).double()
    expected = [
        cross_entropy(double(inputs), torch.tensor([target])).item()
        for inputs, target in samples_of(model_name, PARAGRAPHS, True)
    ]
    assert losses.mean == pytest.approx(np.mean(expected), rel=1e-6)


@pytest.mark.parametrize("model_name", KINDS)
def test_a_loss_that_is_not_finite_stops_before_the_step_is_taken(model_name):
    model = model_of(model_name)
    model.output.weight.data[2, 1] = float("inf")
    before = [p.detach().clone() for p in model.parameters()]
    engine = SoftmaxEngine(model, rule_of("cfsgd"), settings_of(model_name), COUNTS)
    with pytest.raises(DivergedError, match="step 0"):
        train(engine)
    for ours, theirs in zip(model.parameters(), before, strict=True):
        assert torch.equal(ours, theirs)
    assert not engine.state["input.weight.counts"].any()


@pytest.mark.parametrize("name", NAMES)
def test_state_is_as_large_as_the_rule_says(name):
    engine = SoftmaxEngine(model_of("cbow"), rule_of(name), settings_of("cbow"), COUNTS)
    train(engine)
    rows, weights = 3 * WORDS, (2 * DIM + 1) * WORDS
    columns = 2 * (2 * DIM + 1)  # of 8 bytes each; CFAdam keeps three numbers more a table
    expected = {
        "sgd": 0, "fasgd": rows, "cfsgd": rows, "rowwise-adagrad": rows,
        "cfadam": rows + columns + 2 * 3 * 2,
        "adagrad": weights, "adam": 2 * weights,
    }  # fmt: skip
    assert 0 <= engine.state_bytes - 4 * expected[name] <= 48  # a few numbers for all rows together


def test_threads_are_torchs_for_the_time_of_a_step_only():
    before = torch.get_num_threads()
    engine = SoftmaxEngine(
        model_of("cbow"), rule_of("sgd"), settings_of("cbow"), COUNTS, threads=before + 1
    )
    seen = []
    hidden = engine.model.hidden
    engine.model.hidden = lambda inputs: seen.append(torch.get_num_threads()) or hidden(inputs)
    train(engine)
    engine.evaluate(TEXT)
    assert set(seen) == {before + 1}
    assert torch.get_num_threads() == before


def test_what_cannot_be_trained_is_refused():
    settings = settings_of("cbow")

    def engine(rule=Rule("sgd", 0.1), model=None, counts=COUNTS, **options):  # noqa: B008
        return SoftmaxEngine(model or model_of("cbow"), rule, settings, counts, **options)

    with pytest.raises(DataError, match="no linear weights"):
        engine(Rule("cfsgd", 0.1, linear_lr_scale=2.0))
    with pytest.raises(DataError, match="does not go with rowwise-adagrad"):
        engine(Rule("rowwise-adagrad", 0.1, weight_decay=0.1))
    with pytest.raises(ValueError, match="float32 on the CPU"):
        engine(model=model_of("cbow").double())
    with pytest.raises(ValueError, match="has no bias"):
        engine(model=model_of("cbow", bias=False))
    with pytest.raises(ValueError, match="3 counts for a model of 8 words"):
        engine(counts=COUNTS[:3])
    with pytest.raises(ValueError, match="threads must be at least 1"):
        engine(threads=0)
    with pytest.raises(ValueError, match="do not make 2 steps"):
        list(engine().train(TEXT, ORDER, np.ones(2), 0))
    with pytest.raises(DataError, match="beyond the vocabulary of 8"):
        engine().evaluate(text_of([0, 1, 2, 3, 8]))
    wrong = {"input.weight.sum": torch.zeros(5)}
    with pytest.raises(ValueError, match=r"input\.weight\.sum does not fit 8 words"):
        engine(Rule("rowwise-adagrad", 0.1)).load_state(wrong, 0, 0)
