from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freqsgd.tables.encoders.tokens import UNKNOWN, TokenTable, count_codes


def first_seen(pairs):
    """Codes by a dictionary: the order in which pairs are first seen."""
    codes = {}
    return [codes.setdefault(pair, len(codes)) for pair in pairs]


@given(st.lists(st.lists(st.text(max_size=20), max_size=30), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_codes_are_those_of_a_dictionary(columns):
    table = TokenTable()
    codes = [
        code
        for field, column in enumerate(columns)
        for code in table.code_texts(pl.Series(column, dtype=pl.String), field, add=True).tolist()
    ]
    pairs = [(field, text) for field, column in enumerate(columns) for text in column]
    assert codes == first_seen(pairs)
    distinct = list(dict.fromkeys(pairs))
    assert table.texts(np.arange(len(table))).to_list() == [text for _, text in distinct]
    assert table.fields().tolist() == [field for field, _ in distinct]


def test_codes_stay_the_same_while_the_table_grows(monkeypatch):
    monkeypatch.setattr("freqsgd.tables.encoders.tokens._AT_ONCE", 3000)
    random = np.random.default_rng(0)
    texts = [f"token {n}" * int(random.integers(1, 6)) for n in random.integers(0, 60_000, 100_000)]
    table = TokenTable()
    codes = np.concatenate(
        [
            table.code_texts(pl.Series(texts[start : start + 7000]), 3, add=True)
            for start in range(0, len(texts), 7000)
        ]
    )
    assert codes.tolist() == first_seen(texts)
    assert table.texts(np.arange(len(table))).to_list() == list(dict.fromkeys(texts))
    assert table.code_texts(pl.Series(texts[:10]), 3, add=True).tolist() == codes[:10].tolist()


def test_cells_of_rows_get_the_codes_of_their_texts():
    table = TokenTable()
    rows = [["a", "", "long enough for three words"], ["b", "x", "a"], ["a", "y", ""]]
    data = "".join("\t".join(row) + "\n" for row in rows).encode()
    stops = np.flatnonzero(np.isin(np.frombuffer(data, np.uint8), [9, 10])).astype(np.int32)
    codes = np.full((3, 3), 99, np.int32)
    places = np.array([[0, -1, 1], [2, 0, 0], [0, 0, 0]])  # the second cell is passed over
    table.code_rows(data, stops.reshape(3, 3), places, codes, add=True)
    assert (
        codes.tolist() == [[1, 99, 0], [3, 99, 2], [4, 99, 0]] or codes[:, 1].tolist() == [99] * 3
    )
    for row, cells in enumerate(rows):
        for cell, place in ((0, 2), (2, 0)):
            assert table.texts(codes[row, [place]].astype(np.int64)).item() == cells[cell]


def test_the_same_text_in_two_fields_is_two_tokens():
    table = TokenTable()
    first = table.code_texts(pl.Series(["a"]), 0, add=True)
    second = table.code_texts(pl.Series(["a"]), 1, add=True)
    assert first.tolist() != second.tolist()


def test_a_token_that_is_only_looked_up_is_not_added():
    table = TokenTable()
    table.code_texts(pl.Series(["a", "b"]), 0, add=True)
    assert table.code_texts(pl.Series(["b", "c", "a"]), 0, add=False).tolist() == [1, UNKNOWN, 0]
    assert len(table) == 2


@pytest.mark.parametrize("add", [True, False])
@pytest.mark.parametrize("times", [1, 2])
def test_a_table_that_could_not_grow_is_whole_again_in_the_next_call(monkeypatch, add, times):
    texts = pl.Series([f"token {n}" for n in range(20_000)])
    table = TokenTable()
    table.code_texts(texts[:3000], 0, add=True)
    with monkeypatch.context() as patch:
        patch.setattr("freqsgd.tables.encoders.tokens.fill_slots", _no_memory)
        for _ in range(times):
            with pytest.raises(MemoryError):
                table.code_texts(texts, 0, add=True)
    if add:
        assert table.code_texts(texts, 0, add=True).tolist() == list(range(20_000))
    known = len(table)
    assert known >= 3000
    expected = [n if n < known else UNKNOWN for n in range(20_000)]
    assert table.code_texts(texts, 0, add=False).tolist() == expected


def _no_memory(*_):
    raise MemoryError


def test_codes_beyond_the_counts_are_refused():
    counts = np.zeros(3, np.int64)
    count_codes(np.int32([[0, 2], [-1, 2]]), counts)
    assert counts.tolist() == [1, 0, 2]
    with pytest.raises(IndexError):
        count_codes(np.int32([[0, 3]]), counts)
