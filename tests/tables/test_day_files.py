"""Streams of files: the same examples as if all were loaded, from any position on."""

from __future__ import annotations

import contextlib
import threading
import tracemalloc

import numpy as np
import polars as pl
import pytest

from freqsgd.errors import DataError, DataWarning
from freqsgd.tables.encoders.encoder import Encoder
from freqsgd.tables.fields import Position
from freqsgd.tables.loading import load
from freqsgd.tables.readers.reader import ParquetReader
from freqsgd.tables.spec import DataOptions
from tests.tables.days_of_files import (
    ROWS,
    everything,
    frame_of,
    options_of,
    slow_ids,
    stream_of,
    write,
)

KINDS = (".parquet", ".csv", ".tsv", ".csv.gz")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr("freqsgd.tables.readers.reader.BLOCK_ROWS", 16)
    monkeypatch.setattr("freqsgd.tables.readers.text.BLOCK_BYTES", 400)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / "cache"))


def three_days(folder, kind=".parquet"):
    """Two files on the first day, one on each of the others; one of them has no rows."""
    frames = [frame_of(rows, seed) for seed, rows in enumerate((50, 7, 40, 0))]
    names = ("day-9/a-2", "day-9/a-10", "day-10/a", "day-11/a")
    for frame, name in zip(frames, names, strict=True):
        write(frame, folder / f"{name}{kind}")
    return frames


@pytest.mark.parametrize("kind", KINDS)
def test_all_examples_in_order(tmp_path, kind):
    frames = three_days(tmp_path, kind)
    stream = stream_of(tmp_path)
    found = everything(stream.chunks(0, 3))
    assert stream.days == ("day-9", "day-10", "day-11")
    assert [(field.name, field.size) for field in stream.fields] == list(ROWS.items())
    together = pl.concat(frames)
    assert [each[0] for each in found] == slow_ids(together)
    assert [each[1] for each in found] == together["click"].to_list()
    assert [each[2] for each in found] == [0] * 57 + [1] * 40
    assert everything(stream.chunks(1, 2)) == found[57:]
    assert everything(stream.chunks(2, 3)) == []


def without_header(folder):
    """The files of three days, semicolons between cells, and what is said of them."""
    frames = three_days(folder, ".data")
    for path in folder.rglob("*.data"):
        frame = pl.read_csv(path, infer_schema=False)
        frame.write_csv(path.with_suffix(".part"), separator=";", include_header=False)
        path.unlink()
    (folder / "day-11" / "a.part").unlink()  # it has no line at all
    return pl.concat(frames), {"separator": ";", "columns": tuple(frames[0].columns)}


def test_days_without_headers_in_files_of_any_name(tmp_path):
    together, dialect = without_header(tmp_path)
    stream = stream_of(tmp_path / "day-*" / "*.part", **dialect)
    found = everything(stream.chunks(0, 3))
    assert [each[0] for each in found] == slow_ids(together)
    assert [each[1] for each in found] == together["click"].to_list()


def test_a_stream_that_is_read_otherwise_is_another(tmp_path):
    _, dialect = without_header(tmp_path)
    pattern = tmp_path / "day-*" / "*.part"
    first = stream_of(pattern, **dialect)
    assert first.fingerprint == stream_of(pattern, **dialect).fingerprint
    item, other, *rest = dialect["columns"]
    swapped = stream_of(pattern, separator=";", columns=(other, item, *rest))
    assert swapped.fingerprint != first.fingerprint


def test_a_dictionary_remembers_how_files_are_read(tmp_path, cache):
    together, dialect = without_header(tmp_path)
    file = tmp_path / "day-9" / "a-2.part"
    dataset = load(DataOptions(path=str(file), label="click", features=("user", "item"), **dialect))
    dataset.encoder.save(tmp_path)
    more = {"features": (), "hash_rows": "", "dictionary": str(tmp_path)}
    stream = stream_of(file, **more)
    ids = [each[0] for each in everything(stream.chunks(0, 1))]
    assert np.array_equal(ids, dataset.ids)
    named = tmp_path / "named.csv"
    together[:50].write_csv(named)
    stream = stream_of(named, **more, separator=",")
    assert np.array_equal([each[0] for each in everything(stream.chunks(0, 1))], dataset.ids)


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_from_every_position(tmp_path, kind):
    three_days(tmp_path, kind)
    stream = stream_of(tmp_path)
    found = everything(stream.chunks(0, 2))
    for number, (_, _, _, position) in enumerate(found):
        assert everything(stream.chunks(0, 2, position)) == found[number + 1 :]
    assert everything(stream.chunks(0, 2, Position(0, 0))) == found


def test_the_part_that_is_read_grows_to_one(tmp_path):
    three_days(tmp_path)
    done = [chunk.done for chunk in stream_of(tmp_path).chunks(0, 2)]
    assert done == sorted(done)
    assert len(set(done)) == 4 + 1 + 3
    assert done[-1] == pytest.approx(1)


def test_quoted_cells_with_newlines(tmp_path):
    frame = frame_of(60, 0).with_columns(item=pl.col("item") + '\n"quoted", twice')
    write(frame, tmp_path / "day.csv")
    stream = stream_of(tmp_path / "day.csv")
    found = everything(stream.chunks(0, 1))
    assert [each[0] for each in found] == slow_ids(frame)
    assert everything(stream.chunks(0, 1, found[30][3])) == found[31:]


@pytest.mark.parametrize("kind", KINDS)
def test_malformed_rows_are_counted_once_wherever_reading_goes_on(tmp_path, kind):
    frames = three_days(tmp_path, kind)
    bad = [
        frame.with_columns(click=pl.when(pl.row_index().is_in(rows)).then(7).otherwise("click"))
        for frame, rows in zip(frames, ([4, 13, 22, 31, 40, 49], [], [0]), strict=False)
    ]
    for frame, name in zip(bad, ("day-9/a-2", "day-9/a-10", "day-10/a"), strict=True):
        write(frame, tmp_path / f"{name}{kind}")
    stream = stream_of(tmp_path, max_bad_rows=7)
    good = pl.concat(bad).filter(pl.col("click") < 2)
    with pytest.warns(DataWarning, match="7 malformed rows"):
        found = everything(stream.chunks(0, 3))
    assert [each[0] for each in found] == slow_ids(good)
    assert found[-1][3].dropped == 7
    for number in (0, 3, 4, 5, 43, 44, 45, 51, 52, 60, len(found) - 2):
        with pytest.warns(DataWarning) if number < 51 else contextlib.nullcontext():
            assert everything(stream.chunks(0, 3, found[number][3])) == found[number + 1 :]
    too_many = stream_of(tmp_path, max_bad_rows=6)
    said = r"7 malformed rows: 3 earlier, and 4 among the next [\d,]+ rows:(\n  .*){4}\nMend them"
    with pytest.raises(DataError, match=said):
        everything(too_many.chunks(0, 3, found[20][3]))


def test_a_dictionary_gives_the_ids_that_it_gives_elsewhere(tmp_path, cache):
    write(frame_of(80, 0), tmp_path / "all.parquet")
    data = load(DataOptions(path=str(tmp_path / "all.parquet"), label="click", features=("user",)))
    data.encoder.save(tmp_path)
    write(frame_of(30, 1), tmp_path / "days" / "1.csv")
    write(frame_of(80, 0), tmp_path / "days" / "2.parquet")
    more = {"features": (), "hash_rows": "", "dictionary": str(tmp_path)}
    stream = stream_of(tmp_path / "days" / "*", **more)
    found = np.concatenate([chunk.ids for chunk in stream.chunks(0, 2)])
    assert found[30:].tolist() == data.ids.tolist()
    known = dict(zip(data.encoder.texts()[0], range(1, 10**6), strict=False))
    users = frame_of(30, 1)["user"].cast(pl.String).fill_null("")
    assert found[:30, 0].tolist() == [known.get(user, 0) for user in users]
    assert isinstance(stream.encoder, Encoder)
    assert stream.summary()["encoding"] == "dictionary"


def test_what_is_said_of_a_stream(tmp_path):
    three_days(tmp_path / "a")
    three_days(tmp_path / "b", ".csv")
    assert stream_of(tmp_path / "a").summary() == {
        "name": "a",
        "kind": "stream",
        "days": ["day-9", "day-10", "day-11"],
        "fields": 2,
        "tokens": 1_001_000,
        "rows": 97,
        "encoding": "hash",
    }
    assert stream_of(tmp_path / "b").summary()["rows"] is None


def test_rows_are_counted_once(tmp_path, monkeypatch):
    three_days(tmp_path)
    opened = []

    def counted(reader):
        opened.append(reader.path)
        return count(reader)

    count = ParquetReader.count
    monkeypatch.setattr(ParquetReader, "count", counted)
    stream = stream_of(tmp_path)
    assert [stream.summary()["rows"] for _ in range(3)] == [97] * 3
    assert len(opened) == len(set(opened)) == 4


def test_the_fingerprint_tells_data_and_encoding_apart(tmp_path):
    three_days(tmp_path)
    first = stream_of(tmp_path).fingerprint
    assert stream_of(tmp_path).fingerprint == first
    assert stream_of(tmp_path, hash_rows="1000").fingerprint != first
    assert stream_of(tmp_path, positive_above=0.5).fingerprint != first
    assert stream_of(tmp_path, features=("item", "user")).fingerprint != first
    write(frame_of(40, 9), tmp_path / "day-10" / "a.parquet")
    assert stream_of(tmp_path).fingerprint != first


def test_bags_are_as_wide_as_the_lists_at_the_start(tmp_path):
    lists = pl.DataFrame({"click": [0, 1], "tags": [[1, 2, 3], [4]]})
    write(lists.clear(), tmp_path / "1.parquet")
    write(lists, tmp_path / "2.parquet")
    write(lists.with_columns(tags=pl.Series([[1, 2, 3, 4], []])), tmp_path / "3.parquet")
    stream = stream_of(tmp_path, features=("tags",), hash_rows="100")
    assert stream.fields[0].width == 3
    with pytest.warns(DataWarning, match="a list of 4 tokens"):
        ids = np.concatenate([chunk.ids for chunk in stream.chunks(0, 3)])
    assert ids[0].tolist() == ids[2].tolist()
    assert ids[3].tolist() == [-1, -1, -1]


def test_closing_stops_the_threads(tmp_path):
    three_days(tmp_path)
    before = threading.active_count()
    chunks = stream_of(tmp_path).chunks(0, 3)
    next(chunks)
    assert threading.active_count() > before
    chunks.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("kind", [".parquet", ".csv"])
def test_memory_does_not_grow_with_the_data(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("freqsgd.tables.readers.reader.BLOCK_ROWS", 1000)
    monkeypatch.setattr("freqsgd.tables.readers.text.BLOCK_BYTES", 20_000)
    frame = frame_of(1000, 0)
    peaks = []
    for rows in (10, 60):
        write(pl.concat([frame] * rows), tmp_path / f"{rows}{kind}", **_groups(kind))
        stream = stream_of(tmp_path / f"{rows}{kind}")
        sum(len(chunk.labels) for chunk in stream.chunks(0, 1))
        tracemalloc.start()
        assert sum(len(chunk.labels) for chunk in stream.chunks(0, 1)) == 1000 * rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def _groups(kind):
    return {"row_group_size": 5000} if kind == ".parquet" else {}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"hash_rows": ""}, "say how many rows"),
        ({"hash_rows": "many"}, "'many' is not a number"),
        ({"hash_rows": "0"}, "from 1 to 2,147,483,647"),
        ({"hash_rows": "1.5"}, "from 1 to 2,147,483,647"),
        ({"hash_rows": "3e9"}, "from 1 to 2,147,483,647"),
        ({"hash_rows": "inf"}, "not a number"),
        ({"hash_rows": "user=10"}, "say how many for item too"),
        ({"hash_rows": "user=10,item=5,movie=7"}, "no feature 'movie'"),
        ({"hash_rows": "user=10,item=5,user=7"}, "named twice"),
        ({"hash_rows": "100", "dictionary": "x"}, "hash_rows does not go with dictionary"),
        ({"label": None}, "holds the label"),
        ({"label": "user"}, "cannot be feature and label"),
        ({"features": ()}, "name the columns"),
        ({"features": ("usr", "item"), "hash_rows": "9"}, "Did you mean 'user'?"),
        ({"max_bad_rows": -1}, "must not be negative"),
        ({"dataset": "clicks-small"}, "does not go with own files"),
        ({"dataset": "criteo", "path": None, "features": ()}, "'criteo' is no stream"),
    ],
)
def test_options_that_cannot_be(tmp_path, more, message):
    three_days(tmp_path)
    with pytest.raises(DataError) as caught:
        stream_of(tmp_path, **more) if "path" not in more else _open_no_path(more)
    assert message in str(caught.value)


def _open_no_path(more):
    from freqsgd.tables.loading import open_stream
    from freqsgd.tables.spec import StreamOptions

    open_stream(StreamOptions(**more))


def test_options_from_json_are_the_same(tmp_path):
    assert options_of(tmp_path, features=["user", "item"]) == options_of(tmp_path)
