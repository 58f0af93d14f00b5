"""partial_fit against training written out sample by sample, with a dictionary in plain Python."""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import polars as pl
import pytest

from freqsgd import DeepFMClassifier, FMClassifier
from freqsgd.errors import DataError
from freqsgd.estimators import stream
from freqsgd.tables.encoders import frames as growing
from tests.estimators.made_up import clicks
from tests.recommender.slow import SlowFM

SEED, DIM, BATCH = 3, 4, 16


class SlowStream:
    """Tables that are as large as they need to be, made anew for every batch."""

    def __init__(self, fields, optimizer, lr, **options):
        self.ids = [{} for _ in range(fields)]  # of each field; 0 is left for rare tokens
        self.rows = [[np.zeros(DIM + 1)] for _ in range(fields)]
        self.kept = [[self.new_state()] for _ in range(fields)]
        self.bias, self.others, self.options = 0.0, {}, (optimizer, lr, options)
        self.samples = self.steps = 0

    @staticmethod
    def new_state():
        return {
            "counts": 0.0,
            "squares": np.zeros(DIM + 1),
            "moment": np.zeros(DIM + 1),
            "row_squares": np.zeros(2),
        }

    def meet(self, bags):
        """Give new tokens of a batch their rows, field after field."""
        before = sum(len(rows) for rows in self.rows)
        new = []
        for field, known in enumerate(self.ids):
            tokens = [token for sample in bags for token in sample[field]]
            new.append([t for t in dict.fromkeys(tokens) if t not in known])
        bound = math.sqrt(6 / (before + sum(map(len, new)) + DIM))
        draw = np.random.Generator(np.random.PCG64([SEED, before]))
        for field, tokens in enumerate(new):
            vectors = draw.uniform(-bound, bound, (len(tokens), DIM)).astype(np.float32)
            for token, vector in zip(tokens, vectors, strict=True):
                self.ids[field][token] = len(self.rows[field])
                self.rows[field].append(np.append(vector, 0.0))
                self.kept[field].append(self.new_state())

    def learn(self, bags, labels):
        self.meet(bags)
        starts = np.cumsum([0, *map(len, self.rows)])
        optimizer, lr, options = self.options
        slow = SlowFM(np.concatenate(self.rows), self.bias, starts[:-1], optimizer, lr, **options)
        flat = [state for kept in self.kept for state in kept]
        for name in ("counts", "squares", "moment", "row_squares"):
            setattr(slow, name, np.array([state[name] for state in flat]))
        slow.samples, slow.steps = self.samples, self.steps
        for name, value in self.others.items():
            setattr(slow, name, value)
        slow.rows = lambda sample: sample  # they are numbered over all fields already
        for first in range(0, len(bags), BATCH):
            ids = [
                [starts[f] + self.ids[f][t] for f, bag in enumerate(sample) for t in bag]
                for sample in bags[first : first + BATCH]
            ]
            slow.step(ids, labels[first : first + BATCH])
        for f, (start, stop) in enumerate(itertools.pairwise(starts)):
            self.rows[f] = list(slow.weight[start:stop])
            for k, state in enumerate(self.kept[f]):
                for name in state:
                    state[name] = getattr(slow, name)[start + k]
        self.bias, self.samples, self.steps = slow.bias, slow.samples, slow.steps
        names = ("bias_squares", "bias_moment", "column_squares", "tokens")
        self.others = {name: getattr(slow, name) for name in names}

    def logit(self, sample):
        rows = [self.rows[f][self.ids[f].get(t, 0)] for f, bag in enumerate(sample) for t in bag]
        pairs = sum(rows[a][:DIM] @ rows[b][:DIM] for a in range(len(rows)) for b in range(a))
        return self.bias + sum(row[DIM] for row in rows) + pairs


def batches():
    """Batches of growing dictionaries: later ones hold tokens that earlier ones do not."""
    rng = np.random.default_rng(5)
    for number, rows in enumerate([40, 7, 60, 33]):
        users = rng.integers(0, 5 + 20 * number, rows)
        # No list is empty: adagrad makes steps of the rounding error where a token stands alone.
        words = [rng.integers(0, 6 + 9 * number, rng.integers(1, 3 + number)) for _ in users]
        bags = [[[f"u{u}"], [f"w{w}" for w in ws]] for u, ws in zip(users, words, strict=True)]
        labels = rng.integers(0, 2, rows)
        frame = pl.DataFrame(
            {"user": [b[0][0] for b in bags], "words": [b[1] for b in bags]},
            schema={"user": pl.String, "words": pl.List(pl.String)},
        )
        yield frame, bags, labels


RULES = {
    "cfsgd": {"lr": 0.4, "weight_decay": 0.01, "weight_decay_power": 0.5, "max_lr": 2.0},
    "cfadam": {"lr": 0.02, "weight_decay": 2.0, "weight_decay_power": 0.5},
    "sgd": {"lr": 0.5},
    "adagrad": {"lr": 0.05},
    "rowwise-adagrad": {"lr": 0.05, "weight_decay": 0.01},
    "adam": {"lr": 0.01, "weight_decay": 0.001},
}


@pytest.mark.parametrize("optimizer", RULES)
def test_streams_equal_training_written_out(optimizer):
    options = RULES[optimizer]
    estimator = FMClassifier(
        DIM, optimizer=optimizer, batch_size=BATCH, random_state=SEED, **options
    )
    slow = SlowStream(2, optimizer, **options)
    for frame, bags, labels in batches():
        estimator.partial_fit(frame, labels, classes=[0, 1])
        slow.learn(bags, labels)
        expected = [slow.logit(sample) for sample in bags]
        assert np.allclose(estimator.decision_function(frame), expected, rtol=1e-4, atol=1e-5)
    for field in (0, 1):
        assert estimator.encoder_.texts()[field].to_list() == list(slow.ids[field])
    assert estimator.model_.sizes == [len(rows) for rows in slow.rows]
    weight = estimator.model_.tokens.weight.detach().numpy()
    assert np.allclose(weight, np.concatenate(slow.rows), rtol=1e-4, atol=1e-5)


def test_unknown_tokens_add_nothing_before_they_are_learned():
    (frame, _, labels), (other, *_) = list(batches())[:2]
    estimator = FMClassifier(DIM, lr=0.4).partial_fit(frame, labels)
    unknown = other.with_columns(user=pl.lit("nobody"), words=pl.lit(None, pl.List(pl.String)))
    assert np.allclose(estimator.decision_function(unknown), estimator.model_.bias.item())


def copies(estimator, tmp_path):
    import pickle

    estimator.save(tmp_path / "model")
    return [pickle.loads(pickle.dumps(estimator)), type(estimator).load(tmp_path / "model")]


@pytest.mark.parametrize("kind", [FMClassifier, DeepFMClassifier])
@pytest.mark.parametrize("optimizer", ["cfsgd", "cfadam", "adam"])
def test_a_saved_stream_goes_on_to_the_same_bits(kind, optimizer, tmp_path):
    (first, *_), *rest = parts = list(batches())
    estimator = kind(DIM, optimizer=optimizer, lr=0.01, batch_size=BATCH, init_scale=0.5)
    for frame, _, labels in parts[:2]:
        estimator.partial_fit(frame, labels)
    others = copies(estimator, tmp_path)
    for frame, _, labels in rest[1:]:
        for one in (estimator, *others):
            one.partial_fit(frame, labels)
    for other in others:
        assert np.array_equal(other.decision_function(first), estimator.decision_function(first))


@pytest.mark.parametrize("optimizer", ["cfsgd", "cfadam"])
def test_streams_go_on_with_the_counters_that_fit_left(optimizer):
    X, y = clicks()
    options = {"lr": 0.5, "epochs": 3, "patience": None, "batch_size": 50}
    estimator = FMClassifier(DIM, optimizer=optimizer, **options).fit(X, y)
    estimator.partial_fit(X[:100], y[:100])
    state = estimator._learned.engine.state
    counts = state["counts"].numpy()
    if optimizer == "cfadam":
        assert state["moments"][:, -1].tolist() == [3 * len(X) + 100] * 2
    for field in (0, 1):
        tokens, seen = np.unique(X[:, field], return_counts=True)
        new, again = np.unique(X[:100, field], return_counts=True)
        expected = dict.fromkeys(estimator.encoder_.tokens(field), 0)
        expected |= dict(zip(tokens, 3 * seen, strict=True))
        for token, times in zip(new, again, strict=True):
            expected[token] += times
        start = 0 if field == 0 else estimator.model_.sizes[0]
        assert counts[start : start + len(expected)].tolist() == list(expected.values())
    assert estimator._learned.engine.samples == 3 * len(X) + 100


def test_a_stream_of_weights_learns_from_some_rows_only():
    X, y = clicks()
    weights = np.ones(len(X))
    weights[y == 0] = 0  # so all that is left is one class
    estimator = FMClassifier(DIM, lr=1.0, batch_size=50)
    estimator.partial_fit(X, y, classes=[0, 1], sample_weight=weights)
    assert estimator.predict_proba(X)[:, 1].min() > 0.6
    others = FMClassifier(DIM, lr=1.0, batch_size=50)
    others.partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    assert np.array_equal(others.decision_function(X), estimator.decision_function(X))


def test_streams_refuse_what_they_cannot_learn_from():
    X, y = clicks(60)
    with pytest.raises(DataError, match="fasgd must know all frequencies"):
        FMClassifier(optimizer="fasgd", lr=1.0).partial_fit(X, y)
    with pytest.raises(DataError, match="one class only"):
        FMClassifier(lr=1.0).partial_fit(X, np.ones(60))
    estimator = FMClassifier(DIM, lr=1.0).partial_fit(X, y)
    with pytest.raises(DataError, match="neither of the classes"):
        estimator.partial_fit(X, y + 1)
    with pytest.raises(DataError, match="classes must stay"):
        estimator.partial_fit(X, y, classes=[1, 2])
    with pytest.raises(ValueError, match="expecting 2 features"):
        estimator.partial_fit(X[:, :1], y)
    words = FMClassifier(DIM, lr=1.0).partial_fit(pl.DataFrame({"words": [["a"], ["b"]]}), [0, 1])
    with pytest.raises(DataError, match="row 0: the list in column 'words' has 300 tokens"):
        words.partial_fit(pl.DataFrame({"words": [["a"] * 300, ["b"]]}), [0, 1])
    with pytest.raises(DataError, match=r"not a finite number.*smaller lr"):
        FMClassifier(DIM, lr=1e30, batch_size=5).partial_fit(X, y)
    for kind in (FMClassifier, DeepFMClassifier):
        with pytest.raises(DataError, match=r"not a finite number in step 0.*smaller lr"):
            kind(DIM, lr=1e30).partial_fit(X, y)  # of which the only step does not know
        wild = kind(DIM, lr=1000.0, optimizer="adam")
        with pytest.raises(DataError, match=r"more than 10 times the 0.69 of .*smaller lr"):
            wild.partial_fit(X, y)


@pytest.mark.parametrize("kind", [FMClassifier, DeepFMClassifier])
def test_a_few_surprising_rows_are_no_divergence(kind):
    X = np.array([["a", "b"]] * 2000)
    estimator = kind(DIM, lr=1.0).partial_fit(X, np.zeros(2000), classes=[0, 1])
    for _ in range(30):
        estimator.partial_fit(X, np.zeros(2000))
    assert estimator.predict_proba(X[:1])[0, 1] < 0.01
    estimator.set_params(lr=1e-6).partial_fit(X[:20], np.ones(20))


class Interrupted:
    """Raises when so many lines of some modules have been run, as Ctrl-C does."""

    def __init__(self, modules, lines):
        self.files, self.left = {module.__file__ for module in modules}, lines

    def __enter__(self):
        sys.settrace(self.trace)

    def __exit__(self, kind, *_):
        sys.settrace(None)
        return kind is KeyboardInterrupt

    def trace(self, frame, event, _):
        if frame.f_code.co_filename not in self.files:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.trace


def test_a_stream_that_is_interrupted_anywhere_goes_on():
    (first, _, y0), (second, _, y1), (third, _, y2) = list(batches())[:3]

    def begun():
        estimator = FMClassifier(DIM, lr=0.4, batch_size=BATCH)
        return estimator.partial_fit(first, y0, classes=[0, 1])

    whole = begun().partial_fit(third, y2)
    expected = whole.decision_function(third)
    before_training = 0
    for lines in itertools.count(1):
        estimator = begun()
        steps = estimator._learned.engine.steps
        with Interrupted([growing, stream], lines) as _:
            estimator.partial_fit(third, y2)
            break
        assert np.isfinite(estimator.decision_function(third)).all()
        copied = estimator.model_, estimator.encoder_
        assert copied[0].sizes == [field.size for field in copied[1].fields]
        again = estimator._learned.engine.steps == steps
        estimator.partial_fit(third, y2)
        if again:  # nothing was learned, so nothing has changed
            before_training += 1
            assert np.array_equal(estimator.decision_function(third), expected)
        estimator.partial_fit(second, y1)
        for field, texts in enumerate(estimator.encoder_.texts()):
            assert texts.n_unique() == len(texts) == estimator.model_.sizes[field] - 1
        assert estimator.vectors("user").trained[1:].all()
    assert before_training > 30


def test_the_dictionary_counts_what_it_takes_in():
    parts = [bags for _, bags, _ in batches()]
    estimator = FMClassifier(DIM, lr=0.4)
    for frame, _, labels in batches():
        estimator.partial_fit(frame, labels, classes=[0, 1])
    for field in (0, 1):
        tokens = [t for bags in parts for sample in bags for t in sample[field]]
        expected = {token: tokens.count(token) for token in dict.fromkeys(tokens)}
        seen = estimator.encoder_.counts()[field].to_list()
        assert dict(zip(estimator.encoder_.texts()[field], seen, strict=True)) == expected


def test_parameters_stay_what_they_were_when_the_stream_began():
    X, y = clicks(60)
    estimator = FMClassifier(DIM, lr=1.0).partial_fit(X, y)
    expected = estimator.decision_function(X)
    for name, value in (("optimizer", "sgd"), ("max_lr", 0.5), ("dim", 8), ("batch_size", 10)):
        then = getattr(estimator, name)
        with pytest.raises(DataError, match=f"{name} was {then}.*cannot become {value}"):
            estimator.set_params(**{name: value}).partial_fit(X, y)
        estimator.set_params(**{name: then})
    assert np.array_equal(estimator.decision_function(X), expected)
    estimator.partial_fit(X, y)
    estimator.set_params(epochs=3, patience=None, lr_decay="linear").partial_fit(X, y)  # of fit


@pytest.mark.parametrize("kind", [FMClassifier, DeepFMClassifier])
def test_a_fitted_model_keeps_its_shape(kind, tmp_path):
    X, y = clicks(60)
    fitted = kind(DIM, lr=1.0, epochs=2).fit(X, y)
    fitted.save(tmp_path / "model")
    for estimator in (fitted, kind.load(tmp_path / "model")):
        changes = {"dim": 8, "hidden": (5,), "dropout": 0.1}
        for name, value in changes.items() if kind is DeepFMClassifier else [("dim", 8)]:
            then = getattr(estimator, name)
            with pytest.raises(DataError, match=f"{name} was .* cannot become"):
                estimator.set_params(**{name: value}).partial_fit(X, y)
            estimator.set_params(**{name: then})
        estimator.partial_fit(X, y)


@pytest.mark.parametrize("optimizer", ["cfsgd", "adam"])
def test_the_learning_rate_of_a_stream_may_change(optimizer):
    estimator = FMClassifier(DIM, optimizer=optimizer, batch_size=BATCH, random_state=SEED)
    slow = SlowStream(2, optimizer, None)
    for (frame, bags, labels), lr in zip(batches(), (0.1, 0.02, "auto", 0.05), strict=True):
        estimator.set_params(lr=lr).partial_fit(frame, labels, classes=[0, 1])
        rate = 0.02 if lr == "auto" else lr  # the one before
        slow.options = (optimizer, rate, {})
        slow.learn(bags, labels)
        assert estimator.lr_ == rate
        expected = [slow.logit(sample) for sample in bags]
        assert np.allclose(estimator.decision_function(frame), expected, rtol=1e-4, atol=1e-5)


def test_a_call_that_fails_does_not_change_the_learning_rate(tmp_path):
    X, y = clicks(60)
    X = pl.DataFrame(X.tolist(), ["user", "item"], orient="row")
    fitted = FMClassifier(DIM, lr=1.0, epochs=2).fit(X, y).set_params(lr=0.25)
    assert fitted.partial_fit(X, y).lr_ == 0.25
    with pytest.raises(DataError, match="must hold single values"):
        fitted.set_params(lr=7.0).partial_fit(pl.DataFrame({"user": [["a"]], "item": ["b"]}), [1])
    assert fitted.set_params(lr="auto").partial_fit(X, y).lr_ == 0.25
    fitted.save(tmp_path / "model")
    assert FMClassifier.load(tmp_path / "model").partial_fit(X, y).lr_ == 0.25
