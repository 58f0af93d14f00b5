"""The negative-sampling engine against one that takes a sample after another."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
import torch

from freqsgd.errors import DivergedError
from freqsgd.nn.word2vec import CBOW, SkipGram
from freqsgd.optimizers import Rule
from freqsgd.words.corpus import Paragraphs
from freqsgd.words.negative import BLOCK, NegativeEngine, noise_distribution
from freqsgd.words.settings import TextSettings, with_default_lr

WORDS = 30
RULES = [
    Rule("sgd", lr=0.02),
    Rule("cfsgd", lr=0.004),
    Rule("cfsgd", lr=0.004, max_lr=0.01),
    Rule("fasgd", lr=0.004),
    Rule("rowwise-adagrad", lr=0.05),
    Rule("cfadam", lr=0.01),
]


def text_of(seed: int, paragraphs: int = 40, longest: int = 25) -> Paragraphs:
    """Paragraphs of repeated words, some too short for a window."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(0, longest, paragraphs)
    ids = np.minimum(draw.geometric(0.15, lengths.sum()) - 1, WORDS - 1).astype(np.int32)
    return Paragraphs(ids, np.concatenate([[0], np.cumsum(lengths)]), len(ids))


def counts_of(text: Paragraphs) -> np.ndarray:
    return np.bincount(text.ids, minlength=WORDS)


def new_model(kind: str, dim: int, seed: int = 0) -> SkipGram | CBOW:
    torch.manual_seed(seed)
    model = (SkipGram if kind == "skipgram" else CBOW)(WORDS, dim, bias=False)
    for weight in (model.input.weight, model.output.weight):
        torch.nn.init.normal_(weight, std=0.4)
    return model


def new_engine(kind: str, rule: Rule, text: Paragraphs, dim: int = 11, threads: int = 1, **more):
    settings = TextSettings(model=kind, dim=dim, **{"window": 2, "batch_size": 16, **more})
    return NegativeEngine(new_model(kind, dim), rule, settings, counts_of(text), threads)


def steps(engine: NegativeEngine, text: Paragraphs, lr: float, number: int = 99) -> np.ndarray:
    order = np.arange(len(text))
    size = engine.settings.batch_size
    first = engine.steps % -(-len(text) // size)
    order = order[first * size :][: number * size]
    lrs = np.full(-(-len(order) // size), lr)
    return np.concatenate(list(engine.train(text, order, lrs, epoch=0)))


class Slow:
    """The same in float64, a sample at a time; a block's samples share its first weights."""

    def __init__(self, engine: NegativeEngine, pools) -> None:
        self.engine, self.pools = engine, iter(pools)
        model = engine.model
        self.input = model.input.weight.detach().double().numpy().copy()
        self.output = model.output.weight.detach().double().numpy().copy()
        self.counts = np.zeros((2, WORDS))
        self.squares = np.zeros((2, WORDS))
        self.columns, self.places, self.blocks = [0.0, 0.0], np.zeros((2, WORDS)), 0  # of CFAdam
        self.samples = 0

    def paragraphs(self, text: Paragraphs, which, lr: float) -> float:
        ids = np.concatenate([text.ids[text.starts[p] : text.starts[p + 1]] for p in which])
        of = np.concatenate([[p] * (text.starts[p + 1] - text.starts[p]) for p in which])
        block = BLOCK
        loss = 0.0
        for first in range(0, len(ids), block):
            loss += self.block(ids, of, range(first, min(first + block, len(ids))), lr)
        return loss

    def samples_at(self, ids, of, i):
        settings = self.engine.settings
        window = settings.window

        def near(k):
            places = [*range(k - window, k), *range(k + 1, k + window + 1)]
            return [j for j in places if 0 <= j < len(ids) and of[j] == of[k]]

        def may_be_centre(k):
            return settings.windows == "all" or len(near(k)) == 2 * window

        if isinstance(self.engine.model, SkipGram):
            return [[j] for j in near(i) if may_be_centre(j)]
        return [near(i)] if near(i) and may_be_centre(i) else []

    def block(self, ids, of, places, lr: float) -> float:
        pool, negatives = next(self.pools), self.engine.settings.negatives
        gradients = [np.zeros_like(self.input), np.zeros_like(self.output)]
        of_places = [defaultdict(float), defaultdict(float)]  # by word and place
        loss, samples = 0.0, 0
        for i in places:
            for window in self.samples_at(ids, of, i):
                samples += 1
                u = self.input[ids[window]].mean(0)
                slopes = np.zeros_like(u)
                for word, label, weight, place in [
                    (ids[i], 1, 1.0, i),
                    *((noise, 0, negatives / len(pool), -1 - k) for k, noise in enumerate(pool)),
                ]:
                    z = u @ self.output[word]
                    loss += weight * np.log1p(np.exp(-z if label else z))
                    slope = weight * (1 / (1 + np.exp(-z)) - label)
                    slopes += slope * self.output[word]
                    gradients[1][word] += slope * u
                    of_places[1][word, place] += slope * u
                self.counts[1, ids[i]] += 1
                for word, place in zip(ids[window], window, strict=True):
                    gradients[0][word] += slopes / len(window)
                    of_places[0][word, place] += slopes / len(window)
                    self.counts[0, word] += 1
        self.samples += samples
        if self.engine.rule.optimizer == "cfadam":
            if samples:
                self.move_as_adam(lr, of_places)
            return loss
        touches = [np.zeros(WORDS), np.zeros(WORDS)]
        for i in places:
            for window in self.samples_at(ids, of, i):
                touches[1][ids[i]] += 1
                for word in ids[window]:
                    touches[0][word] += (1 + negatives) / len(window)
        for k, noise in enumerate(pool):  # each pool place has its share of all touches
            share = (samples * negatives + len(pool) - 1 - k) // len(pool)
            self.counts[1, noise] += share
            touches[1][noise] += share
        for k, table in enumerate((self.input, self.output)):
            rates = self.rates(k, lr, gradients[k])
            if self.engine.rule.optimizer != "rowwise-adagrad":
                rates = np.minimum(rates, 2.0 / np.maximum(touches[k], 1))
            table -= rates[:, None] * gradients[k]
        return loss

    def move_as_adam(self, lr: float, of_places) -> None:
        """A block is CFAdam's step, each place of it an occurrence of its word."""
        self.blocks += 1
        for k, table in enumerate((self.input, self.output)):
            gradient, occurrences = np.zeros_like(table), of_places[k].items()
            for (word, _), part in occurrences:
                gradient[word] += part
                self.places[k, word] += 1
            squares = sum(part**2 for _, part in occurrences)
            self.columns[k] = 0.999 * self.columns[k] + 0.001 * squares
            m, n = len(occurrences), self.places[k].sum()
            u = gradient / (np.sqrt(self.columns[k] / (1 - 0.999**self.blocks)) + 1e-8)
            p = np.maximum(self.places[k] / n, 0.001 / m)
            length = np.sqrt((u**2).mean(1))
            bounded = np.minimum(1, 3 * np.sqrt(np.maximum(p, 1 / m)) / np.maximum(length, 1e-300))
            table -= (lr / np.sqrt(p) * bounded)[:, None] * u

    def rates(self, k: int, lr: float, gradient) -> np.ndarray:
        rule = self.engine.rule
        if rule.optimizer == "sgd":
            return np.full(WORDS, lr)
        if rule.optimizer == "rowwise-adagrad":
            self.squares[k] += (gradient**2).mean(1)
            return lr / (np.sqrt(self.squares[k]) + 1e-10)
        p = np.maximum(self.counts[k], 1) / max(self.samples, 1)
        if rule.optimizer == "fasgd":
            counts = counts_of(self.text)
            p = np.maximum(counts, 1) / counts.sum()
            if k == 1:
                p = p + self.engine.settings.negatives * noise_distribution(counts)
            elif not isinstance(self.engine.model, SkipGram):
                p = p * 2 * self.engine.settings.window
        return np.minimum(lr / np.sqrt(p), rule.law.cap)


def pools_of(engine: NegativeEngine, text: Paragraphs, lr: float) -> list[np.ndarray]:
    """The noise words of each block: read from the buffers of a copy, block after block."""
    pools = []
    settings = engine.settings
    copy = NegativeEngine(
        new_model(settings.model, engine.model.dim), engine.rule, settings, counts_of(text), 1
    )
    copy._blocks_at_once = 1
    original = copy._run

    def run(*args):
        original(*args)
        noise = copy._buffers["rows"][-int(copy._job["pool"][0]) :]
        pools.append(noise.copy())

    copy._run = run
    steps(copy, text, lr)
    return pools


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.optimizer}-{rule.max_lr}")
@pytest.mark.parametrize("windows", ["all", "full"])
@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_a_step_equals_samples_taken_one_by_one(kind, windows, rule):
    text = text_of(1)
    engine = new_engine(kind, rule, text, windows=windows)
    slow = Slow(engine, pools_of(engine, text, rule.lr))
    slow.text = text
    found = steps(engine, text, rule.lr)
    for step, (loss, samples) in enumerate(found):
        before = slow.samples
        which = range(step * 16, min((step + 1) * 16, len(text)))
        assert loss == pytest.approx(slow.paragraphs(text, which, rule.lr), rel=1e-5)
        assert samples == slow.samples - before
    assert engine.samples == slow.samples > 100
    if rule.optimizer == "cfsgd":
        touched = engine.samples * (1 + engine.settings.negatives)
        assert int(engine.state["output_counts"].sum()) == touched
    for table, expected in ((engine.model.input, slow.input), (engine.model.output, slow.output)):
        torch.testing.assert_close(
            table.weight.detach().double(), torch.from_numpy(expected), rtol=0, atol=3e-5
        )
    if rule.facts.counts:
        expected = slow.places if rule.optimizer == "cfadam" else slow.counts
        assert (engine.state["input_counts"].numpy() == expected[0]).all()
        assert (engine.state["output_counts"].numpy() == expected[1]).all()


@pytest.mark.parametrize("dim", [1, 3, 8, 16, 25, 48, 100])
@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_vectors_of_any_length(kind, dim):
    text, rule = text_of(2), Rule("cfsgd", lr=0.003)
    engine = new_engine(kind, rule, text, dim)
    slow = Slow(engine, pools_of(engine, text, rule.lr))
    steps(engine, text, rule.lr)
    for step in range(3):
        slow.paragraphs(text, range(step * 16, min((step + 1) * 16, len(text))), rule.lr)
    weight = engine.model.input.weight.detach().double().numpy()
    assert abs(weight - slow.input).max() < 3e-5 * dim**0.5


@pytest.mark.parametrize("window", [1, 3, 5, 9])
@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_windows_of_any_width(kind, window):
    text, rule = text_of(3, longest=40), Rule("cfsgd", lr=0.002)
    engine = new_engine(kind, rule, text, window=window, negatives=7)
    slow = Slow(engine, pools_of(engine, text, rule.lr))
    steps(engine, text, rule.lr)
    for step in range(3):
        slow.paragraphs(text, range(step * 16, min((step + 1) * 16, len(text))), rule.lr)
    assert abs(engine.model.output.weight.detach().numpy() - slow.output).max() < 1e-4


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.optimizer}-{rule.max_lr}")
@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_any_number_of_threads_gives_the_same_bits(kind, rule):
    text = text_of(4, paragraphs=100)
    models = []
    for threads in (1, 2, 5):
        engine = new_engine(kind, rule, text, 70, threads)
        engine._team._next = lambda threads=threads: threads  # never fewer
        losses = steps(engine, text, rule.lr)
        models.append((engine.model.input.weight, engine.model.output.weight, losses))
    for other in models[1:]:
        assert torch.equal(models[0][0], other[0])
        assert torch.equal(models[0][1], other[1])
        assert (models[0][2] == other[2]).all()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.optimizer}-{rule.max_lr}")
def test_a_state_that_was_saved_goes_on_to_the_same_bits(rule):
    text = text_of(5)
    whole = new_engine("skipgram", rule, text, subsample=0.05)
    steps(whole, text, rule.lr)
    first = new_engine("skipgram", rule, text, subsample=0.05)
    steps(first, text, rule.lr, 1)
    second = new_engine("skipgram", rule, text, subsample=0.05)
    second.model.load_state_dict(first.model.state_dict())
    state = {name: tensor.clone() for name, tensor in first.state.items()}
    second.load_state(state, first.samples, first.steps)
    steps(second, text, rule.lr)
    assert torch.equal(whole.model.input.weight, second.model.input.weight)
    assert whole.samples == second.samples


def test_counts_become_64_bits_wide_before_they_overflow():
    text, rule = text_of(6), Rule("cfsgd", lr=1e-3)
    engine = new_engine("skipgram", rule, text)
    engine.load_state(engine.state, samples=2**31, steps=0)
    engine.state["input_counts"][:] = 2**31 - 1
    steps(engine, text, rule.lr)
    assert engine.state["input_counts"].dtype == torch.int64
    assert int(engine.state["input_counts"].max()) > 2**31
    assert int(engine.state["input_counts"].min()) >= 2**31 - 1


@pytest.mark.parametrize("windows", ["all", "full"])
@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_evaluation_is_the_loss_of_each_sample(kind, windows):
    text = text_of(7)
    engine = new_engine(kind, Rule("sgd", lr=0.1), text, windows=windows)
    slow = Slow(engine, [])
    noise = noise_distribution(counts_of(text))
    loss, samples = np.zeros(WORDS), np.zeros(WORDS, int)
    of = np.repeat(np.arange(len(text)), np.diff(text.starts))
    for i in range(len(text.ids)):
        for window in slow.samples_at(text.ids, of, i):
            u = slow.input[text.ids[window]].mean(0)
            word = text.ids[i]
            loss[word] += np.log1p(np.exp(-u @ slow.output[word]))
            loss[word] += 5 * noise @ np.log1p(np.exp(slow.output @ u))
            samples[word] += 1
    found = engine.evaluate(text)
    assert (found.samples[0] == samples).all()
    np.testing.assert_allclose(found.loss[0], loss, rtol=2e-3)
    if kind == "skipgram":
        assert found.loss[1].sum() == pytest.approx(found.loss[0].sum())


def test_noise_words_follow_their_counts():
    text = text_of(8, paragraphs=3000)
    engine = new_engine("skipgram", Rule("sgd", lr=0.0001), text, 1, batch_size=3000)
    drawn = np.concatenate(pools_of(engine, text, 0.0001))
    share = np.bincount(drawn, minlength=WORDS) / len(drawn)
    expected = counts_of(text) ** 0.75
    np.testing.assert_allclose(share, expected / expected.sum(), atol=0.01)
    assert len(drawn) > 20_000


@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_many_noise_words_and_wide_windows_do_not_overflow(kind):
    text = text_of(11, paragraphs=20, longest=900)
    engine = new_engine(kind, Rule("sgd", lr=1e-12), text, window=600, negatives=1300)
    torch.nn.init.zeros_(engine.model.output.weight)
    found = steps(engine, text, 1e-12)
    # without weights every factor is 2, and the loss of a sample log 2 times their number
    assert found[0, 0] / found[0, 1] == pytest.approx(1301 * np.log(2), rel=1e-3)


@pytest.mark.parametrize("optimizer", ["sgd", "cfsgd", "fasgd"])
@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_no_rate_makes_a_small_vocabulary_diverge(kind, optimizer):
    """Every word is in every block many times: added up, their gradients would overshoot."""
    text = Paragraphs(np.arange(4000, dtype=np.int32) % 3, np.arange(0, 4001, 20), 4000)
    settings = TextSettings(model=kind, dim=8, window=2, batch_size=50)
    torch.manual_seed(0)
    model = (SkipGram if kind == "skipgram" else CBOW)(3, 8, bias=False)
    counts = np.bincount(text.ids)
    engine = NegativeEngine(model, Rule(optimizer, lr=5.0), settings, counts, 1)
    for epoch in range(5):
        found = np.concatenate(list(engine.train(text, np.arange(200), np.full(4, 5.0), epoch)))
    assert found[-1, 0] / found[-1, 1] < 6 * np.log(2)  # what is known without learning
    assert engine.evaluate(text).mean < 6 * np.log(2)


def test_a_loss_that_is_not_finite_stops_training():
    text = text_of(9)
    engine = new_engine("skipgram", Rule("sgd", lr=1.0), text, batch_size=40)
    engine.model.input.weight.data[3, 1] = float("nan")
    steps = engine.train(text, np.arange(len(text)), np.array([0.1]), epoch=0)
    with pytest.raises(DivergedError, match="step 0"):
        next(steps)


def test_rules_and_models_that_do_not_fit_are_refused():
    text = text_of(10)
    with pytest.raises(ValueError, match="adam"):
        new_engine("skipgram", Rule("adam", lr=0.1), text)
    settings = TextSettings(dim=4, batch_size=8)
    for model in (SkipGram(WORDS, 4), CBOW(WORDS, 4, bias=False), SkipGram(WORDS, 5, bias=False)):
        with pytest.raises(ValueError, match="the settings are for skipgram, negative, dim 4"):
            NegativeEngine(model, Rule("sgd", lr=0.1), settings, counts_of(text))
    with pytest.raises(ValueError, match="weight_decay"):
        new_engine("skipgram", Rule("cfsgd", lr=0.1, weight_decay=0.1), text)
    engine = new_engine("skipgram", Rule("cfsgd", lr=0.1), text)
    with pytest.raises(ValueError, match="no input_counts for 30 words"):
        engine.load_state({name: t.float() for name, t in engine.state.items()}, 1, 1)
    with pytest.raises(ValueError, match="threads"):
        NegativeEngine(new_model("skipgram", 4), Rule("sgd"), settings, counts_of(text), 0)


@pytest.mark.parametrize(("kind", "mean", "cap"), [("skipgram", 0.05, 0.05), ("cbow", 0.18, 0.15)])
@pytest.mark.parametrize("negatives", [2, 5, 11])
def test_the_default_rates_of_a_texts_words_have_a_given_mean(kind, mean, cap, negatives):
    text = text_of(12)
    settings = TextSettings(model=kind, dim=3, window=2, negatives=negatives)
    rule = with_default_lr(Rule("fasgd"), settings, counts_of(text))
    scale = min(1, 6 / (1 + negatives))
    assert rule.max_lr == pytest.approx(scale * cap)
    model = new_model(kind, 3)
    engine = NegativeEngine(model, rule, settings, counts_of(text), 1)
    rates = rule.lr / engine.state["input_frequencies"].double().sqrt().numpy()
    assert (rates * counts_of(text)).sum() / len(text.ids) == pytest.approx(scale * mean, rel=1e-3)
