"""Training, prediction and inspection read the same paths: files, folders, days and wildcards."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from freqsgd.errors import DataError
from freqsgd.inspection.document import inspect_data
from freqsgd.inspection.options import InspectionOptions
from freqsgd.tables.files import data_name, list_files, named_paths
from freqsgd.tables.loading import load, open_stream
from freqsgd.tables.spec import DataOptions, StreamOptions
from tests.tables.days_of_files import frame_of, write

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
