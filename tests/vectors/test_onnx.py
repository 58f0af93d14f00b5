"""The ONNX graph predicts what the model predicts, for ids and for raw rows."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import polars as pl
import pytest

from freqsgd.errors import DataError
from freqsgd.recommender.folder import load_model
from freqsgd.recommender.predict import predictor_for, probabilities
from freqsgd.vectors.export import export_model
from tests.vectors.conftest import ODD, rows

MODELS = ["fm", "deepfm", "one-field", "generated"]


@pytest.fixture
def exported(folders, tmp_path):
    def export(name):
        files = export_model(folders / name, "onnx", tmp_path / "model.onnx")
        assert [file.name for file in files] == ["model.onnx", "model.tokens.json"]
        session = onnxruntime.InferenceSession(files[0], providers=["CPUExecutionProvider"])
        fields = json.loads(files[1].read_text("utf-8"))["fields"]
        return lambda ids: session.run(["probability"], {"ids": ids})[0], fields

    return export


def edges_and_random_ids(fields, count=200):
    """Random ids; lowest and highest ones, and empty columns where bags have them."""
    rng = np.random.default_rng(0)
    columns = []
    for field in fields:
        lowest = -1 if field["kind"] == "bag" else 0
        for _ in range(field["columns"]):
            column = rng.integers(lowest, field["size"], count)
            column[:4] = lowest, field["size"] - 1, 0, lowest
            columns.append(column)
    return np.stack(columns, 1)


@pytest.mark.parametrize("name", MODELS)
def test_it_predicts_as_the_model_does(folders, exported, name):
    predict, fields = exported(name)
    ids = edges_and_random_ids(fields)
    model, _ = load_model(folders / name)
    log_odds = predictor_for(model).predict(ids.astype(np.int32)).astype(np.float64)
    expected = 1 / (1 + np.exp(-log_odds))
    assert np.ptp(expected) > 0.1
    found = predict(ids)
    assert (found.dtype, found.shape) == (np.float32, (200,))
    assert np.abs(found - expected).max() < 2e-6
    assert predict(ids[:1]) == pytest.approx(expected[:1], abs=2e-6)
    assert predict(ids[:0]).shape == (0,)


@pytest.mark.parametrize("name", MODELS)
def test_ids_out_of_range_make_their_sample_nan_and_no_other(exported, name):
    predict, fields = exported(name)
    of_column = [field for field in fields for _ in range(field["columns"])]
    for column, field in enumerate(of_column):
        below = -2 if field["kind"] == "bag" else -1
        for wrong in (field["size"], field["size"] + 1, 2**40, below, -(2**63)):
            ids = np.zeros((3, len(of_column)), np.int64)
            ids[1, column] = wrong
            assert np.isnan(predict(ids)).tolist() == [False, True, False], (column, wrong)


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_is_valid_and_as_documented(folders, tmp_path, name):
    export_model(folders / name, "onnx", tmp_path / "served")
    onnx.checker.check_model(tmp_path / "served", full_check=True)
    graph = onnx.load(tmp_path / "served").graph
    assert [(i.name, i.type.tensor_type.shape.dim[0].dim_param) for i in graph.input] == [
        ("ids", "samples")
    ]
    assert [o.name for o in graph.output] == ["probability"]
    assert (tmp_path / "served.tokens.json").exists()


def raw_to_ids(row, fields):
    """What a program that serves the model does, by docs/export.md and the dictionary alone."""
    ids = []
    for field in fields:
        value = row[field["name"]]
        if field["kind"] == "bag":
            found = [field["ids"].get(token, 0) for token in value][: field["columns"]]
            ids += found + [-1] * (field["columns"] - len(found))
            continue
        if value is None:
            text = ""
        elif "bins" not in field:
            text = str(value)
        elif field["bins"] == "log":
            text = str(math.floor(math.log(value) ** 2) if value > 2 else math.floor(value) - 2)
        else:
            text = str(sum(edge <= value for edge in field["bins"]["edges"]))
        ids.append(field["ids"].get(text, 0))
    return ids


@pytest.mark.parametrize("name", ["fm", "deepfm"])
def test_raw_rows_are_served_with_the_dictionary_alone(folders, exported, tmp_path, name):
    predict, fields = exported(name)
    new = rows(seed=5).with_columns(
        pl.when(pl.col("user") == "u3").then(pl.lit("unknown")).otherwise("user").alias("user"),
        pl.when(pl.col("user") == "u4").then(pl.lit(["t1"] * 9)).otherwise("tags").alias("tags"),
    )
    assert new[ODD].null_count() > 0
    new.write_parquet(tmp_path / "new.parquet")
    expected = np.concatenate(list(probabilities(folders / name, str(tmp_path / "new.parquet"))))
    ids = np.array([raw_to_ids(row, fields) for row in new.iter_rows(named=True)])
    assert np.abs(predict(ids) - expected).max() < 2e-6


def test_a_model_without_dictionaries_has_null_for_them(exported):
    _, fields = exported("generated")
    assert [(field["name"], field["ids"]) for field in fields] == [
        ("field1", None),
        ("field2", None),
    ]


def test_without_onnx_it_says_what_to_install(folders, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(DataError, match=r"pip install 'freqsgd\[onnx\]'"):
        export_model(folders / "fm", "onnx", tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("crash", [1, 2])
def test_a_crash_leaves_no_model_with_the_dictionary_of_another(
    folders, tmp_path, monkeypatch, crash
):
    out, dictionary = tmp_path / "model.onnx", tmp_path / "model.tokens.json"
    out.write_text("old")
    dictionary.write_text("old")
    renamed = []

    def rename(self, target):
        renamed.append(target)
        if len(renamed) == crash:
            raise KeyboardInterrupt
        return Path.rename(self, target)

    monkeypatch.setattr(Path, "replace", rename)
    with pytest.raises(KeyboardInterrupt):
        export_model(folders / "fm", "onnx", out, force=True)
    left = [path.read_bytes() for path in (out, dictionary) if path.exists()]
    assert len(left) < 2 or left == [b"old", b"old"]
