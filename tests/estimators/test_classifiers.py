"""What the classifiers learn, tell and refuse."""

from __future__ import annotations

import os
import signal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.metrics import log_loss, roc_auc_score

from freqsgd import DeepFMClassifier, FMClassifier
from freqsgd.errors import DataError, DataWarning
from freqsgd.optimizers import Rule
from freqsgd.recommender.find_lr import find_lr
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.fields import Field, Splits
from tests.estimators.made_up import clicks
from tests.tables import slow

SMALL = {"dim": 4, "epochs": 8, "lr": 1.0, "batch_size": 64}


def as_dataset(X, y, X_eval, y_eval, weights=None):
    """The same samples, encoded in plain Python."""
    numbers = slow.number(X.T.tolist())
    rows = np.concatenate([X, X_eval])
    ids = np.array([[k.get(t, 0) for k, t in zip(numbers, row, strict=True)] for row in rows])
    splits = Splits(np.arange(len(X)), np.arange(len(X), len(rows)), np.empty(0, np.int64))
    fields = tuple(Field(f"x{f}", len(known) + 1) for f, known in enumerate(numbers))
    labels = np.concatenate([y, y_eval]).astype(np.uint8)
    if weights is not None:
        weights = np.concatenate([weights, np.ones(len(y_eval))]).astype(np.float32)
    ids = np.ascontiguousarray(ids, np.int32)
    return Dataset("X", fields, ids, labels, splits, weights=weights)


@pytest.mark.parametrize("kind", [FMClassifier, DeepFMClassifier])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_is_the_training_loop_on_the_same_samples(kind, weighted):
    X, y = clicks()
    X_eval, y_eval = clicks(200, seed=1)
    weights = np.random.default_rng(0).uniform(0, 2, len(X)) if weighted else None
    options = {"weight_decay": 1e-3, "weight_decay_power": 0.5, "max_lr": 20.0}
    estimator = kind(**SMALL, **options, lr_decay="linear", random_state=7)
    estimator.fit(X, y, eval_set=(X_eval, y_eval), sample_weight=weights)
    data = as_dataset(X, y, X_eval, y_eval, weights)
    model = "fm" if kind is FMClassifier else "deepfm"
    decay = {"lr_decay": "linear", "patience": 5}
    settings = Settings(model, dim=4, epochs=8, batch_size=64, seed=7, **decay)
    expected, record = fit(data, Rule("cfsgd", 1.0, **options), settings)
    assert estimator.best_epoch_ == record["best_epoch"]
    found, expected = estimator.model_.state_dict(), expected.state_dict()
    del found["bias"], expected["bias"]  # which is moved in the end: see test_base_rate.py
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


def test_what_is_kept_is_the_epoch_that_history_calls_best():
    X, y = clicks()
    X_eval, y_eval = clicks(300, seed=1)
    estimator = FMClassifier(**SMALL).fit(X, y, eval_set=(X_eval, y_eval))
    best = estimator.history_[estimator.best_epoch_ - 1]
    assert best["val_auc"] == max(epoch["val_auc"] for epoch in estimator.history_)
    assert len(estimator.history_) == estimator.n_iter_
    found = estimator.predict_proba(X_eval)
    assert roc_auc_score(y_eval, found[:, 1]) == pytest.approx(best["val_auc"], abs=1e-6)
    assert log_loss(y_eval, found) == pytest.approx(best["val_loss"], rel=0.02)  # but for the bias
    assert np.array_equal(estimator.predict(X_eval), found.argmax(1))


def test_without_patience_all_epochs_are_trained_on_all_rows():
    X, y = clicks(100)
    estimator = FMClassifier(**SMALL, patience=None).fit(X, y)
    assert estimator.best_epoch_ == estimator.n_iter_ == 8
    assert [epoch["val_auc"] for epoch in estimator.history_] == [None] * 8
    seen = np.concatenate([counts.to_numpy() for counts in estimator.encoder_.counts()])
    counts = estimator._learned.state["counts"].numpy()
    assert np.array_equal(counts[counts > 0], 8 * seen)


@pytest.mark.parametrize("fraction", [0.01, 0.25, 0.99])
def test_held_out_rows_have_the_classes_of_all_rows(fraction):
    from freqsgd.estimators.inputs import hold_out

    labels = np.repeat([0, 1], [80, 20]).astype(np.uint8)
    none = np.empty(0, np.int64)
    data = Dataset("X", (), np.empty((100, 0), np.int32), labels, Splits(none, none, none))
    splits = hold_out(data, fraction, seed=0).splits
    both = np.concatenate([splits.train, splits.validation])
    assert np.array_equal(np.sort(both), np.arange(100))
    found = np.bincount(labels[splits.validation])
    assert found.tolist() == {0.01: [1, 1], 0.25: [20, 5], 0.99: [79, 19]}[fraction]


def test_the_torch_module_gives_the_same_log_odds():
    X, y = clicks()
    for kind in (FMClassifier, DeepFMClassifier):
        estimator = kind(**SMALL).fit(X, y)
        tokens = [estimator.encoder_.tokens(field) for field in (0, 1)]
        ids = torch.tensor([[tokens[f].index(t) for f, t in enumerate(row)] for row in X])
        with torch.no_grad():
            expected = estimator.model_(ids).numpy()
        assert np.allclose(estimator.decision_function(X), expected, rtol=1e-4, atol=1e-5)


def test_the_learning_rate_finds_itself():
    X, y = clicks(2000)
    estimator = FMClassifier(dim=4, patience=None, epochs=1).fit(X, y)
    data = as_dataset(X, y, X[:0], y[:0])
    settings = Settings(dim=4, patience=None)  # epochs do not matter
    assert estimator.lr_ == find_lr(data, Rule("cfsgd", 1.0), settings)
    assert FMClassifier(dim=4, epochs=1).partial_fit(X, y).lr_ == estimator.lr_


def test_missing_and_unseen_values_and_bags_and_numbers():
    X, y = clicks()
    frame = pl.DataFrame({"user": X[:, 0], "item": X[:, 1], "price": y + 0.25})
    frame = frame.with_columns(
        pl.when(pl.col("user") != "u1").then("user").alias("user"), pl.concat_list("item", "user")
    )
    estimator = FMClassifier(**SMALL, numeric=["price"]).fit(frame, y)
    assert [column.kind for column in estimator.encoder_.columns] == ["category", "bag", "number"]
    assert "<missing>" in estimator.encoder_.tokens(0)
    assert estimator.score(frame, y) == 1.0  # the price tells
    new = pl.DataFrame({"user": ["nobody"], "item": [["nothing"]], "price": [1e9]})
    assert estimator.decision_function(new) == pytest.approx(estimator.model_.bias.item())
    places = FMClassifier(**SMALL, numeric=[2]).fit(frame, y)
    assert np.array_equal(places.decision_function(frame), estimator.decision_function(frame))


def test_neighbours_are_those_of_the_highest_cosine():
    X, y = clicks()
    frame = pd.DataFrame(X, columns=["user", "item"])
    estimator = FMClassifier(**SMALL).fit(frame, y)
    vectors = estimator.vectors("item")
    size = estimator.model_.sizes[0]
    matrix = estimator.model_.tokens.weight.detach().numpy()[size:, :4]
    assert np.array_equal(vectors.matrix, matrix)
    rows = {token: row for token, row in zip(vectors.tokens, matrix, strict=True) if row.any()}
    me = rows.pop("i2")
    cosine = {t: row @ me / np.linalg.norm(row) / np.linalg.norm(me) for t, row in rows.items()}
    found = estimator.neighbors("item", "i2", top=3)
    assert [n.token for n in found] == sorted(cosine, key=cosine.get, reverse=True)[:3]
    assert found[0].count == (X[:, 1] == found[0].token).sum()
    with pytest.raises(DataError, match="no column 'film': the columns are user, item"):
        estimator.vectors("film")
    with pytest.raises(DataError, match="no token 'i99'"):
        estimator.neighbors("item", "i99")


def test_columns_are_matched_by_name():
    X, y = clicks(100)
    frame = pd.DataFrame(X, columns=["user", "item"])
    for table in (frame, pl.DataFrame(X.tolist(), ["user", "item"], orient="row")):
        estimator = FMClassifier(**SMALL).fit(table, y)
        assert estimator.feature_names_in_.tolist() == ["user", "item"]
        renamed = frame.rename(columns={"user": "person"})
        with pytest.raises(ValueError, match=r"unseen at fit time:\n- person\n.*\n- user"):
            estimator.predict(renamed)
        with pytest.raises(ValueError, match=r"now missing:\n- item"):
            estimator.predict(frame[["user"]])
        with pytest.raises(ValueError, match=r"unseen at fit time:\n- more"):
            estimator.predict(frame.assign(more=1))
        with pytest.raises(ValueError, match="same order"):
            estimator.predict(frame[["item", "user"]])
    with pytest.raises(ValueError, match="expecting 2 features"):
        FMClassifier(**SMALL).fit(X, y).predict(X[:, :1])


def test_a_column_of_distinct_values_is_warned_of():
    X, y = clicks(50)
    frame = pl.DataFrame({"user": X[:, 0], "row": np.arange(50)})
    with pytest.warns(DataWarning, match="all 50 values of column 'row' are distinct"):
        FMClassifier(**SMALL).fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FMClassifier(**SMALL, numeric=["row"]).fit(frame, y)


def test_verbose_prints_a_line_for_each_epoch(capsys):
    X, y = clicks(100)
    FMClassifier(**SMALL).fit(X, y)
    assert capsys.readouterr().out == ""
    estimator = FMClassifier(**SMALL, verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == estimator.n_iter_
    assert lines[0].startswith("epoch 1: training loss 0.")


def test_an_interrupt_ends_fit(monkeypatch):
    def interrupt(progress, record):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("freqsgd.estimators.classifiers._print_epochs", interrupt)
    with pytest.raises(KeyboardInterrupt):
        FMClassifier(**SMALL, verbose=True).fit(*clicks(100))


BAD_OPTIONS = [
    ({"optimizer": "adamw"}, "unknown optimizer 'adamw'; known: sgd"),
    ({"lr": "large"}, "lr must be a number > 0 or 'auto', got 'large'"),
    ({"lr": 0}, "lr must be a number > 0 or 'auto', got 0$"),
    ({"lr": np.float64(-1.0)}, "lr must be a number > 0 or 'auto', got -1.0$"),
    ({"lr": float("nan")}, "lr must be a number > 0 or 'auto', got nan"),
    ({"lr": float("inf")}, "lr must be a number > 0 or 'auto', got inf"),
    ({"lr": None}, "lr must be a number > 0 or 'auto', got None"),
    ({"lr": True}, "lr must be a number > 0 or 'auto', got True"),
    ({"lr": [0.1]}, r"lr must be a number > 0 or 'auto', got \[0.1\]"),
    ({"optimizer": ["sgd"]}, r"optimizer must be one of sgd, .*, adam, got \['sgd'\]"),
    ({"optimizer": None}, "optimizer must be one of sgd, .*, adam, got None"),
    ({"weight_decay": None}, "weight_decay must be a number, got None"),
    ({"weight_decay_power": "1"}, "weight_decay_power must be a number, got '1'"),
    ({"init_scale": None}, "init_scale must be a number, got None"),
    ({"max_lr": "high"}, "max_lr must be a number, got 'high'"),
    ({"validation_fraction": None}, "validation_fraction must be a number, got None"),
    ({"validation_fraction": "0.1"}, "validation_fraction must be a number, got '0.1'"),
    ({"dim": True}, "dim must be a whole number, got True"),
    ({"epochs": np.float64(2.5)}, "epochs must be a whole number, got 2.5"),
    ({"threads": 1.0}, "threads must be a whole number, got 1.0"),
    ({"lr_decay": None}, "lr_decay must be constant or linear, got None"),
    ({"random_state": "a"}, "random_state must be .*, got 'a'"),
    ({"random_state": 2**40}, "random_state must be .*, got 1099511627776"),
    ({"numeric": None}, "numeric must be names or places of columns, got None"),
    ({"numeric": 0}, "numeric must be names or places of columns, got 0"),
    ({"numeric": [None]}, "numeric names a column None, which X does not have"),
    ({"numeric": [0.5]}, "numeric names a column 0.5, which X does not have"),
    ({"numeric": [True]}, "numeric names a column True, which X does not have"),
    ({"numeric": [["x0"]]}, r"numeric names a column \['x0'\], which X does not have"),
    ({"numeric": [np.int64(7)]}, "numeric names a column 7, which X does not have"),
    ({"numeric": [0], "numeric_rule": None}, "unknown numeric rule None"),
    ({"epochs": 0}, "epochs must be at least 1, got 0"),
    ({"epochs": 2.5}, "epochs must be a whole number, got 2.5"),
    ({"dim": 0}, "dim must be at least 1"),
    ({"dim": None}, "dim must be a whole number, got None"),
    ({"batch_size": 0}, "batch_size must be at least 1"),
    ({"patience": 0}, "patience must be at least 1"),
    ({"validation_fraction": 1.0}, "validation_fraction must lie between 0 and 1"),
    ({"min_count": 0}, "min_count must be at least 1"),
    ({"threads": 0}, "threads must be at least 1"),
    ({"lr_decay": "cosine"}, "lr_decay must be constant or linear"),
    ({"weight_decay": -1.0}, "weight_decay"),
    ({"random_state": -1}, "random_state must be .*, got -1"),
    ({"numeric": ["price"]}, "numeric names a column 'price', which X does not have.*x0, x1"),
    ({"numeric": [2]}, "numeric names a column 2, which X does not have"),
    ({"numeric": [0], "numeric_rule": "cubes"}, "unknown numeric rule 'cubes'"),
    ({"lr": 1e30}, "not a finite number.*smaller learning rate"),
    ({"lr": 100.0, "optimizer": "adam"}, "more than 10 times the .*smaller learning rate"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_options_out_of_range_are_refused(options, message):
    X, y = clicks(60)
    with pytest.raises(DataError, match=message):
        FMClassifier(**{**SMALL, **options}).fit(X, y)


BAD_NETWORKS = [
    ({"hidden": 8}, "hidden must be the sizes of layers, such as (16, 16), got 8"),
    ({"hidden": None}, "hidden must be the sizes of layers, such as (16, 16), got None"),
    ({"hidden": "16"}, "hidden must be the sizes of layers, such as (16, 16), got '16'"),
    ({"hidden": (8, 0.5)}, "hidden must be the sizes of layers, such as (16, 16), got (8, 0.5)"),
    ({"hidden": (0,)}, "hidden must be sizes of at least 1, got [0]"),
    ({"dropout": None}, "dropout must be a number, got None"),
    ({"dropout": 1}, "dropout must lie in [0, 1), got 1.0"),
]


@pytest.mark.parametrize(("options", "message"), BAD_NETWORKS)
def test_networks_that_cannot_be_are_refused(options, message):
    with pytest.raises(DataError) as error:
        DeepFMClassifier(**{**SMALL, **options}).fit(*clicks(60))
    assert str(error.value) == message


BAD_DATA = [
    ({"y": np.zeros(60)}, "y holds one class only, 0.0: "),
    ({"y": np.array(["a"] * 60)}, "y holds one class only, 'a': "),
    ({"y": np.arange(60) % 3}, "Only binary classification is supported"),
    ({"y": np.arange(60) / 7}, "Unknown label type: continuous"),
    ({"y": np.where(np.arange(60) < 30, 0.0, np.nan)}, "y contains NaN"),
    ({"y": np.array([None, "a"] * 30, object)}, "y contains NaN or None, first in row 0"),
    ({"y": np.arange(50) % 2}, "y has 50 entries for 60 rows"),
    ({"y": np.repeat([0, 1], [59, 1])}, "too few to hold one out"),
    ({"sample_weight": np.ones(50)}, "one number for each of 60 rows"),
    ({"sample_weight": 2.0}, "sample_weight must be one number for each of 60 rows"),
    ({"sample_weight": [[1.0], [1.0, 2.0]]}, "sample_weight must be one number for each of 60"),
    ({"sample_weight": ["a"] * 60}, "sample_weight must be one number.*holds 'a'"),
    ({"sample_weight": np.array(["1"] * 60, object)}, "sample_weight must be one.*holds '1'"),
    ({"sample_weight": [{}] * 60}, "sample_weight must be one number.*holds {}"),
    ({"sample_weight": -np.ones(60)}, "in row 0 it is -1.0"),
    ({"sample_weight": np.where(np.arange(60) == 7, np.nan, 1)}, "in row 7 it is nan"),
    ({"sample_weight": pd.array([1, None] * 30, "Int64")}, "in row 1 it is nan"),
    ({"sample_weight": np.full(60, 1e-300)}, "at least one non-zero number"),
    ({"sample_weight": np.full(60, 1e300)}, r"sample_weight must.*in row 0 it is 1e\+300"),
    ({"eval_set": (clicks(20)[0][:0], [])}, "eval_set: X has no rows"),
    ({"eval_set": (pd.DataFrame({"a": []}), [])}, "eval_set: X has no rows"),
    ({"eval_set": (clicks(20)[0][0], [0, 1])}, "eval_set: X must be a table"),
    ({"eval_set": clicks(20)[0]}, "eval_set must be a pair"),
    ({"eval_set": (clicks(20)[0], np.ones(20))}, "eval_set holds one class only"),
    ({"eval_set": (clicks(20)[0], clicks(19)[1])}, "y of eval_set has 19 entries for 20 rows"),
    (
        {"eval_set": (clicks(20)[0], clicks(20)[1] + 5)},
        "y of eval_set holds [56], which is neither",
    ),
    ({"eval_set": (clicks(20)[0][:, :1], clicks(20)[1])}, "expecting 2 features"),
    ({"X": pl.LazyFrame({"a": [1]})}, "collect"),
    ({"X": pl.DataFrame({"a": [1.5] * 60})}, "column 'a' holds 1.5.*numeric"),
    ({"X": pd.DataFrame({"a": []})}, "X has no rows"),
    ({"X": pd.DataFrame(index=range(60))}, "X has no columns"),
    ({"X": np.arange(60)}, r"X must be a table.*shape is \(60,\)"),
    ({"X": pl.Series(range(60))}, r"X must be a table.*shape is \(60,\)"),
    ({"X": np.zeros((60, 2, 2))}, r"X must be a table.*shape is \(60, 2, 2\)"),
    ({"X": [["a", "b"], ["a"]] * 30}, "X must be a table.*rows are not equally long"),
    ({"X": ["a", "b"] * 30}, r"X must be a table.*shape is \(60,\)"),
    ({"X": {"a": ["b"] * 60}}, "X must be a table.*it is a dict"),
    ({"X": csr_array(np.eye(60))}, r"X is sparse.*X\.toarray\(\)"),
    ({"X": pd.Series(["a"] * 60)}, r"X must be a table.*shape is \(60,\)"),
    ({"X": None}, "X must be a table.*it is a NoneType"),
    ({"X": "text"}, "X must be a table.*it is a str"),
    ({"X": np.ones((60, 1), complex)}, "Complex data not supported"),
    ({"X": pd.DataFrame([["a", "b"]] * 60, columns=["u", "u"])}, "X has two columns named 'u'"),
    ({"X": pd.DataFrame([["a", "b"]] * 60, columns=[1, 1])}, "X has two columns named 1:"),
]


@pytest.mark.parametrize(("given", "message"), BAD_DATA)
def test_data_that_cannot_be_used_is_refused(given, message):
    X, y = clicks(60)
    with pytest.raises(ValueError, match=message) as error:
        FMClassifier(**SMALL).fit(**{"X": X, "y": y, **given})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250


def test_a_row_of_weight_0_is_as_if_it_were_not_there():
    X, y = clicks(800)
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    noise = np.where(weights == 0, 1 - y, y)
    there = weights > 0
    for options in ({}, {"numeric": [2], "numeric_rule": "quantiles", "lr": "auto"}):
        table = np.column_stack([X, np.arange(len(X)) % 97]) if options else X
        options = {**SMALL, **options}
        estimator = FMClassifier(**options).fit(table, noise, sample_weight=weights)
        without = FMClassifier(**options)
        without.fit(table[there], y[there], sample_weight=weights[there])
        assert estimator.lr_ == without.lr_
        assert estimator.best_epoch_ == without.best_epoch_
        assert np.array_equal(estimator.decision_function(table), without.decision_function(table))
        assert estimator.encoder_.texts()[0].equals(without.encoder_.texts()[0])
    with pytest.raises(DataError, match="one class only"):
        FMClassifier(**SMALL).fit(X, y, sample_weight=y)


FAILING = [
    ({"y": np.arange(200) % 3}, {}, "Only binary"),
    ({}, {"lr": 1e30, "batch_size": 10}, "not a finite number"),
    ({"X": np.arange(200)[:, None] / 7}, {}, "which is not a category"),
]


@pytest.mark.parametrize(("given", "options", "message"), FAILING)
def test_what_fails_leaves_all_as_it_was(given, options, message):
    X, y = clicks(200)
    given = {"X": X, "y": y, **given}
    fitted = FMClassifier(**SMALL).fit(pd.DataFrame(X, columns=["user", "item"]), y)
    new = FMClassifier(**SMALL)
    for estimator, learn in ((fitted, "fit"), (new, "fit"), (new, "partial_fit")):
        estimator.set_params(**options)
        before = dict(vars(estimator))
        with pytest.raises(DataError, match=message):
            getattr(estimator, learn)(**given)
        assert vars(estimator).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(estimator).items())


def test_numbers_stay_numbers_whatever_numeric_becomes():
    X, y = clicks(200)
    frame = pd.DataFrame({"user": X[:, 0], "price": np.arange(200) / 7})
    for learn in ("fit", "partial_fit"):
        estimator = FMClassifier(**SMALL, numeric=["price"])
        getattr(estimator, learn)(frame, y)
        expected = estimator.decision_function(frame)
        estimator.set_params(numeric=())
        assert np.array_equal(estimator.decision_function(frame), expected)
        estimator.partial_fit(frame, y)


def test_neighbours_of_numbers_are_refused():
    X, y = clicks(200)
    frame = pd.DataFrame({"user": X[:, 0], "price": np.arange(200) / 7})
    estimator = FMClassifier(**SMALL, numeric=["price"]).fit(frame, y)
    with pytest.raises(DataError, match=r"column 'price' holds numbers.*vectors\('price'\)"):
        estimator.neighbors("price", 3)
    assert len(estimator.vectors("price").tokens) == estimator.encoder_.fields[1].size


def test_missing_values_and_texts_that_look_like_them_are_told_apart():
    X, y = clicks(400)
    names = {"i0": "<missing>", "i1": "<rare>", "i2": "<<rare>>", "i3": None}
    item = np.array([names.get(token, token) for token in X[:, 1]], object)
    frame = pd.DataFrame({"user": X[:, 0], "item": item})
    estimator = FMClassifier(**SMALL).fit(frame, y)
    vectors = estimator.vectors("item")
    assert vectors.tokens[0] == "<<<rare>>>"
    assert len(set(vectors.tokens)) == len(vectors.tokens)
    seen = dict(zip(vectors.tokens, vectors.counts.tolist(), strict=True))
    assert seen["<missing>"] == (X[:, 1] == "i0").sum()
    assert seen["<<missing>>"] == (X[:, 1] == "i3").sum()
    assert seen["<<<rare>>>"] == -1
    plain = FMClassifier(**SMALL).fit(frame.assign(item=X[:, 1]), y)
    for token, name in names.items():
        near = {one.token: one.cosine for one in plain.neighbors("item", token, 3)}
        found = {one.token: one.cosine for one in estimator.neighbors("item", name, 3)}
        shown = {**names, "i3": "<<missing>>"}
        expected = {shown.get(token, token): cosine for token, cosine in near.items()}
        assert found == pytest.approx(expected)


def test_vectors_are_made_once_and_never_change():
    X, y = clicks(200)
    estimator = FMClassifier(**SMALL).fit(X, y)
    vectors = estimator.vectors("x0")
    assert estimator.vectors("x0") is vectors
    before = vectors.matrix.copy()
    estimator.partial_fit(X, y)
    assert np.array_equal(vectors.matrix, before)
    assert not np.array_equal(estimator.vectors("x0").matrix, before)


def test_a_seed_of_numpy_is_that_seed():
    X, y = clicks(200)
    expected = FMClassifier(**SMALL, random_state=5).fit(X, y).decision_function(X)
    found = FMClassifier(**SMALL, random_state=np.int64(5)).fit(X, y).decision_function(X)
    assert np.array_equal(found, expected)


def test_weights_and_eval_set_are_named():
    X, y = clicks(60)
    with pytest.raises(TypeError, match="positional"):
        FMClassifier(**SMALL).fit(X, y, np.ones(60))
