"""What is written: whole or not at all, never over an input, into pipes and through links."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from freqsgd.errors import DataError
from freqsgd.files import check_target, read_json, write_whole, writing


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_file_that_exists_needs_force(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(DataError, match=r"file: it exists already; use --force \(force=True"):
        check_target(tmp_path / "file", force=False)
    check_target(tmp_path / "file", force=True)
    check_target(tmp_path / "new", force=False)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("how", ["itself", "symlink", "hard link", "in a folder", "by .."])
def test_an_input_is_never_replaced(tmp_path, how, force):
    source, out = tmp_path / "in", tmp_path / "in"
    source.write_bytes(b"rows")
    if how == "symlink":
        out = tmp_path / "link"
        out.symlink_to("in")
    elif how == "hard link":
        out = tmp_path / "link"
        out.hardlink_to(source)
    elif how == "in a folder":
        source = tmp_path
    elif how == "by ..":
        out = tmp_path / ".." / tmp_path.name / "in"
    with pytest.raises(DataError, match="is an input, which is never replaced"):
        check_target(out, force=force, inputs=[source])


def test_a_new_file_beside_the_inputs_is_written(tmp_path):
    (tmp_path / "in").write_bytes(b"rows")
    check_target(tmp_path / "out", force=False, inputs=[tmp_path, tmp_path / "in"])


@pytest.mark.parametrize(
    ("place", "says"),
    [("folder", "it is a folder"), ("file/x", "is no folder"), ("x" * 300, "name too long")],
)
def test_a_file_that_cannot_be_is_refused_beforehand(tmp_path, place, says):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=f"cannot write .*(?i:{says})"):
        check_target(tmp_path / place, force=True)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_replaced(tmp_path, there):
    (tmp_path / "far").mkdir()
    if there:
        (tmp_path / "far" / "file").write_bytes(b"old")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("far/file")
    write_whole(tmp_path / "one", b"new")
    assert (tmp_path / "one").is_symlink()
    assert (tmp_path / "two").is_symlink()
    assert (tmp_path / "far" / "file").read_bytes() == b"new"
    assert names(tmp_path) == ["far", "one", "two"]
    assert names(tmp_path / "far") == ["file"]


def test_a_pipe_is_written_into(tmp_path, fifo):
    read = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    check_target(fifo, force=False)
    write_whole(fifo, b"content" * 100_000)
    reader.join(30)
    assert read == [b"content" * 100_000]
    assert fifo.is_fifo()
    assert names(tmp_path) == ["pipe"]


def test_a_device_is_written_into():
    ours, theirs = pty.openpty()
    path = os.ttyname(theirs)
    before = os.stat(path)
    try:
        write_whole(Path(path), b"content")
        assert os.read(ours, 100) == b"content"
        assert os.path.samestat(os.stat(path), before)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_reader_that_has_gone_is_a_broken_pipe_and_no_error_of_data(fifo):
    def read_a_little():
        with fifo.open("rb") as pipe:
            pipe.read(10)

    reader = threading.Thread(target=read_a_little)
    reader.start()
    with pytest.raises(BrokenPipeError), writing(fifo) as temporary:
        temporary.write_bytes(bytes(10_000_000))  # more than a pipe holds
    reader.join(30)


PRINTS = """
from pathlib import Path
from freqsgd.files import check_target, write_whole
print("before")
check_target(Path("/dev/stdout"), force=False)
write_whole(Path("/dev/stdout"), b"content\\n")
print("after")
"""


@pytest.mark.parametrize("mode", ["pipe", "wb", "ab"])
def test_stdout_by_name_is_written_into_in_its_place(tmp_path, mode):
    command = [sys.executable, "-c", PRINTS]
    wanted = "before\ncontent\nafter\n"
    if mode == "pipe":
        assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == wanted
        return
    (tmp_path / "log").write_text("first\n")
    with (tmp_path / "log").open(mode) as out:
        subprocess.run(command, check=True, stdout=out)
    assert (tmp_path / "log").read_text() == ("first\n" if mode == "ab" else "") + wanted
    assert names(tmp_path) == ["log"]


FULL = """
import resource, sys
from pathlib import Path
from freqsgd.tables.dataset import DataError
from freqsgd.files import writing
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # as a full disk
try:
    with writing(Path(sys.argv[1])) as temporary:
        temporary.write_bytes(bytes(2000))
except DataError as error:
    print(error)
"""


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    command = [sys.executable, "-c", FULL, str(tmp_path / "file")]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    assert said.stdout == f"cannot write {tmp_path / 'file'}: File too large\n"
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("[1]", "not one object but of type list"),
        ("{", "Expecting"),
        (b"\xff\xfe{", "decode"),
    ],
)
def test_json_that_cannot_be_used_is_a_value_error(content, says):
    with pytest.raises(ValueError, match=says):
        read_json(content, dict)
