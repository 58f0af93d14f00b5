"""Models of hashed tokens predict raw files, and refuse to name tokens."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from freqsgd.errors import DataError
from freqsgd.nn.fm import FM
from freqsgd.recommender.folder import ENCODER, load_encoder, save_model
from freqsgd.recommender.predict import predict_file, predictor_for, probabilities
from freqsgd.sklearn import FMClassifier
from freqsgd.tables.encoders.hashing import HashEncoder, open_encoder
from freqsgd.vectors.vectors import Vectors
from tests.tables.days_of_files import frame_of, slow_ids, stream_of, write


@pytest.fixture
def model(tmp_path):
    """A model in ``tmp_path / "model"`` for the stream of ``tmp_path / "days"``."""
    write(frame_of(300, 0), tmp_path / "days" / "1.parquet")
    stream = stream_of(tmp_path / "days")
    model = FM([field.size for field in stream.fields], 4)
    model.tokens.weight.data.normal_()
    (tmp_path / "model").mkdir()
    save_model(tmp_path / "model", model, stream, {"record": {}, "data": stream.summary()})
    return model


@pytest.mark.parametrize("kind", [".parquet", ".csv", ".tsv", ".csv.gz"])
def test_predictions_of_raw_files_have_the_bits_of_training(tmp_path, model, kind):
    write(frame_of(300, 0).drop("click"), tmp_path / f"new{kind}")
    ids = np.concatenate([chunk.ids for chunk in stream_of(tmp_path / "days").chunks(0, 1)])
    logits = predictor_for(model).predict(ids)
    wanted = np.exp(-np.logaddexp(np.float32(0), -logits))
    found = np.concatenate(list(probabilities(tmp_path / "model", str(tmp_path / f"new{kind}"))))
    assert found.tobytes() == wanted.tobytes()
    predict_file(tmp_path / "model", str(tmp_path / f"new{kind}"), tmp_path / "out.csv")
    assert len(pl.read_csv(tmp_path / "out.csv")) == 300


def as_pandas(frame):
    """The frame as pandas has it: integers beside a missing value are floats."""
    floats = frame["user"].cast(pl.Float64).to_numpy()
    return pd.DataFrame({"user": floats, "item": frame["item"].to_list()})


WRITERS = {
    "integers.csv": lambda frame, path: frame.write_csv(path),
    "integers.parquet": lambda frame, path: frame.write_parquet(path),
    "pandas.csv": lambda frame, path: as_pandas(frame).to_csv(path, index=False),
    "pandas.tsv": lambda frame, path: as_pandas(frame).to_csv(path, index=False, sep="\t"),
    "quoted.csv": lambda frame, path: as_pandas(frame).to_csv(path, index=False, quoting=1),
    "decimals.csv": lambda frame, path: as_pandas(frame).to_csv(
        path, index=False, float_format="%.2f"
    ),
    "floats.parquet": lambda frame, path: pl.DataFrame(
        {"user": as_pandas(frame)["user"].to_numpy(), "item": frame["item"]}
    ).write_parquet(path),
    "text.parquet": lambda frame, path: frame.with_columns(
        pl.col("user").cast(pl.Float64).cast(pl.String)
    ).write_parquet(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_integers_that_became_floats_get_the_predictions_of_integers(tmp_path, model, name):
    frame = frame_of(300, 0).select("user", "item")
    assert frame["user"].null_count()
    WRITERS[name](frame, tmp_path / name)
    if name in ("pandas.csv", "pandas.tsv", "quoted.csv", "decimals.csv"):
        assert b"3.0" in (tmp_path / name).read_bytes()
    (ids,) = open_encoder(tmp_path / "model").encode_file(str(tmp_path / name))
    assert ids.tolist() == slow_ids(frame)
    found = np.concatenate(list(probabilities(tmp_path / "model", str(tmp_path / name))))
    wanted = 1 / (1 + np.exp(-predictor_for(model).predict(np.array(slow_ids(frame), np.int32))))
    assert np.allclose(found, wanted, rtol=1e-5)


def test_an_encoder_is_the_same_after_loading(tmp_path, model):
    loaded, encoder = open_encoder(tmp_path / "model"), stream_of(tmp_path / "days").encoder
    assert isinstance(loaded, HashEncoder)
    assert loaded.fingerprint == encoder.fingerprint
    assert (loaded.kind, loaded.columns, loaded.fields) == (
        "table",
        encoder.columns,
        encoder.fields,
    )


def test_it_serves_as_the_encoding_of_other_days(tmp_path, model):
    more = {"features": (), "hash_rows": "", "dictionary": str(tmp_path / "model")}
    again, first = (stream_of(tmp_path / "days", **extra) for extra in (more, {}))
    assert again.fingerprint == first.fingerprint
    assert again.summary() == first.summary()


def test_what_needs_names_of_tokens_is_refused_in_one_line(tmp_path, model):
    for use in (
        lambda: Vectors.of_model(tmp_path / "model", "user"),
        lambda: FMClassifier.load(tmp_path / "model"),
    ):
        with pytest.raises(DataError, match="its tokens were hashed") as caught:
            use()
        assert "\n" not in str(caught.value)


def test_encoders_that_do_not_fit(tmp_path, model, monkeypatch):
    path = tmp_path / "model" / "encoder.json"
    monkeypatch.setattr(
        "freqsgd.tables.encoders.encoder._checksum", lambda values: values["checksum"]
    )
    described = json.loads(path.read_text())
    for changed, message in (
        ({"version": 1}, "hashed by version 1"),  # other rows for 3.0
        ({"version": 2}, "hashed by version 2"),  # other rows for True
        ({"format": 9}, "the format is 9"),
        ({"rows": [7, 7]}, "belong to another model"),
        ({"rows": [7]}, "damaged"),
        ({"rows": None}, "damaged"),
    ):
        path.write_text(json.dumps({**described, **changed}))
        with pytest.raises(DataError, match=message):
            load_encoder(tmp_path / "model", model, {ENCODER: described["checksum"]})
