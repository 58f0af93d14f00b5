"""Files of a stream that cannot be used: named, and left out only where that was asked for."""

from __future__ import annotations

import gzip

import polars as pl
import pytest

from freqsgd.errors import DataError, DataWarning
from tests.tables.days_of_files import everything, frame_of, slow_ids, stream_of, write


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr("freqsgd.tables.readers.reader.BLOCK_ROWS", 100)
    monkeypatch.setattr("freqsgd.tables.readers.text.BLOCK_BYTES", 2000)
    monkeypatch.setattr("freqsgd.tables.readers.text._FIRST_BYTES", 2000)


def three_days(folder, kind=".parquet"):
    frames = [frame_of(400, day) for day in range(3)]
    for day, frame in enumerate(frames):
        options = {"row_group_size": 50} if kind == ".parquet" else {}
        write(frame, folder / f"day-{day}{kind}", **options)
    return frames


def refused(make, *parts):
    with pytest.raises(DataError) as caught:
        make()
    for part in parts:
        assert part in str(caught.value)


def test_a_missing_day(tmp_path):
    three_days(tmp_path)
    (tmp_path / "day-1.parquet").unlink()
    refused(lambda: stream_of(tmp_path), "missing: day-1;")
    assert len(everything(stream_of(tmp_path, allow_missing_days=True).chunks(0, 2))) == 800


@pytest.mark.parametrize("kind", [".parquet", ".csv"])
def test_a_day_with_other_columns_is_named_before_anything_is_read(tmp_path, kind):
    frames = three_days(tmp_path, kind)
    write(frames[1].rename({"user": "visitor"}), tmp_path / f"day-1{kind}")
    for more in ({}, {"skip_bad_files": True}):
        refused(lambda more=more: stream_of(tmp_path, **more), f"day-1{kind}", "no column 'user'")


def test_a_day_with_columns_of_another_kind(tmp_path):
    frames = three_days(tmp_path)
    write(frames[2].with_columns(user=pl.concat_list("user")), tmp_path / "day-2.parquet")
    refused(lambda: stream_of(tmp_path), "day-2.parquet", "'user' must hold single values")


def test_columns_in_another_order_make_no_difference(tmp_path):
    frames = three_days(tmp_path, ".csv")
    write(frames[1].select(reversed(frames[1].columns)), tmp_path / "day-1.csv")
    found = everything(stream_of(tmp_path).chunks(0, 3))
    assert [each[0] for each in found] == slow_ids(pl.concat(frames))


def _cut_short(path):
    path.write_bytes(path.read_bytes()[:-20])


def _empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [_cut_short, _empty])
def test_a_corrupt_footer_is_found_before_training(tmp_path, damage):
    frames = three_days(tmp_path)
    damage(tmp_path / "day-1.parquet")
    refused(lambda: stream_of(tmp_path), "day-1.parquet: cannot be read", "--skip-bad-files")
    with pytest.warns(DataWarning, match=r"day-1\.parquet.*\nIt was left out"):
        stream = stream_of(tmp_path, skip_bad_files=True)
    assert [line for line in stream.skipped if "day-1.parquet" in line] == stream.skipped != []
    found = everything(stream.chunks(0, 3))
    assert stream.days == ("day-0", "day-2")
    assert [each[0] for each in found] == slow_ids(pl.concat([frames[0], frames[2]]))
    assert [each[2] for each in found] == [0] * 400 + [1] * 400


def test_a_day_is_left_while_one_of_its_files_is(tmp_path):
    for name in ("day-0/a", "day-0/b", "day-1/a", "day-1/b", "day-2/a", "day-2/b"):
        write(frame_of(50, 0), tmp_path / f"{name}.parquet")
    for name in ("day-1/a", "day-2/a", "day-2/b"):
        _empty(tmp_path / f"{name}.parquet")
    with pytest.warns(DataWarning, match="It was left out"):
        stream = stream_of(tmp_path, skip_bad_files=True)
    assert stream.days == ("day-0", "day-1")
    assert len(stream.skipped) == 3
    assert [each[2] for each in everything(stream.chunks(0, 2))] == [0] * 100 + [1] * 50


def test_an_empty_text_file_is_damaged(tmp_path):
    three_days(tmp_path, ".csv")
    _empty(tmp_path / "day-2.csv")
    refused(lambda: stream_of(tmp_path), "day-2.csv: the file is empty", "--skip-bad-files")


def test_a_file_without_rows_is_fine(tmp_path):
    frames = three_days(tmp_path, ".csv")
    write(frames[0].clear(), tmp_path / "day-0.csv")
    assert len(everything(stream_of(tmp_path).chunks(0, 3))) == 800


def test_no_file_is_left(tmp_path):
    write(frame_of(10, 0), tmp_path / "1.parquet")
    _empty(tmp_path / "1.parquet")
    with pytest.warns(DataWarning):
        refused(lambda: stream_of(tmp_path, skip_bad_files=True), "1.parquet", "No file is left")


def _corrupt_page(path):
    data = bytearray(path.read_bytes())
    middle, length = len(data) * 5 // 8, len(data) // 8  # all columns of a row group
    data[middle : middle + length] = bytes(length)
    path.write_bytes(data)


def _gz_cut_short(path):
    packed = gzip.compress(frame_of(400, 1).write_csv().encode(), mtime=0)
    path.write_bytes(packed[: len(packed) * 5 // 8])


@pytest.mark.parametrize(
    ("kind", "damage", "place"),
    [(".parquet", _corrupt_page, ", rows "), (".csv.gz", _gz_cut_short, ", line ")],
)
def test_damage_in_the_middle(tmp_path, kind, damage, place):
    frames = three_days(tmp_path, kind)
    damage(tmp_path / f"day-1{kind}")
    refused(
        lambda: everything(stream_of(tmp_path).chunks(0, 3)),
        f"day-1{kind}{place}",
        "--skip-bad-files",
    )
    stream = stream_of(tmp_path, skip_bad_files=True)
    with pytest.warns(DataWarning, match="The rest was left out") as caught:
        found = everything(stream.chunks(0, 3))
    assert len(caught) == len(stream.skipped) == 1
    before = len(found) - 800
    assert 0 < before < 400
    left = pl.concat([frames[0], frames[1][:before], frames[2]])
    assert [each[0] for each in found] == slow_ids(left)
    assert everything(stream.chunks(0, 3)) == found  # and is told only once
    assert len(stream.skipped) == 1
    for number in (0, 399, 400, 400 + before - 2, 400 + before - 1, 400 + before, len(found) - 2):
        assert everything(stream.chunks(0, 3, found[number][3])) == found[number + 1 :]
