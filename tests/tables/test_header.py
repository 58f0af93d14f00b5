"""Columns of text files, of which only the start is read."""

from __future__ import annotations

import csv
import gzip
import io

import pytest

from freqsgd.errors import DataError
from freqsgd.tables import csv_reader
from freqsgd.tables.csv_reader import read_header
from freqsgd.tables.files import open_reader


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

    monkeypatch.setattr(csv_reader, "open_text", opened)
    return asked


@pytest.mark.parametrize("kind", [".csv", ".csv.gz"])
def test_of_a_large_file_only_the_start_is_read(tmp_path, bytes_read, kind):
    content = b"user,click\n" + b"1,0\n" * 500_000
    path = tmp_path / f"clicks{kind}"
    path.write_bytes(gzip.compress(content, 1) if kind.endswith(".gz") else content)
    assert read_header(path, open_reader(path).form).names == ["user", "click"]
    assert sum(bytes_read) <= 1 << 16


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("first", [1, 7, 64, 1 << 16])
def test_headers_longer_than_what_is_read_at_once(tmp_path, monkeypatch, bytes_read, first, ends):
    monkeypatch.setattr(csv_reader, "_FIRST_BYTES", first)
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
    monkeypatch.setattr("freqsgd.tables.csv_reader._LONGEST_ROW", 1 << 17)
    with pytest.raises(DataError, match="line 1: this row is longer than"):
        names_of(path)


def test_a_file_of_a_header_without_a_newline(tmp_path):
    (tmp_path / "clicks.tsv").write_text("user\tclick")
    assert names_of(tmp_path / "clicks.tsv") == ["user", "click"]
