"""Rows and headers of delimited text."""

from __future__ import annotations

import csv
import gzip
import io
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freqsgd.errors import DataError
from freqsgd.tables import StreamOptions, open_stream
from freqsgd.tables.readers.files import open_reader
from freqsgd.tables.readers.reader import text as text_reader
from freqsgd.tables.readers.text import find_rows, read_header

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


def names_of(path):
    reader = open_reader(path)
    found = read_header(path, reader.form)
    assert list(reader.schema()) == found.names
    return found.names


@pytest.fixture
def bytes_read(monkeypatch):
    """The bytes that were asked for, block by block."""
    asked = []

    class Counted(io.BytesIO):
        def read(self, size=-1):
            asked.append(size)
            return super().read(size)

    def opened(path):
        content = path.read_bytes()
        return Counted(gzip.decompress(content) if path.suffix == ".gz" else content)

    monkeypatch.setattr(text_reader, "open_text", opened)
    return asked


@pytest.mark.parametrize("kind", [".csv", ".csv.gz"])
def test_of_a_large_file_only_the_start_is_read(tmp_path, bytes_read, kind):
    content = b"user,click\n" + b"1,0\n" * 500_000
    path = tmp_path / f"clicks{kind}"
    path.write_bytes(gzip.compress(content, 1) if kind.endswith(".gz") else content)
    assert read_header(path, open_reader(path).form).names == ["user", "click"]
    assert sum(bytes_read) <= 1 << 16


def test_a_stream_is_opened_by_the_starts_of_its_files(tmp_path, bytes_read):
    for day in range(3):
        (tmp_path / f"day-{day}.csv").write_bytes(b"user,click\n" + b"1,0\n" * 500_000)
    own = {"path": str(tmp_path), "label": "click", "features": ("user",)}
    open_stream(StreamOptions(**own, hash_rows="10"))
    assert 0 < sum(bytes_read) <= 3 << 16


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("first", [1, 7, 64, 1 << 16])
def test_headers_longer_than_what_is_read_at_once(tmp_path, monkeypatch, bytes_read, first, ends):
    monkeypatch.setattr(text_reader, "_FIRST_BYTES", first)
    names = [*(f"column {n}" for n in range(200)), 'a "quoted", one', "of two\nlines", "é"]
    written = io.StringIO()
    csv.writer(written, lineterminator=ends).writerows([names, range(len(names))])
    (tmp_path / "wide.csv").write_bytes(b"\xef\xbb\xbf" * (first > 2) + written.getvalue().encode())
    assert names_of(tmp_path / "wide.csv") == names
    assert len(bytes_read) <= 2 * 14  # reads of two looks: blocks double


def test_a_quote_in_the_header_that_is_never_closed(tmp_path, monkeypatch):
    path = tmp_path / "clicks.csv"
    path.write_text('user,"click\n' + "1,0\n" * 50_000)
    with pytest.raises(DataError, match="line 1: a quote in this row is never closed"):
        names_of(path)
    monkeypatch.setattr("freqsgd.tables.readers.text._LONGEST_ROW", 1 << 17)
    with pytest.raises(DataError, match="line 1: this row is longer than"):
        names_of(path)


def test_a_file_of_a_header_without_a_newline(tmp_path):
    (tmp_path / "clicks.tsv").write_text("user\tclick")
    assert names_of(tmp_path / "clicks.tsv") == ["user", "click"]
