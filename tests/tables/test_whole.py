"""Whole floats are integers, wherever they come from."""

from __future__ import annotations

import math
import random

import numpy as np
import polars as pl
import pytest

from freqsgd.errors import DataError
from freqsgd.inspection.document import inspect_data
from freqsgd.inspection.options import InspectionOptions
from freqsgd.tables.loading import load, open_stream
from freqsgd.tables.spec import DataOptions, StreamOptions
from freqsgd.tables.values import NotWholeError, read_frame, token_text, whole_float, whole_floats

NAN = math.nan
EXACT = {np.float16: 2**11, np.float32: 2**24, np.float64: 2**53}


@pytest.mark.parametrize("kind", EXACT)
def test_whole_floats_become_integers_and_nan_a_missing_value(kind):
    most = EXACT[kind]
    values = np.array([3, -0.0, NAN, -7, most, -most], kind)
    wanted = [3, 0, None, -7, most, -most]
    assert whole_floats(pl.Series(values)).to_list() == wanted
    lists = pl.Series([values.tolist(), [], None], dtype=pl.List(pl.Series(values).dtype))
    assert whole_floats(lists).to_list() == [wanted, [], None]
    arrays = pl.Series([values.tolist()], dtype=pl.Array(pl.Series(values).dtype, len(values)))
    assert whole_floats(arrays).to_list() == [wanted]
    assert [None if np.isnan(v) else whole_float(v) for v in values] == wanted
    assert read_frame(values[:, None], ["a"])["a"].to_list() == wanted


@pytest.mark.parametrize("kind", EXACT)
def test_floats_that_may_stand_for_another_number_are_refused(kind):
    above = np.nextafter(kind(EXACT[kind]), kind(np.inf))
    for values in (pl.Series([1, 2, above], dtype=pl.Series([above]).dtype), pl.Series([[above]])):
        with pytest.raises(NotWholeError, match=f"whole numbers above {EXACT[kind]:,} apart"):
            whole_floats(values.cast(values.dtype))
    with pytest.raises(NotWholeError, match="apart"):
        whole_float(above)


@pytest.mark.parametrize("value", [0.5, -1e-9, math.inf])
def test_other_floats_are_refused_with_their_row(value):
    with pytest.raises(NotWholeError, match=r"which is not a category.*--numeric") as error:
        whole_floats(pl.Series([1.0, None, value, value]))
    assert error.value.row == 2
    with pytest.raises(NotWholeError) as error:
        whole_floats(pl.Series([[1.0], None, [], [2.0, value], [value]]))
    assert error.value.row == 3


def test_what_is_no_float_stays_as_it_is():
    for values in (pl.Series(["1.0"]), pl.Series([[1]]), pl.Series([None]), pl.Series([2**60])):
        assert whole_floats(values) is values
    assert token_text("1.5") == "1.5"


@pytest.fixture
def rows():
    draw = random.Random(1)
    return pl.DataFrame(
        {
            "click": [n % 2 for n in range(400)],
            "user": [draw.choice([None, *range(1, 9)]) for _ in range(400)],
            "tags": [[draw.randrange(5) for _ in range(draw.randrange(3))] for _ in range(400)],
        }
    )


def as_floats(rows, kind):
    users = pl.col("user").cast(kind)
    return rows.with_columns(users.fill_null(NAN), pl.col("tags").cast(pl.List(kind)))


@pytest.mark.parametrize("kind", [pl.Float32, pl.Float64])
def test_floats_in_parquet_have_the_ids_of_integers(rows, tmp_path, kind):
    files = {"whole": rows, "floats": as_floats(rows, kind)}
    found = {}
    for name, frame in files.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
        path = str(tmp_path / f"{name}.parquet")
        options = {"path": path, "label": "click", "features": ("user", "tags")}
        stream = open_stream(StreamOptions(**options, hash_rows="1000"))
        found[name] = {
            "table": load(DataOptions(**options)).ids.tolist(),
            "one pass": [chunk.ids.tolist() for chunk in stream.chunks(0, 1)],
            "inspect": [
                field["most_frequent"]
                for field in inspect_data(InspectionOptions(path=path, label="click")).fields
            ],
        }
    assert found["floats"] == found["whole"]
    known = load(DataOptions(**{**options, "path": str(tmp_path / "whole.parquet")})).encoder
    (ids,) = known.encode_file(str(tmp_path / "floats.parquet"))
    assert ids.tolist() == found["whole"]["table"]


def test_fractions_in_a_file_are_refused_with_place_and_column(rows, tmp_path):
    wrong = pl.when(pl.int_range(pl.len()) == 7).then(0.5).otherwise(pl.col("user"))
    rows.with_columns(wrong.alias("user")).write_parquet(tmp_path / "rows.parquet")
    options = {"path": str(tmp_path / "rows.parquet"), "label": "click", "features": ("user",)}
    words = r"rows.parquet, row 8: column 'user' holds 0.5.*--numeric"
    with pytest.raises(DataError, match=words):
        load(DataOptions(**options))
    with pytest.raises(DataError, match=words):
        list(open_stream(StreamOptions(**options, hash_rows="10")).chunks(0, 1))
