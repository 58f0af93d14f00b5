"""The published files, where FREQSGD_DATA names a folder that holds them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions
from tests.tables import slow

DATA = os.environ.get("FREQSGD_DATA")


def real_file(relative):
    if not DATA or not (Path(DATA) / relative).is_file():
        pytest.skip(f"FREQSGD_DATA names no folder that holds {relative}")
    return Path(DATA) / relative


def slow_criteo(lines, min_count):
    """Labels and ids by plain Python."""
    rows = [line.rstrip("\n").split("\t") for line in lines]
    label, *columns = zip(*rows, strict=True)
    columns[:13] = [[slow.log_bin(text) for text in column] for column in columns[:13]]
    return np.array(label, int), slow.encode(columns, min_count)


def test_movielens_has_the_published_numbers(monkeypatch):
    path = real_file("ml-1m/ratings.dat")
    monkeypatch.setenv("FREQSGD_DATA", str(DATA))
    dataset = load(DataOptions(dataset="movielens-1m"))
    assert dataset.rows == 1_000_209
    assert [field.size for field in dataset.fields] == [6041, 3707]
    ratings = Counter(line.split(b"::")[2] for line in path.open("rb"))
    positive = ratings[b"4"] + ratings[b"5"]
    assert int(dataset.labels.sum()) == positive
    assert dataset.summary()["positive_rate"] == pytest.approx(positive / 1_000_209)
    lines = [line.split("::") for line in path.read_text().splitlines()]
    for field in (0, 1):
        column = [row[field] for row in lines]
        (ids,) = slow.number([column])
        assert dataset.ids[:, field].tolist() == [ids[token] for token in column]


def test_movielens_split_by_time_tests_on_the_newest_ratings(monkeypatch):
    path = real_file("ml-1m/ratings.dat")
    monkeypatch.setenv("FREQSGD_DATA", str(DATA))
    splits = load(DataOptions(dataset="movielens-1m", split="time:timestamp")).splits
    times = np.array([int(line.split(b"::")[3]) for line in path.open("rb")])
    assert len(splits.test) == 100_020
    assert times[splits.train].max() <= times[splits.validation].min()
    assert times[splits.validation].max() <= times[splits.test].min()


def test_criteo_has_all_rows_and_39_fields(monkeypatch):
    path = real_file("criteo/train.txt")
    monkeypatch.setenv("FREQSGD_DATA", str(DATA))
    dataset = load(DataOptions(dataset="criteo"))
    with path.open() as file:
        labels = [int(line[0]) for line in file]
    assert dataset.labels.tolist() == labels
    assert len(dataset.fields) == 39
    assert (dataset.ids.max(0) + 1 == [field.size for field in dataset.fields]).all()


@pytest.mark.parametrize("min_count", [1, 10])
def test_criteo_ids_are_those_of_plain_python(tmp_path, monkeypatch, min_count):
    with real_file("criteo-10k/train.txt").open() as file:
        lines = [next(file) for _ in range(4000)]
    (tmp_path / "criteo").mkdir()
    (tmp_path / "criteo" / "train.txt").write_text("".join(lines))
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    dataset = load(DataOptions(dataset="criteo", min_count=min_count))
    labels, ids = slow_criteo(lines, min_count)
    assert np.array_equal(dataset.labels, labels)
    assert np.array_equal(dataset.ids, ids)
