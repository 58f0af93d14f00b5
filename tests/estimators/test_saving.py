"""Model folders: those of estimators, and those of the command line."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from typer.testing import CliRunner

from freqsgd import DeepFMClassifier, FMClassifier
from freqsgd.cli.app import app
from freqsgd.errors import DataError, DataWarning
from freqsgd.recommender.predict import probabilities
from freqsgd.tables.encoders.encoder import Encoder
from tests.estimators.made_up import clicks

SMALL = {"dim": 4, "epochs": 5, "lr": 1.0, "batch_size": 64}


def frame_of(X):
    price = [float(len(token)) + 0.5 for token in X[:, 0]]
    return pl.DataFrame({"user": X[:, 0], "item": X[:, 1], "price": price})


@pytest.mark.parametrize("kind", [FMClassifier, DeepFMClassifier])
@pytest.mark.parametrize("classes", [("no", "yes"), (False, True), (-1, 1)])
def test_what_is_loaded_predicts_the_same_bits(kind, classes, tmp_path):
    X, y = clicks()
    estimator = kind(**SMALL, numeric=("price",), min_count=2)
    estimator.fit(frame_of(X), np.array(classes)[y]).save(tmp_path / "model")
    loaded = kind.load(tmp_path / "model")
    new = frame_of(clicks(seed=1)[0])
    assert np.array_equal(loaded.predict_proba(new), estimator.predict_proba(new))
    assert np.array_equal(loaded.predict(new), estimator.predict(new))
    assert loaded.get_params() == estimator.get_params()
    assert loaded.history_ == estimator.history_
    assert loaded.classes_.dtype == estimator.classes_.dtype
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {
        ".safetensors",
        ".json",
        ".parquet",
    }


def test_arrays_have_no_names_after_loading_either(tmp_path):
    X, y = clicks()
    FMClassifier(**SMALL).fit(X, y).save(tmp_path / "model")
    loaded = FMClassifier.load(tmp_path / "model")
    assert not hasattr(loaded, "feature_names_in_")
    assert loaded.n_features_in_ == 2
    loaded.predict(X)


def test_parameters_of_numpy_are_saved(tmp_path):
    X, y = clicks()
    options = {"dim": np.int64(4), "lr": np.float32(0.5), "epochs": 2}
    estimator = FMClassifier(**options, random_state=np.random.RandomState(1)).fit(X, y)
    estimator.save(tmp_path / "model")
    loaded = FMClassifier.load(tmp_path / "model")
    assert (loaded.dim, loaded.lr) == (4, 0.5)
    assert np.array_equal(loaded.fit(X, y).decision_function(X), estimator.decision_function(X))


PARAMETERS = {
    "places": {"numeric": (np.int64(2),)},
    "an index": {"numeric": pd.DataFrame(columns=["user", "item", "price"]).columns[2:]},
    "an array": {"numeric": np.array(["price"])},
    "hidden": {"numeric": ["price"], "hidden": [np.int64(8), 4]},
    "seed": {"numeric": ["price"], "random_state": np.int64(3)},
}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_sequences_and_numbers_of_others_are_saved(kind, tmp_path):
    X, y = clicks(200)
    frame = frame_of(X)
    estimator = DeepFMClassifier(**SMALL, **PARAMETERS[kind]).fit(frame, y)
    estimator.save(tmp_path / "model")
    loaded = DeepFMClassifier.load(tmp_path / "model")
    for name, value in PARAMETERS[kind].items():
        as_tuple = value if name == "random_state" else tuple(value)
        assert loaded.get_params()[name] == as_tuple
    again = loaded.fit(frame, y).decision_function(frame)
    assert np.array_equal(again, estimator.decision_function(frame))


def test_what_cannot_be_saved_leaves_no_files(tmp_path):
    X, y = clicks(60)
    estimator = FMClassifier(**SMALL).fit(X, y)
    estimator.classes_ = np.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)], object)
    with pytest.raises(DataError, match="cannot be saved"):
        estimator.save(tmp_path / "model")
    assert not list(tmp_path.rglob("*.*"))


def test_the_commands_read_what_an_estimator_saved(tmp_path):
    X, y = clicks()
    estimator = FMClassifier(**SMALL, numeric=["price"]).fit(frame_of(X), y)
    estimator.save(tmp_path / "model")
    new = frame_of(clicks(50, seed=1)[0])
    for name, write in (("new.csv", new.write_csv), ("new.parquet", new.write_parquet)):
        write(tmp_path / name)
        found = np.concatenate(list(probabilities(tmp_path / "model", str(tmp_path / name))))
        assert np.allclose(found, estimator.predict_proba(new)[:, 1], rtol=1e-5)
    result = CliRunner().invoke(app, ["neighbors", str(tmp_path / "model"), "item", "i1"])
    assert result.exit_code == 0, result.output
    assert estimator.neighbors("item", "i1")[0].token in result.output


@pytest.mark.parametrize("model", ["fm", "deepfm"])
def test_a_model_of_the_command_line_is_read_and_goes_on(model, tmp_path):
    X, y = clicks()
    frame, path = frame_of(X), str(tmp_path / "clicks.csv")
    frame.with_columns(click=y).write_csv(path)
    command = f"train --data {path} --label click --features user,item --numeric price --epochs 3"
    command += f" --model {model} --dim 4 --lr 0.5 --out {tmp_path / 'model'}"
    command += " --numeric-rule quantiles --min-count 3"
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 0, result.output
    kind, other = (FMClassifier, DeepFMClassifier)[:: 1 if model == "fm" else -1]
    loaded = kind.load(tmp_path / "model")
    expected = np.concatenate(list(probabilities(tmp_path / "model", path)))
    assert np.allclose(loaded.predict_proba(frame)[:, 1], expected, rtol=1e-5)
    assert loaded.get_params()["lr"] == loaded.lr_ == 0.5
    assert (loaded.numeric, loaded.numeric_rule) == (("price",), "quantiles")
    assert loaded.classes_.tolist() == [0, 1]
    assert loaded.min_count == 3
    new = frame.head(20).with_columns(user=pl.lit("newcomer"))
    before = loaded.encoder_.fields[0].size
    loaded.partial_fit(new, y[:20])
    assert loaded.encoder_.fields[0].size == before + 1
    assert loaded.encoder_.tokens(0)[-1] == "newcomer"
    with pytest.raises(DataError, match=f"use {kind.__name__}.load"):
        other.load(tmp_path / "model")


def test_a_model_that_counted_batches_goes_on_at_the_rate_of_counting_occurrences(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    X, y = clicks()
    frame_of(X).with_columns(click=y).write_csv("day.csv")
    for options in (
        "train --features user,item --epochs 1 --lr 0.5 --out first",
        "stream train --dictionary first --batch-size 64 --lr 4 --count batch --out model",
    ):
        command = f"{options} --data day.csv --label click"
        result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 0, result.output
    loaded = FMClassifier.load("model")
    assert loaded.get_params()["lr"] == loaded.lr_ == 0.5


def test_folders_that_cannot_be_used_are_refused(tmp_path):
    X, y = clicks(60)
    estimator = FMClassifier(**SMALL).fit(X, y)
    estimator.save(tmp_path / "model")
    with pytest.raises(DataError, match="holds a model already"):
        estimator.save(tmp_path / "model")
    with pytest.raises(DataError, match="there is no"):
        FMClassifier.load(tmp_path / "nothing")
    state = tmp_path / "model" / "optimizer.safetensors"
    state.write_bytes(state.read_bytes()[:-1])
    with pytest.raises(DataError, match="damaged"):
        FMClassifier.load(tmp_path / "model")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot make the folder"):
        estimator.save(tmp_path / "file")


@pytest.mark.parametrize("kind", [FMClassifier, DeepFMClassifier])
@pytest.mark.parametrize("optimizer", ["cfsgd", "adam"])
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_a_model_whose_optimizer_is_gone_goes_on_with_a_new_one(kind, optimizer, learn, tmp_path):
    X, y = clicks(200)
    estimator = kind(**{**SMALL, "lr": 0.1}, optimizer=optimizer)
    getattr(estimator, learn)(X, y).save(tmp_path / "model")
    (tmp_path / "model" / "optimizer.safetensors").unlink()
    with pytest.warns(DataWarning, match=r"no optimizer.safetensors.*partial_fit begins"):
        loaded = kind.load(tmp_path / "model")
    assert np.array_equal(loaded.decision_function(X), estimator.decision_function(X))
    loaded.partial_fit(X, y)
    assert loaded._learned.engine.samples == 200
    assert not np.array_equal(loaded.decision_function(X), estimator.decision_function(X))


DAMAGED = {
    "[]": "its JSON is not one object",
    "{}": "it has no 'format'",
    '{"format": 2}': "it has no 'columns'",
    '{"format": 2, "columns": 7}': "it describes no columns",
    '{"format": 2, "columns": [{"name": "a"}]}': "it has no 'edges'",
    '{"format": 2, "columns": [{"edges": [], "nose": 2}]}': "it describes no columns",
    "{": "Expecting property name",
}


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_dictionaries_are_called_so_in_words(text, tmp_path):
    X, y = clicks(60)
    FMClassifier(**SMALL).fit(X, y).save(tmp_path / "model")
    (tmp_path / "model" / "encoder.json").write_text(text)
    with pytest.raises(DataError) as error:
        FMClassifier.load(tmp_path / "model")
    expected = f"encoder.json: the file is damaged ({DAMAGED[text]}"
    assert expected in str(error.value)
    assert str(error.value).endswith("); train again")


def test_the_encoder_keeps_from_which_count_on_tokens_have_ids(tmp_path):
    X, y = clicks(200)
    estimator = FMClassifier(**SMALL, min_count=7).fit(X, y)
    estimator.encoder_.save(tmp_path)
    assert Encoder.load(tmp_path).min_count == estimator.encoder_.min_count == 7


def test_counts_of_a_dictionary_may_be_large():
    from freqsgd.estimators.fitted import counts_of

    X, y = clicks(60)
    encoder = FMClassifier(**SMALL).fit(X, y).encoder_
    seen = np.concatenate([np.append(0, counts.to_numpy()) for counts in encoder.counts()])
    assert counts_of(seen).dtype == torch.int32
    assert counts_of(seen * 2**31).tolist() == (seen * 2**31).tolist()
