"""Separators and columns that the user names, and RecBole's files, against Python's csv module."""

from __future__ import annotations

import csv
import gzip
import io
import os
import random
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from freqsgd.errors import DataError
from freqsgd.tables.encoders.encoder import Encoder
from freqsgd.tables.loading import load
from freqsgd.tables.readers.dialect import Dialect
from freqsgd.tables.spec import DataOptions
from freqsgd.words.files import list_text_files
from tests.tables import slow
from tests.tables.test_tables import HEADER, OPTIONS, QUOTED, TEXTS, check, make_rows

SEPARATORS = [",", ";", "\t", "|", " ", "::", "§", "~|~", "\x01"]


def is_quoted(name, separator):
    return len(separator.encode()) == 1 and (name.endswith(".csv") or separator in ",;")


def write(path, rows, separator):
    """Rows as the csv module writes them; where quotes have no meaning, just joined."""
    text = io.StringIO()
    if is_quoted(path.name, separator):
        csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
    else:
        text.writelines(separator.join(row) + "\n" for row in rows)
    path.write_bytes(text.getvalue().encode())


def read(path, separator):
    """The rows that the csv module finds; it knows no separators of several characters."""
    text = path.read_bytes().decode()
    if is_quoted(path.name, separator):
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    if len(separator) == 1:
        plain = csv.reader(io.StringIO(text), delimiter=separator, quoting=csv.QUOTE_NONE)
        return list(plain)
    return [line.split(separator) for line in text.splitlines()]


def made(path, separator, *, header):
    """The rows of a file that was written, as another reader finds them."""
    texts = QUOTED if is_quoted(path.name, separator) else TEXTS
    usable = [text for text in texts if is_quoted(path.name, separator) or separator not in text]
    write(path, [*([HEADER] if header else []), *make_rows(usable, 300)], separator)
    return read(path, separator)[int(header) :]


def ratings(tmp_path, name="u.data", count=200):
    """A file without a header, tabs between cells: user, item, rating."""
    draw = random.Random(1)
    lines = ("\t".join(str(draw.randrange(most)) for most in (9, 7, 6)) for _ in range(count))
    (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path / name


RATINGS = {"label": "rating", "positive_above": 2, "features": ("user", "item")}
TABS = {"separator": "tab", "columns": ("user", "item", "rating")}


@pytest.mark.parametrize("header", [True, False], ids=["header", "columns"])
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.data"])
@pytest.mark.parametrize("separator", SEPARATORS, ids=ascii)
def test_files_are_read_as_the_csv_module_reads_them(tmp_path, separator, name, header):
    rows = made(tmp_path / name, separator, header=header)
    own = {"separator": separator, "columns": () if header else tuple(HEADER)}
    check(load(DataOptions(path=str(tmp_path / name), **own, **OPTIONS)), rows)


@pytest.mark.parametrize("separator", [";", "::"])
def test_where_a_file_is_cut_into_blocks_changes_nothing(tmp_path, monkeypatch, separator):
    monkeypatch.setattr("freqsgd.tables.readers.text.BLOCK_BYTES", 101)
    rows = made(tmp_path / "x.csv", separator, header=False)
    own = {"separator": separator, "columns": tuple(HEADER)}
    check(load(DataOptions(path=str(tmp_path / "x.csv"), **own, **OPTIONS)), rows)


def test_columns_alone_keep_the_separator_that_the_name_tells(tmp_path):
    rows = made(tmp_path / "x.csv", ",", header=False)
    own = {"path": str(tmp_path / "x.csv"), "columns": tuple(HEADER)}
    check(load(DataOptions(**own, **OPTIONS)), rows)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress((tmp_path / "x.csv").read_bytes()))
    check(load(DataOptions(**{**own, "path": str(tmp_path / "x.csv.gz")}, **OPTIONS)), rows)


def test_blank_lines_at_the_start_are_no_rows(tmp_path):
    path = ratings(tmp_path)
    plain = load(DataOptions(path=str(path), **RATINGS, **TABS))
    path.write_text("\n\n" + path.read_text())
    assert np.array_equal(load(DataOptions(path=str(path), **RATINGS, **TABS)).ids, plain.ids)


def test_other_columns_and_separators_are_other_samples_in_the_cache(tmp_path):
    path = ratings(tmp_path)
    options = DataOptions(path=str(path), **RATINGS, **TABS)
    first = load(options)
    other = load(replace(options, columns=("item", "user", "rating")))
    assert first.fingerprint != other.fingerprint
    (tmp_path / "y.csv").write_text("a,b;c\n" + "0,x;1\n1,y;0\n" * 20)
    commas = DataOptions(path=str(tmp_path / "y.csv"), label="a", features=("b;c",))
    assert load(commas).fields[0].name == "b;c"
    semicolons = DataOptions(
        path=str(tmp_path / "y.csv"), label="c", features=("a,b",), separator=";"
    )
    assert load(semicolons).fields[0].name == "a,b"


def test_files_of_validation_and_testing_are_read_in_the_same_way(tmp_path):
    own = {"path": str(ratings(tmp_path)), "test_path": str(ratings(tmp_path, "u.test", 50))}
    own["validation_path"] = str(ratings(tmp_path, "u.valid", 30))
    dataset = load(DataOptions(**own, **RATINGS, **TABS))
    assert [len(dataset.splits.validation), len(dataset.splits.test)] == [30, 50]
    assert dataset.rows == 280


def encode(encoder, path, **dialect):
    return np.concatenate(list(encoder.encode_file(str(path), dialect=Dialect(**dialect))))


@pytest.fixture
def encoder(tmp_path):
    """Of a file without a header, saved and loaded; and the ids of the file."""
    dataset = load(DataOptions(path=str(ratings(tmp_path)), **RATINGS, **TABS))
    dataset.encoder.save(tmp_path)
    return Encoder.load(tmp_path), dataset.ids


def test_an_encoder_reads_files_as_those_that_it_was_made_from(tmp_path, encoder):
    known, ids = encoder
    assert np.array_equal(encode(known, tmp_path / "u.data"), ids)
    assert np.array_equal(encode(known, (tmp_path / "u.data").rename(tmp_path / "u.new")), ids)


def test_what_is_said_of_a_file_goes_before_what_an_encoder_remembers(tmp_path, encoder):
    known, ids = encoder
    rows = [line.split("\t") for line in (tmp_path / "u.data").read_text().splitlines()]
    (tmp_path / "pairs").write_text("".join(f"{item}\t{user}\n" for user, item, _ in rows))
    assert np.array_equal(encode(known, tmp_path / "pairs", columns=("item", "user")), ids)
    named = "".join(f"{user},{item}\n" for user, item, _ in rows)
    (tmp_path / "bare.csv").write_text(named)
    both = {"separator": ",", "columns": ("user", "item")}
    assert np.array_equal(encode(known, tmp_path / "bare.csv", **both), ids)
    (tmp_path / "named.csv").write_text("user,item\n" + named)
    assert np.array_equal(encode(known, tmp_path / "named.csv", separator=","), ids)
    pl.read_csv(tmp_path / "named.csv").write_parquet(tmp_path / "x.parquet")
    assert np.array_equal(encode(known, tmp_path / "x.parquet"), ids)


def test_an_encoder_without_a_dialect_is_described_as_before(tmp_path):
    (tmp_path / "x.csv").write_text("click,user\n" + "0,a\n1,b\n" * 10)
    options = DataOptions(path=str(tmp_path / "x.csv"), label="click", features=("user",))
    load(options).encoder.save(tmp_path)
    assert "dialect" not in (tmp_path / "encoder.json").read_text()


TYPED = ["user_id:token", "tags:token_seq", "rating:float", "price:float", "note"]


def interactions(tmp_path, name="ciao.inter", count=300):
    """RecBole's file, and its columns by plain Python."""
    draw, rows = random.Random(2), []
    for _ in range(count):
        tags = [draw.choice(["dvd", "book", "naïve", "3"]) for _ in range(draw.randrange(4))]
        space = draw.choice([" ", "  "])
        numbers = [f"{draw.randrange(1, 6)}.0", str(draw.randrange(10**5))]
        rows.append([f"u{draw.randrange(30)}", space.join(tags), *numbers, draw.choice('xy"')])
    lines = ["\t".join(row) for row in [TYPED, *rows]]
    (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    user, tags, rating, price, note = (list(column) for column in zip(*rows, strict=True))
    fields = [user, [cell.split() for cell in tags], [slow.log_bin(text) for text in price], note]
    order = [0, 1, 3, 2]
    return np.array(rating, float) > 3, slow.encode([fields[place] for place in order])


PLAIN = {
    "label": "rating",
    "positive_above": 3,
    "features": ("user_id", "tags", "note"),
    "numeric": ("price",),
}


def test_recboles_interactions_are_columns_bags_and_numbers(tmp_path):
    labels, ids = interactions(tmp_path)
    dataset = load(DataOptions(path=str(tmp_path / "ciao.inter"), **PLAIN))
    assert [field.name for field in dataset.fields] == ["user_id", "tags", "note", "price"]
    assert np.array_equal(dataset.labels, labels)
    assert np.array_equal(dataset.ids, ids)


def test_recboles_columns_may_be_named_with_their_types(tmp_path):
    _, ids = interactions(tmp_path)
    full = {
        "label": "rating:float",
        "features": ("user_id:token", "tags:token_seq", "note"),
        "numeric": ("price:float",),
        "split": "time:price:float",
    }
    dataset = load(DataOptions(path=str(tmp_path / "ciao.inter"), **{**PLAIN, **full}))
    assert np.array_equal(dataset.ids, ids)
    assert dataset.fields[0].name == "user_id"
    twice = {**PLAIN, "features": ("user_id", "user_id:token")}
    with pytest.raises(DataError, match="'user_id' is named twice"):
        load(DataOptions(path=str(tmp_path / "ciao.inter"), **twice))


def test_a_folder_of_recboles_interactions_packed_or_not(tmp_path):
    folder = tmp_path / "ciao"
    folder.mkdir()
    interactions(folder, "a.inter", 100)
    content = (folder / "a.inter").read_bytes()
    (folder / "b.inter.gz").write_bytes(gzip.compress(content))
    (folder / "ciao.user").write_text("user_id:token\nu1\n")
    assert load(DataOptions(path=str(folder), **PLAIN)).rows == 200


def test_lists_in_text_may_be_cut_anywhere(tmp_path, monkeypatch):
    _, ids = interactions(tmp_path)
    monkeypatch.setattr("freqsgd.tables.readers.text.BLOCK_BYTES", 120)
    assert np.array_equal(load(DataOptions(path=str(tmp_path / "ciao.inter"), **PLAIN)).ids, ids)


def refused(options, *parts):
    with pytest.raises(DataError) as caught:
        load(options)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", "::"], ids=ascii)
@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_the_separator_of_a_header_is_named(tmp_path, separator, name):
    if (name, separator) in (("x.csv", ","), ("x.tsv", "\t")):
        return
    shown = "tab" if separator == "\t" else f"'{separator}'"
    for last in ("price", "price in EUR", "price (EUR, net)"):  # the last has a comma
        lines = [["click", '"user"', last], ["1", "a", "2"]]
        (tmp_path / name).write_text("".join(separator.join(line) + "\n" for line in lines))
        options = DataOptions(path=str(tmp_path / name), label="click", features=("user",))
        refused(options, "there is no column 'user'", f"use --separator {shown}")
        refused(replace(options, features=("usr",)), "there is no column 'usr'")


def test_a_missing_column_is_no_reason_to_doubt_the_separator(tmp_path):
    (tmp_path / "x.csv").write_text("click,user id,a;b\n1,2,3\n")
    options = DataOptions(path=str(tmp_path / "x.csv"), label="click", features=("id",))
    refused(options, "no column 'id'. The columns are: click, user id, a;b")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (("user", "item"), ("u.data, line 1: 3 cells, but 2 columns are named: user, item",)),
        (("user", "item", "rating", "user"), ("names 'user' twice",)),
        (("user", "", "rating"), ("name 2 of 3 is empty",)),
    ],
)
def test_columns_that_do_not_fit(tmp_path, columns, words):
    own = {"path": str(ratings(tmp_path)), "separator": "tab", "columns": columns}
    refused(DataOptions(**own, **RATINGS), *words)


@pytest.mark.parametrize("separator", ["", "comma", "\n", '"', "a"])
def test_separators_that_cannot_be(tmp_path, separator):
    own = {"path": str(ratings(tmp_path)), "separator": separator}
    refused(DataOptions(**own, **RATINGS), "--separator", "such as ';', '::' or tab")


def test_columns_that_the_first_row_names(tmp_path):
    (tmp_path / "x.csv").write_text('user,"item",rating\n1,2,3\n')
    own = {"path": str(tmp_path / "x.csv"), "columns": ("user", "item", "rating")}
    refused(DataOptions(**own, **RATINGS), "line 1: this row names the columns", "leave out")


def test_pipes_are_refused_before_they_are_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    pipe = str(tmp_path / "pipe.csv")
    options = DataOptions(path=pipe, label="a", features=("b",))
    refused(options, f"{pipe}: this is a pipe; write what it gives to a file first")
    refused(replace(options, path=str(tmp_path)), f"{pipe}: this is a pipe")
    refused(replace(options, path="/dev/null"), "/dev/null: this is a device")
    with pytest.raises(DataError, match="this is a pipe"):
        list_text_files(tmp_path / "pipe.csv")
