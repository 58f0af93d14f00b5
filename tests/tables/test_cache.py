"""Samples are encoded once, and what is in the cache is whole."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

from freqsgd.errors import DataError, DataWarning
from freqsgd.tables import encoding
from freqsgd.tables.encoding import check_samples
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions

LOAD = """
import sys
from freqsgd.tables import DataOptions, load
dataset = load(DataOptions(path=sys.argv[1], label="click", features=("user",)))
print(dataset.rows, int(dataset.ids.sum()), int(dataset.splits.train.sum()))
"""


def write(tmp_path, rows=50):
    lines = ["click,user,day", *(f"{n % 2},u{n % 7},{n}" for n in range(rows))]
    (tmp_path / "clicks.csv").write_text("\n".join(lines))
    return DataOptions(path=str(tmp_path / "clicks.csv"), label="click", features=("user",))


@pytest.fixture
def encoded(monkeypatch):
    """How often anything was encoded."""
    calls, encode = [], encoding.encode

    def count(source, *rest):
        calls.append(source)
        encode(source, *rest)

    monkeypatch.setattr("freqsgd.tables.encoding.encode", count)
    return calls


def test_the_second_load_encodes_nothing(tmp_path, encoded):
    options = write(tmp_path)
    first, second = load(options), load(options)
    assert len(encoded) == 1
    assert np.array_equal(first.ids, second.ids)
    assert np.array_equal(first.splits.test, second.splits.test)
    assert second.fields == first.fields


def test_progress_is_told_while_encoding_and_only_then(tmp_path, monkeypatch):
    monkeypatch.setattr("freqsgd.tables.readers.text.BLOCK_BYTES", 100)
    options = write(tmp_path)
    told = []
    load(options, progress=lambda *progress: told.append(progress))
    size = (tmp_path / "clicks.csv").stat().st_size
    encoding = [(done, total) for stage, done, total in told if stage == "encoding"]
    assert len(encoding) > 3
    assert encoding == sorted(encoding)
    assert encoding[-1] == (size, size)
    told.clear()
    load(options, progress=lambda *progress: told.append(progress))
    assert told == []


def test_another_seed_gives_another_split_of_the_same_samples(tmp_path, encoded):
    options = write(tmp_path)
    seeds = [load(replace(options, split_seed=seed)) for seed in (0, 1)]
    assert len(encoded) == 1
    assert not np.array_equal(seeds[0].splits.train, seeds[1].splits.train)


@pytest.mark.parametrize(
    "changes",
    [{"features": ("user", "day")}, {"min_count": 9}, {"split": "time:day"}, {"numeric": ("day",)}],
)
def test_other_options_are_encoded_anew(tmp_path, encoded, changes):
    options = write(tmp_path)
    load(options)
    load(replace(options, **changes))
    assert len(encoded) == 2


def test_a_changed_file_is_encoded_anew(tmp_path, encoded):
    assert load(write(tmp_path)).rows == 50
    assert load(write(tmp_path, rows=60)).rows == 60
    assert len(encoded) == 2


@pytest.mark.parametrize("name", ["ids.bin", "labels.bin", "tokens.parquet", "summary.json"])
@pytest.mark.parametrize("damage", ["cut", "removed"])
def test_a_damaged_cache_is_rebuilt(tmp_path, cache, encoded, name, damage):
    options = write(tmp_path)
    before = np.array(load(options).ids)
    (path,) = (cache / "encoded").glob(f"clicks-*/{name}")
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.unlink()
    assert np.array_equal(load(options).ids, before)
    assert len(encoded) == 2
    assert np.array_equal(load(options).ids, before)
    assert len(encoded) == 2
    assert not list((cache / "encoded").glob(".building-*"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ids.bin", np.int32(2**31 - 1).tobytes()),
        ("ids.bin", np.int32(2).tobytes()),
        ("labels.bin", b"\xff"),
        ("labels.bin", b"\x01"),
    ],
)
@pytest.mark.parametrize("read_before", [False, True])
def test_an_edit_at_equal_size_is_encoded_anew_with_one_line(
    tmp_path, cache, encoded, monkeypatch, name, content, read_before
):
    monkeypatch.setattr("freqsgd.tables.cache._SETTLED_SECONDS", 0.02)
    options = write(tmp_path)
    before = load(options)
    ids, labels = np.array(before.ids), np.array(before.labels)
    (path,) = (cache / "encoded").glob(f"clicks-*/{name}")
    if read_before:
        time.sleep(0.05)
        load(options)
        assert (path.parent / "seen.json").exists()
    times = path.stat()
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as if nobody had been here
    with pytest.warns(
        DataWarning, match=f"{name} was changed after it was written; .* anew"
    ) as said:
        after = load(options)
    assert len(said) == 1
    assert np.array_equal(after.ids, ids)
    assert np.array_equal(after.labels, labels)
    assert len(encoded) == 2


def test_files_that_were_compared_are_not_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr("freqsgd.tables.cache._SETTLED_SECONDS", 0.02)
    options = write(tmp_path)
    load(options)
    time.sleep(0.05)
    load(options)
    monkeypatch.setattr("freqsgd.tables.cache._digest", None)  # which cannot be called
    load(options)


def test_a_folder_under_the_name_of_another_is_not_used(tmp_path, cache, encoded):
    options = write(tmp_path)
    rare = replace(options, min_count=9)
    wanted = np.array(load(rare).ids)
    (second,) = (cache / "encoded").glob("clicks-[!s]*")
    load(options)
    (first,) = set((cache / "encoded").glob("clicks-[!s]*")) - {second}
    first.rename(tmp_path / "aside")
    second.rename(first)
    (tmp_path / "aside").rename(second)
    with pytest.warns(DataWarning, match=r"whole\.json is of another folder"):
        assert np.array_equal(load(rare).ids, wanted)
    assert len(encoded) == 3


def test_a_cache_of_an_earlier_version_is_built_anew_without_a_word(tmp_path, cache, encoded):
    options = write(tmp_path)
    load(options)
    (seal,) = (cache / "encoded").glob("clicks-[!s]*/whole.json")
    seal.write_text('{"key": {}, "sizes": {}}')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(options)
    assert len(encoded) == 2


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("ids.bin", np.full(50, 99, np.int32), "an id that is out of range"),
        ("ids.bin", np.full(50, -1, np.int32), "an id that is out of range"),
        ("labels.bin", np.full(50, 255, np.uint8), "a label of 255"),
        ("labels.bin", np.zeros(49, np.uint8), "49 labels"),
    ],
)
def test_encoded_samples_that_cannot_be_are_found(tmp_path, cache, name, array, says):
    load(write(tmp_path))
    (path,) = (cache / "encoded").glob(f"clicks-*/{name}")
    check_samples(path.parent)
    array.tofile(path)
    with pytest.raises(ValueError, match=says):
        check_samples(path.parent)


def test_a_full_disk_is_reported_and_nothing_is_left(tmp_path, cache, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    options = write(tmp_path)
    monkeypatch.setattr("freqsgd.tables.encoding._Writer.write", full)
    with pytest.raises(DataError, match=r"the disk is full; make room, or .* FREQSGD_CACHE"):
        load(options)
    assert list((cache / "encoded").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_reported(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"cannot be written .* FREQSGD_CACHE"):
        load(write(tmp_path))


def test_an_error_while_encoding_leaves_nothing(tmp_path, cache):
    options = write(tmp_path)
    (tmp_path / "clicks.csv").write_text("click,user\n1,a\n2,b\n")
    with pytest.raises(DataError, match="line 3"):
        load(options)
    assert list((cache / "encoded").iterdir()) == []


def test_processes_that_encode_at_once_all_get_the_whole(tmp_path, cache):
    write(tmp_path, rows=30_000)
    command = [sys.executable, "-c", LOAD, str(tmp_path / "clicks.csv")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert outputs[0].startswith("30000 ")
    assert len(set(outputs)) == 1
    names = sorted(folder.name.rpartition("-")[0] for folder in (cache / "encoded").iterdir())
    assert names == ["clicks", "clicks-split"]


def test_a_killed_process_leaves_nothing_that_is_taken_for_whole(tmp_path, cache, encoded):
    options = write(tmp_path, rows=30_000)
    stop = "from freqsgd.tables import encoding\n" + (
        "encode = encoding.encode\n"
        "def stop(source, folder, progress):\n"
        "    encode(source, folder, progress)\n"
        "    print('encoded', flush=True)\n"
        "    import time; time.sleep(60)\n"
        "encoding.encode = stop\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", stop + LOAD, str(tmp_path / "clicks.csv")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "encoded\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (left,) = (cache / "encoded").iterdir()
    assert left.name.startswith(".building-")
    assert load(options).rows == 30_000
    assert len(encoded) == 1
    assert left.exists()  # it might be another process at work
    old = time.time() - 2 * 3600
    for path in (left, *left.iterdir()):
        os.utime(path, (old, old))
    load(replace(options, min_count=2))
    assert not left.exists()
