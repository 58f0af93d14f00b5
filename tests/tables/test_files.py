"""Files and days that a path names."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from freqsgd.errors import DataError
from freqsgd.inspection.document import inspect_data
from freqsgd.inspection.options import InspectionOptions
from freqsgd.tables.loading import load, open_stream
from freqsgd.tables.readers.files import data_name, find_days, list_files, named_paths
from freqsgd.tables.spec import DataOptions, StreamOptions
from tests.tables.days_of_files import frame_of, write


def make(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def found(path, **options):
    return [
        (day.name, [file.name for file in day.files]) for day in find_days(str(path), **options)
    ]


def refused(path, *parts, **options):
    with pytest.raises(DataError) as caught:
        find_days(str(path), **options)
    for part in parts:
        assert part in str(caught.value)


def test_a_single_file_is_a_day(tmp_path):
    make(tmp_path, "log.csv.gz")
    assert found(tmp_path / "log.csv.gz") == [("log", ["log.csv.gz"])]


def test_files_of_a_folder_are_days_in_the_order_of_their_numbers(tmp_path):
    make(tmp_path, *(f"day-{n}.parquet" for n in (8, 9, 10, 11)), "_SUCCESS", "notes.md")
    assert [name for name, _ in found(tmp_path)] == ["day-8", "day-9", "day-10", "day-11"]


def test_folders_of_a_folder_are_days(tmp_path):
    make(tmp_path, "d=1/part-10.csv", "d=1/part-9.csv", "d=2/x.csv", "d=2/_SUCCESS", "_logs/a.csv")
    assert found(tmp_path) == [("d=1", ["part-9.csv", "part-10.csv"]), ("d=2", ["x.csv"])]


def test_wildcards_match_files_or_folders(tmp_path):
    make(tmp_path, "a-1.csv", "a-2/x.csv", "b-3.csv", "c/1/log.parquet", "c/2/log.parquet")
    assert found(tmp_path / "a-*") == [("a-1", ["a-1.csv"]), ("a-2", ["x.csv"])]
    assert [name for name, _ in found(tmp_path / "c/*/log.parquet")] == ["1/log", "2/log"]
    assert [name for name, _ in found(tmp_path / "?-[13].csv")] == ["a-1", "b-3"]


def test_a_folder_whose_name_looks_like_wildcards(tmp_path):
    make(tmp_path, "[x]/1.csv", "[x]/2.csv")
    assert [name for name, _ in found(tmp_path / "[x]")] == ["1", "2"]


def test_nothing_there(tmp_path):
    refused(tmp_path / "none", "none: there is no such file or folder")
    refused(tmp_path / "*.csv", "no file or folder matches")
    refused(tmp_path, "holds no file")


def test_an_empty_day_is_named(tmp_path):
    make(tmp_path, "day-1/a.csv", "day-3/a.csv")
    (tmp_path / "day-2").mkdir()
    refused(tmp_path, "day-2: the folder holds no file")


def test_folders_beside_files(tmp_path):
    make(tmp_path, "day-1/a.csv", "day-2.csv")
    refused(tmp_path, "day-1", "day-2.csv", "not clear what a day is")


def test_files_of_several_kinds_in_a_day(tmp_path):
    make(tmp_path, "day-1/a.csv", "day-1/b.parquet")
    refused(tmp_path, "day-1: the folder holds files of several kinds")


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["day-1", "day-2", "day-4"], "day-3"),
        (["day-08", "day-09", "day-11"], "day-10"),
        (["dt=2024-02-28", "dt=2024-03-01"], "dt=2024-02-29"),
        (["20231230x", "20240101x"], "20231231x"),
        (["2024_02_28", "2024_03_01"], "2024_02_29"),
        (["1", "5"], "2, 3, 4"),
        (["1", "9"], "2, 3, 4, 5, 6, ..."),
        (["v2-day1", "v2-day3"], "v2-day2"),
        (["2024-05-01-2024-01-30", "2024-05-01-2024-02-01"], "2024-05-01-2024-01-31"),
    ],
)
def test_a_missing_day_is_named(tmp_path, names, missing):
    make(tmp_path, *(f"{name}.csv" for name in names))
    refused(tmp_path, f"missing: {missing};", "--allow-missing-days")
    assert [name for name, _ in found(tmp_path, allow_missing=True)] == names


@pytest.mark.parametrize(
    "names",
    [
        ["2023-12-31", "2024-01-01", "2024-01-02"],
        ["20240229", "20240301"],
        ["a1", "b3"],
        ["x", "y"],
        ["1-1", "2-3", "5-9"],
        ["day", "day-7"],
    ],
)
def test_no_day_is_missing(tmp_path, names):
    make(tmp_path, *(f"{name}.csv" for name in names))
    assert [name for name, _ in found(tmp_path)] == names


@pytest.mark.parametrize("names", [["day-1", "day-01"], ["2024-01-02", "20240102"]])
def test_the_same_day_twice(tmp_path, names):
    make(tmp_path, *(f"{name}.csv" for name in names))
    refused(tmp_path, *names, "same day", allow_missing=True)


PATHS = ["days", "days/day-*", "days/day-*/*.parquet", "flat", "flat/*.csv"]


@pytest.fixture
def days(tmp_path, monkeypatch):
    """Three days, as folders of Parquet and as text files; all rows in one file too."""
    monkeypatch.chdir(tmp_path)
    frames = [frame_of(20, seed) for seed in range(3)]
    for number, frame in enumerate(frames, start=8):
        write(frame, tmp_path / "days" / f"day-{number}" / "part.parquet")
        write(frame, tmp_path / "flat" / f"day-{number:02}.csv")
    write(pl.concat(frames), tmp_path / "all.csv")
    return pl.concat(frames)


@pytest.mark.parametrize("path", PATHS)
def test_all_of_them_read_the_days_in_order(days, path):
    columns = {"label": "click", "features": ("user", "item")}
    whole, found = (load(DataOptions(path=each, **columns)) for each in ("all.csv", path))
    assert np.array_equal(found.ids, whole.ids)
    assert np.array_equal(found.labels, whole.labels)
    ids = np.concatenate(list(whole.encoder.encode_file(path)))
    assert np.array_equal(ids, whole.ids)
    options = (InspectionOptions(path=each, **columns) for each in ("all.csv", path))
    fields = [inspect_data(each).fields for each in options]
    assert fields[0] == fields[1]
    stream = open_stream(StreamOptions(path=path, hash_rows="100", **columns))
    assert sum(len(chunk.labels) for chunk in stream.chunks(0, len(stream.days))) == len(days)


def test_days_may_have_a_dialect(days, tmp_path):
    for number in range(2):
        text = "\n".join(f"{n % 3};{n % 2}" for n in range(20))
        write(frame_of(1, 0), tmp_path / "logs" / f"{number}" / "rows.log")
        (tmp_path / "logs" / f"{number}" / "rows.log").write_text(text)
    options = {"separator": ";", "columns": ("user", "click")}
    found = load(DataOptions(path="logs/*/rows.log", label="click", features=("user",), **options))
    assert found.rows == 40


def test_names_and_inputs_of_paths_with_wildcards(days, tmp_path):
    assert data_name("flat/*.csv") == "flat"
    assert data_name("all.csv") == "all"
    assert data_name(".") == tmp_path.name
    assert [path.name for path in list_files("days")] == ["part.parquet"] * 3
    assert sorted(path.name for path in named_paths("days/*")) == ["day-10", "day-8", "day-9"]
    assert [str(path) for path in named_paths("none.csv")] == ["none.csv"]
    (tmp_path / "a[1].csv").write_text("user,click\n1,0\n")
    assert [path.name for path in list_files("a[1].csv")] == ["a[1].csv"]
    assert data_name("a[1].csv") == "a[1]"


def test_paths_that_name_nothing(days, tmp_path):
    (tmp_path / "empty").mkdir()
    for path, words in [
        ("none-*", "no file or folder matches"),
        ("none", "no such file or folder"),
        ("empty", "the folder holds no file that ends with"),
    ]:
        with pytest.raises(DataError, match=words):
            list_files(path)
