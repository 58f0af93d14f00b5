from __future__ import annotations

import csv
import io
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freqsgd.tables.csv_reader import find_rows

FINDERS = pytest.mark.parametrize("find", [find_rows, partial(find_rows, fast=False)])
CELLS = st.text(alphabet='ab,"\n \té', max_size=5)


@FINDERS
@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6), st.booleans())
@settings(max_examples=150, deadline=None)
def test_rows_end_where_the_csv_module_says(find, rows, quote_all):
    written = io.StringIO()
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(written, quoting=quoting, lineterminator="\n")
    ends, lines = [], []
    for row in rows:
        writer.writerow(row)
        ends.append(len(written.getvalue().encode()))
        lines.append(written.getvalue().count("\n"))
    found = find(written.getvalue().encode(), ",", quoted=True)
    assert found.ends.tolist() == ends
    assert found.cells.tolist() == [len(row) for row in rows]
    assert found.lines.tolist() == lines


@FINDERS
@given(st.lists(st.lists(st.text(alphabet='ab"é', max_size=4), min_size=1), max_size=6))
@settings(max_examples=100, deadline=None)
def test_without_quotes_cells_stop_at_every_separator_and_newline(find, rows):
    data = "".join("\t".join(row) + "\n" for row in rows).encode()
    found = find(data + b"cut\toff", "\t", quoted=False)
    assert found.stops.tolist() == [n for n, byte in enumerate(data) if byte in b"\t\n"]
    assert found.cells.tolist() == [len(row) for row in rows]


@FINDERS
def test_a_row_that_is_cut_off_inside_quotes_is_not_whole(find):
    found = find(b'a,b\n"c\n,d\n', ",", quoted=True)
    assert found.ends.tolist() == [4]
    assert found.stops.tolist() == [1, 3]


@given(st.text(alphabet='a,"\n', max_size=40), st.booleans())
@settings(max_examples=200, deadline=None)
def test_the_first_rows_are_found_without_numba_as_all_are_with_it(text, quoted):
    data = text.encode()
    one, other = (find_rows(data, ",", quoted=quoted, fast=fast) for fast in (True, False))
    for name in ("ends", "cells", "lines", "stops"):
        found, wanted = getattr(other, name), getattr(one, name)
        assert found.tolist() == wanted.tolist()
        assert found.dtype == wanted.dtype
