"""The same value is the same token, whatever holds it."""

from __future__ import annotations

import datetime
import math
import random

import numpy as np
import pandas as pd
import polars as pl
import pytest

from freqsgd.errors import DataError
from freqsgd.inspection.document import inspect_data
from freqsgd.inspection.options import InspectionOptions
from freqsgd.tables.encoders.frames import encode_frame, frame_columns, new_encoder
from freqsgd.tables.encoders.tokens import TokenTable
from freqsgd.tables.encoders.values import (
    NotWholeError,
    plain_text,
    read_frame,
    token_text,
    whole_float,
    whole_floats,
)
from freqsgd.tables.loading import load, open_stream
from freqsgd.tables.spec import DataOptions, StreamOptions
from tests.tables.slow_hash import slow_row

ROWS = 60
# The values of a column of each type, and the texts of their tokens.
COLUMNS = {
    "integer": ([3, -7, 0, 2**62, -(2**63), None], pl.Int64),
    "whole": ([3.0, -7.0, -0.0, 0.0, 2.0**53, None], pl.Float64),
    "small": ([3.0, -7.0, -0.0, 16.0, 4096.0, None], pl.Float32),
    "boolean": ([True, False, None], pl.Boolean),
    "text": (["3", "3.0", "03", "3.5", "-0.0", "True", "true", "1e3", "é", "", None], pl.String),
    "large": ([2**64 - 1, 2**63, 2**53 + 1, 5, None], pl.UInt64),
    "date": ([datetime.date(2024, 1, 31), datetime.date(1969, 7, 20), None], pl.Date),
}
TOKENS = {
    "integer": {"3", "-7", "0", str(2**62), str(-(2**63)), ""},
    "whole": {"3", "-7", "0", str(2**53), ""},
    "small": {"3", "-7", "0", "16", "4096", ""},
    "boolean": {"true", "false", ""},
    "text": {"3", "03", "3.5", "0", "true", "1e3", "é", ""},
    "large": {str(2**64 - 1), str(2**63), str(2**53 + 1), "5", ""},
    "date": {"2024-01-31", "1969-07-20", ""},
}
NAMES = tuple(COLUMNS)


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    draw = random.Random(0)
    columns = {"click": pl.Series([n % 2 for n in range(ROWS)])}
    for name, (values, kind) in COLUMNS.items():
        chosen = [values[n] if n < len(values) else draw.choice(values) for n in range(ROWS)]
        columns[name] = pl.Series(chosen, dtype=kind)
    return pl.DataFrame(columns)


def as_pandas(table: pl.DataFrame) -> pd.DataFrame:
    """With pandas' own types: objects, nullable integers, floats with NaN."""
    kinds = {"integer": "Int64", "whole": "float64", "small": "float32", "large": "UInt64"}
    return pd.DataFrame(
        {n: pd.Series(table[n].to_list(), dtype=kinds.get(n, object)) for n in table.columns}
    )


def as_objects(table: pl.DataFrame) -> np.ndarray:
    """As numpy's array of Python objects."""
    array = np.empty((len(table), len(NAMES)), object)
    for place, name in enumerate(NAMES):
        array[:, place] = table[name].to_list()
    return array


def write_quoted(table: pl.DataFrame, path) -> None:
    table.write_csv(path, quote_style="always")


WRITERS = {
    "polars.csv": lambda table, path: table.write_csv(path),
    "quoted.csv": write_quoted,
    "polars.tsv": lambda table, path: table.write_csv(path, separator="\t", quote_style="never"),
    "pandas.csv": lambda table, path: as_pandas(table).to_csv(path, index=False),
    "pandas.tsv": lambda table, path: as_pandas(table).to_csv(path, index=False, sep="\t"),
    "polars.parquet": lambda table, path: table.write_parquet(path),
}
FRAMES = {
    "polars": lambda table: table.select(NAMES),
    "pandas": lambda table: as_pandas(table)[list(NAMES)],
    "numpy": as_objects,
}


def texts_of(encoder, ids) -> list[list[str]]:
    names = [encoder.tokens(field) for field in range(len(NAMES))]
    return [[names[field][n] for field, n in enumerate(row)] for row in ids.tolist()]


@pytest.fixture(scope="module")
def known(table):
    """The encoder of the polars frame, and the ids of its rows."""
    frame = read_frame(table.select(NAMES), NAMES)
    return new_encoder(frame, frame_columns(frame, (), "log"), 1)


def test_tokens_are_the_texts_of_values(known):
    encoder, _ = known
    for field, name in enumerate(NAMES):
        assert set(encoder.texts()[field]) == TOKENS[name], name


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_have_the_same_tokens(table, known, kind):
    encoder, ids = known
    frame = read_frame(FRAMES[kind](table), NAMES)
    assert np.array_equal(encode_frame(encoder, frame), ids)
    own, own_ids = new_encoder(frame, frame_columns(frame, (), "log"), 1)
    assert [own.texts()[n].to_list() for n in range(len(NAMES))] == [
        encoder.texts()[n].to_list() for n in range(len(NAMES))
    ]
    assert np.array_equal(own_ids, ids)


@pytest.mark.parametrize("name", WRITERS)
def test_files_have_the_same_tokens(table, known, tmp_path, name):
    WRITERS[name](table, tmp_path / name)
    options = {"path": str(tmp_path / name), "label": "click", "features": NAMES}
    loaded = load(DataOptions(**options))
    encoder, ids = known
    assert texts_of(loaded.encoder, loaded.ids) == texts_of(encoder, ids)
    (found,) = encoder.encode_file(options["path"])  # a model of a frame reads the file
    assert np.array_equal(found, ids)
    stream = open_stream(StreamOptions(**options, hash_rows="1000000"))
    rows = np.concatenate([chunk.ids for chunk in stream.chunks(0, 1)])
    tokens = [["" if t == "<missing>" else t for t in row] for row in texts_of(encoder, ids)]
    wanted = [[slow_row(n, token, 10**6) for n, token in enumerate(row)] for row in tokens]
    assert rows.tolist() == wanted


SPELLINGS = ["3.0", "3.00", "3.", "3", "-3.0", "-0.0", "-0", "0.0", "00.0", "+3.0", "3.05", "3.50"]
SPELLINGS += ["True", "False", "TRUE", "Tree", "Fals", "Felse", "true", "", "0", "e", "the", ".0"]
SPELLINGS += ["9223372036854775807.0", "9223372036854775808.0", "-9223372036854775808.0", "٣.0"]


def test_texts_are_respelled_alike_by_all_means():
    table = TokenTable()
    table.code_texts(pl.Series(SPELLINGS), 0, add=True)
    found = table.texts(np.arange(len(table))).to_list()
    assert found == list(dict.fromkeys(map(plain_text, SPELLINGS)))


def test_words_of_text_are_left_as_they_are():
    table, codes = TokenTable(), np.empty((1, 2), np.int32)
    stops = np.array([[3, 8]], np.int32)
    table.code_rows(b"3.0 True", stops, np.array([[0, 0], [0, 1], [0, 0]]), codes, add=True)
    assert table.texts(codes[0].astype(np.int64)).to_list() == ["3.0", "True"]


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
                field.most_frequent
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
