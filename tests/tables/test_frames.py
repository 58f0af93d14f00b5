"""Values of frames and arrays become the ids that a dictionary in plain Python gives them."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest

from freqsgd.errors import DataError
from freqsgd.tables.encoders.columns import table_columns
from freqsgd.tables.encoders.frames import encode_frame, frame_columns, new_encoder
from freqsgd.tables.encoders.values import read_frame
from freqsgd.tables.readers.files import open_reader
from tests.tables import slow


def encode(table, names=("a", "b"), min_count=1, numeric=(), rule="log"):
    frame = read_frame(table, list(names), numeric)
    return new_encoder(frame, frame_columns(frame, numeric, rule), min_count)


def columns(seed=0, rows=500):
    rng = np.random.default_rng(seed)
    return rng.geometric(0.1, rows), rng.geometric(0.3, rows)


TABLES = {
    "array of integers": lambda a, b: np.stack([a, b], 1),
    "array in Fortran order": lambda a, b: np.asfortranarray(np.stack([a, b], 1)),
    "array of whole floats": lambda a, b: np.stack([a, b], 1).astype(np.float32),
    "array of texts": lambda a, b: np.stack([a, b], 1).astype(str),
    "array of objects": lambda a, b: np.stack([a, b.astype(str).astype(object)], 1),
    "pandas": lambda a, b: pd.DataFrame({"a": a, "b": b}),
    "pandas texts": lambda a, b: pd.DataFrame({"a": a.astype(str), "b": b}),
    "pandas objects": lambda a, b: pd.DataFrame({"a": a.astype(str).astype(object), "b": b}),
    "pandas nullable": lambda a, b: pd.DataFrame({"a": a, "b": b}).astype("Int16"),
    "pandas categories": lambda a, b: pd.DataFrame({"a": a, "b": b.astype(str)}).astype("category"),
    "polars": lambda a, b: pl.DataFrame({"a": a, "b": b}),
    "polars texts": lambda a, b: pl.DataFrame({"a": a.astype(str), "b": b}),
    "polars categories": lambda a, b: pl.DataFrame(
        {"a": pl.Series(a.astype(str), dtype=pl.Categorical), "b": b}
    ),
    "polars objects": lambda a, b: pl.DataFrame(
        {"a": pl.Series(a.tolist(), dtype=pl.Object), "b": b}
    ),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("min_count", [1, 4])
def test_all_kinds_of_tables_give_the_same_ids(kind, min_count):
    a, b = columns()
    encoder, ids = encode(TABLES[kind](a, b), min_count=min_count)
    assert np.array_equal(ids, slow.encode([a.tolist(), b.tolist()], min_count))
    a, b = columns(seed=1)
    known = slow.number([c.tolist() for c in columns()], min_count)
    expected = [
        [known[0].get(int(x), 0), known[1].get(int(y), 0)] for x, y in zip(a, b, strict=True)
    ]
    assert 0 in np.array(expected)  # some are not known
    found = encode_frame(encoder, read_frame(TABLES[kind](a, b), ["a", "b"]))
    assert np.array_equal(found, expected)


DAY, MOMENT = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30)
VALUES = {
    "text": (["x", "y", None], ["x", "y", ""]),
    "booleans": ([True, False, None], ["true", "false", ""]),
    "integers": ([3, -4, None], ["3", "-4", ""]),
    "whole floats": ([3.0, -4.0, float("nan")], ["3", "-4", ""]),
    "dates": ([DAY, None], ["2024-02-29", ""]),
    "times": ([MOMENT, None], ["2024-02-29 12:30:00.000000", ""]),
    "spans": ([dt.timedelta(seconds=2), None], ["2000000", ""]),
    "lists": ([["x", None], [], None], [["x", ""], [], [""]]),
    "lists of floats": ([[1.0, float("nan")], [2.0]], [["1", ""], ["2"]]),
}
MIXED = {
    "tuples": ([(1, "a"), (2, "b")], ["(1, 'a')", "(2, 'b')"]),
    "all sorts": (
        [1, "1", 1.0, True, DAY, MOMENT, None, np.nan, pd.NaT, pd.NA, "", 10**30, np.int8(1)],
        [*"111", "true", "2024-02-29", "2024-02-29 12:30:00.000000", *[""] * 5, f"{10**30}", "1"],
    ),
    "texts and NaN": (["x", np.nan, "y"], ["x", "", "y"]),
}


def texts(table):
    encoder, ids = encode(table, ["a"])
    known = ["<rare>", *encoder.texts()[0]]
    found = [[known[i] for i in row if i >= 0] for row in ids]
    return found if encoder.columns[0].kind == "bag" else [token for [token] in found]


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_told_apart_by_their_text(kind):
    values, expected = VALUES[kind]
    assert texts(pl.DataFrame({"a": values}, strict=False)) == expected
    assert texts(pd.DataFrame({"a": values})) == expected
    assert texts(pd.DataFrame({"a": pd.Series(values, dtype=object)})) == expected


@pytest.mark.parametrize("kind", MIXED)
def test_objects_of_any_kind_are_told_apart_by_their_text(kind):
    values, expected = MIXED[kind]
    assert texts(pd.DataFrame({"a": pd.Series(values, dtype=object)})) == expected
    array = np.empty((len(values), 1), object)
    array[:, 0] = values
    assert texts(array) == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_are_one_token_in_any_unit(unit):
    frame = pd.DataFrame({"a": np.array(["2024-02-29T12:30", "NaT"], f"M8[{unit}]")})
    assert texts(frame) == ["2024-02-29 12:30:00.000000", ""]


def test_quantiles_are_those_of_files_also_of_more_values_than_are_looked_at(tmp_path):
    values = np.random.default_rng(0).exponential(1, 1_500_000)
    values[[5, 1_200_000]] = np.nan  # which are passed over
    frame = pl.DataFrame({"price": values}).fill_nan(None)
    cuts, paths = (0, 1_000_000, 1_400_000, None), []
    for begin, end in pairwise(cuts):
        paths.append(tmp_path / f"{begin}.parquet")
        frame[begin:end].write_parquet(paths[-1])
    frame.write_parquet(whole := tmp_path / "whole.parquet")
    (of_frame,) = frame_columns(frame, ["price"], "quantiles")
    for files in ([whole], paths):
        assert table_columns(list(map(open_reader, files)), (), ["price"], "quantiles") == (
            of_frame,
        )
    every_second = frame["price"].drop_nulls().to_numpy()[::2]
    assert of_frame.edges == tuple(np.quantile(every_second, np.arange(1, 64) / 64))


@pytest.mark.parametrize("rule", ["log", "quantiles"])
def test_numbers_are_binned(rule):
    rng = np.random.default_rng(0)
    values = np.round(rng.exponential(30, 400), 3)
    values[::7] = np.nan
    if rule == "log":
        bins = [slow.log_bin("" if np.isnan(v) else str(v)) for v in values]
    else:
        present = np.sort(values[~np.isnan(values)])
        edges = np.quantile(present, np.arange(1, 64) / 64)
        bins = ["" if np.isnan(v) else str(sum(v >= e for e in edges)) for v in values]
    for table in (values[:, None], pd.DataFrame({"a": values}), values[:, None].astype(object)):
        _, ids = encode(table, ["a"], numeric=["a"], rule=rule)
        assert np.array_equal(ids, slow.encode([bins]))


REFUSED = {
    "fractions": (pl.DataFrame({"a": [1.0, 0.5]}), "column 'a' holds 0.5.*numeric"),
    "infinity": (pl.DataFrame({"a": [1.0, np.inf]}), "column 'a' holds inf.*numeric"),
    "fractions among objects": (
        pd.DataFrame({"a": pd.Series(["x", 0.5], dtype=object)}),
        "column 'a' holds 0.5.*numeric",
    ),
    "fractions in lists": (pl.DataFrame({"a": [[0.5], [1.0]]}), "column 'a' holds 0.5"),
    "structs": (pl.DataFrame({"a": [{"x": 1}]}), "column 'a' is of type Struct"),
    "bytes": (pl.DataFrame({"a": [b"x"]}), "column 'a' is of type Binary"),
    "sets": (pd.DataFrame({"a": [{1}]}), r"column 'a' holds \{1\}; a set cannot"),
    "lists and texts": (
        pd.DataFrame({"a": pd.Series([["x"], "y"], dtype=object)}),
        "column 'a' holds both lists and single values such as 'y'",
    ),
    "lists and numbers": (
        pd.DataFrame({"a": pd.Series([["x"], np.int64(3)], dtype=object)}),
        "column 'a' holds both lists and single values such as 3$",
    ),
    "large sets": (
        pd.DataFrame({"a": [set(range(10**4))]}),
        r"holds \{0, 1, .{,30}\}; a set cannot",
    ),
    "long lists": (
        pl.DataFrame({"a": [["x"] * 257]}),
        "row 0: the list in column 'a' has 257 tokens",
    ),
    "broken text": (pd.DataFrame({"a": pd.Series(["\ud800"], dtype=object)}), "not Unicode"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_a_category_is_refused_by_name(kind):
    table, message = REFUSED[kind]
    with pytest.raises(DataError, match=message):
        encode(table, ["a"])


def test_a_column_stays_what_it_was():
    lists = pl.DataFrame({"a": [["x"], ["y"]]})
    single = pl.DataFrame({"a": ["x", "y"]})
    of_lists, _ = encode(lists, ["a"])
    of_single, _ = encode(single, ["a"])
    with pytest.raises(DataError, match="column 'a' must hold lists"):
        encode_frame(of_lists, read_frame(single, ["a"]))
    with pytest.raises(DataError, match="column 'a' must hold single values"):
        encode_frame(of_single, read_frame(lists, ["a"]))
    missing = read_frame(pl.DataFrame({"a": [None, None]}), ["a"])
    assert encode_frame(of_lists, missing).tolist() == [[0, -1], [0, -1]]


def test_numbers_that_are_none_are_refused_with_their_row():
    with pytest.raises(DataError, match="column 'a', row 1: 'much' is not a finite number"):
        encode(pl.DataFrame({"a": ["1", "much"]}), ["a"], numeric=["a"])
    with pytest.raises(DataError, match="column 'a' is of type Date"):
        encode(pl.DataFrame({"a": [DAY]}), ["a"], numeric=["a"])
    with pytest.raises(DataError, match="unknown numeric rule 'cubes'"):
        encode(pl.DataFrame({"a": [1.5]}), ["a"], numeric=["a"], rule="cubes")
