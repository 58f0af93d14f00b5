"""Rows of tables by hashing, against the same in plain Python."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from freqsgd.tables.encoders.columns import Column
from freqsgd.tables.encoders.hashing import HashCoder
from freqsgd.tables.fields import ABSENT
from freqsgd.tables.readers.reader import Block, RawText
from tests.tables.slow_hash import slow_row

ROWS = 2**31 - 1  # so that hardly any two tokens meet

TEXTS = [
    *("", "a", "ab", "abcdefgh", "abcdefghi", "é" * 9, "x" * 100, " ", " 1", "1 ", "+1", "1.0"),
    *("0", "-0", "00", "007", "7", "-7", "--7", "-", "1e3", "12345678", "123456789012345678"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("-9223372036854775809", "18446744073709551617", "99999999999999999999", "٣", "1\x00"),
    *(
        "3.0",
        "-12.00",
        "0.0",
        "-0.0",
        "3." + "0" * 50,
        "3.",
        "3.5",
        "3.05",
        "3.50",
        ".0",
        "-.0",
        ".",
    ),
    *(
        "-.",
        "3..0",
        "3.0.0",
        "3.-0",
        "3.0e0",
        "3.0 ",
        " 3.0",
        "+3.0",
        "03.0",
        "-03.0",
        "3,0",
        "3.0\x00",
    ),
    *("9223372036854775807.0", "9223372036854775808.0", "-9223372036854775808.000"),
    *("-9223372036854775809.0", "12345678901234567890.0", "0" * 30 + ".0", "a.0", "1a.0"),
]


def ids_of(frame, columns, rows):
    block = Block(frame, None, np.arange(1, len(frame) + 1), "row", [], 1.0)
    return HashCoder(columns, rows).code(block)


def hashed(values, dtype=None, field=0, rows=ROWS):
    """The rows of a column that is the given field."""
    columns = [Column(f"c{n}") for n in range(field + 1)]
    series = pl.Series(values, dtype=dtype)
    frame = pl.DataFrame({column.name: series for column in columns})
    return ids_of(frame, columns, [rows] * (field + 1))[:, field].tolist()


@pytest.mark.parametrize("rows", [1, 2, 1000, 10**8, ROWS])
@pytest.mark.parametrize("field", [0, 3])
def test_texts_and_integers_as_in_plain_python(rows, field):
    numbers = [0, 1, -1, 7, 10**6, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), None]
    assert hashed(TEXTS, field=field, rows=rows) == [slow_row(field, t, rows) for t in TEXTS]
    assert hashed(numbers, field=field, rows=rows) == [slow_row(field, n, rows) for n in numbers]


def test_texts_of_any_length_and_place():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("0001239a-.é"), n % 23)) for n in range(20_000)]
    assert hashed(texts) == [slow_row(0, text, ROWS) for text in texts]


WHOLE = [*("3.0", "-12.00", "0.0", "-0.0", "7." + "0" * 50), "9223372036854775807.0"]
OTHERS = ("3.", "3.5", ".0", "3.0e0", "3e0", "03.0", "+3.0", " 3.0", "-0", "9223372036854775808.0")


def test_a_whole_number_written_as_a_float_is_that_integer_and_nothing_else_is():
    numbers = [3, -12, 0, 0, 7, 2**63 - 1]
    assert hashed(WHOLE) == hashed(numbers, pl.Int64)
    assert hashed(WHOLE) == [slow_row(0, number, ROWS) for number in numbers]
    assert len({*hashed(OTHERS), *hashed(["3", "0", "9223372036854775808", "-0.0"])}) == 13


def test_text_of_floats_is_hashed_in_files_without_quotes_as_in_frames():
    data = "".join(f"{text};{text[::-1]}\n" for text in WHOLE + list(OTHERS)).encode()
    stops = np.array([n for n, byte in enumerate(data) if byte in b";\n"], np.int32).reshape(-1, 2)
    columns = [Column("a"), Column("b")]
    block = Block(
        pl.DataFrame(), RawText(data, stops, ["a", "b"]), np.arange(len(stops)), "line", [], 1
    )
    found = HashCoder(columns, [ROWS, ROWS]).code(block)
    wanted = [(slow_row(0, t, ROWS), slow_row(1, t[::-1], ROWS)) for t in (*WHOLE, *OTHERS)]
    assert found.tolist() == [list(row) for row in wanted]


@pytest.mark.parametrize(
    "dtype", [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
)
def test_the_type_of_an_integer_makes_no_difference(dtype):
    values = [0, 1, None, 127, 42]
    assert hashed(values, dtype) == hashed(["0", "1", "", "127", "42"])
    assert hashed([0, 127], dtype) == hashed(["0", "127"])


def test_integers_beyond_64_bits_with_a_sign_are_texts():
    values = [2**64 - 1, 5, None, 2**63]
    assert hashed(values, pl.UInt64) == [slow_row(0, value, ROWS) for value in values]


def test_other_types_are_hashed_as_text():
    assert hashed([True, None]) == [slow_row(0, value, ROWS) for value in ("true", "")]
    assert hashed(["a", "b"], pl.Categorical) == [slow_row(0, value, ROWS) for value in "ab"]


def test_numbers_are_put_into_bins_first():
    frame = pl.DataFrame({"x": [100.0, 1.5, None, -3.2]})
    bins = [21, -1, "", -6]  # floor(log(100)^2), floor(x) - 2
    found = ids_of(frame, [Column("x", "number")], [ROWS])
    assert found[:, 0].tolist() == [slow_row(0, value, ROWS) for value in bins]


@pytest.mark.parametrize(
    "kind",
    [pl.List(pl.Int64), pl.List(pl.String), pl.Array(pl.Int32, 2)],
)
def test_bags(kind):
    inner = ("1", "2", "3") if kind == pl.List(pl.String) else (1, 2, 3)
    lists = [[inner[0], inner[1]], [inner[2], None], None]
    if not isinstance(kind, pl.Array):
        lists += [[], [inner[1]]]
    frame = pl.DataFrame({"u": pl.Series(range(len(lists))), "b": pl.Series(lists, dtype=kind)})
    found = ids_of(frame, [Column("u"), Column("b", "bag", width=2)], [ROWS, ROWS])
    row = [slow_row(1, value, ROWS) for value in ("", 1, 2, 3)]
    wanted = [[row[1], row[2]], [row[3], row[0]], [row[0], ABSENT], [ABSENT] * 2, [row[2], ABSENT]]
    assert found[:, 1:].tolist() == wanted[: len(lists)]


def test_lists_longer_than_a_bag_are_cut_off_and_told_once():
    frame = pl.DataFrame({"b": [[1, 2], [3, 4, 5]]})
    coder = HashCoder([Column("b", "bag", width=2)], [ROWS])
    block = Block(frame, None, np.arange(1, 3), "row", [], 1.0)
    found = coder.code(block), coder.code(block)
    (message,) = coder.messages()
    assert "'b' has a list of 3 tokens" in message
    assert found[0].tolist() == [[slow_row(0, v, ROWS) for v in row] for row in ([1, 2], [3, 4])]


def test_rows_are_met_about_equally_often():
    rows, each = 1000, 100
    for values in (np.arange(rows * each), [f"user-{n}" for n in range(rows * each)]):
        counts = np.bincount(hashed(values, rows=rows), minlength=rows)
        chi_square = ((counts - each) ** 2 / each).sum()
        assert abs(chi_square - rows) < 5 * (2 * rows) ** 0.5
