"""freqsgd export and freqsgd neighbors as a user runs them."""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
from pathlib import Path

import pytest

from freqsgd.errors import DataError
from freqsgd.vectors.names import FORMATS, read_names
from freqsgd.vectors.vectors import Vectors
from tests.vectors.conftest import ODD


@contextlib.contextmanager
def small_files(most):
    """Writing beyond so many bytes of a file fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("format", FORMATS)
def test_export_writes_files_and_says_which(folders, freqsgd, tmp_path, format):
    field = ["--field", "user"] if format.startswith("word2vec") else []
    command = ["export", folders / "fm", "--format", format, "--out", tmp_path / "file", *field]
    told = dict(line.split(": ") for line in freqsgd(*command).splitlines())
    assert told.keys() == {str(path) for path in tmp_path.iterdir()}
    for path, size in told.items():
        number, unit = size.split()
        written = Path(path).stat().st_size
        assert float(number) * {"B": 1, "kB": 1e3, "MB": 1e6}[unit] == pytest.approx(
            written, rel=0.06
        )
    size = (tmp_path / "file").stat().st_size
    message = freqsgd(*command, fails=True)
    assert "exists already" in message
    assert "--force" in message
    (tmp_path / "file").write_bytes(b"old")
    freqsgd(*command, "--force")
    assert (tmp_path / "file").stat().st_size == size


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("most", [0, 300, 700])
def test_a_full_disk_leaves_nothing_new(folders, freqsgd, tmp_path, format, most):
    (tmp_path / "file").write_bytes(b"old")
    command = ["export", folders / "fm", "--format", format, "--out", tmp_path / "file"]
    field = ["--field", "user"] if format.startswith("word2vec") else []
    with small_files(most):
        message = freqsgd(*command, *field, "--force", fails=True)
    assert "cannot write" in message
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("place", ["nowhere/file", "a-file/file"])
def test_a_folder_that_cannot_be_written_to(folders, freqsgd, tmp_path, format, place):
    (tmp_path / "a-file").touch()
    command = ["export", folders / "one-field", "--format", format, "--out", tmp_path / place]
    assert "cannot write" in freqsgd(*command, fails=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--format", "onxx"], ["'onxx'", "did you mean 'onnx'", "safetensors, npz"]),
        (["--format", "npz", "--field", "users"], ["'users'", "did you mean 'user'", "tags"]),
        (["--format", "word2vec-text"], ["name the field", "user", "tags"]),
        (["--format", "onnx", "--field", "user"], ["whole model"]),
    ],
)
def test_what_export_refuses(folders, freqsgd, tmp_path, options, said):
    out = tmp_path / "file"
    message = freqsgd("export", folders / "fm", *options, "--out", out, fails=True)
    for words in said:
        assert words in message
    assert not out.exists()


def test_folders_that_are_no_models(folders, freqsgd, tmp_path):
    export = ["--format", "npz", "--out", tmp_path / "file"]
    assert "is not a model" in freqsgd("export", tmp_path, *export, fails=True)
    assert "is not a model" in freqsgd("neighbors", tmp_path / "none", "user", "u1", fails=True)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "adam").symlink_to(folders / "fm")
    assert "a comparison, whose models are adam" in freqsgd("export", tmp_path, *export, fails=True)


@pytest.mark.parametrize("lost", [["encoder.json"], ["tokens.parquet", "encoder.json"]])
def test_lost_dictionaries_are_not_replaced_by_numbers(folders, freqsgd, tmp_path, lost):
    bad, out = tmp_path / "bad", tmp_path / "file"
    shutil.copytree(folders / "fm", bad)
    for name in lost:
        (bad / name).unlink()
    message = freqsgd("export", bad, "--format", "npz", "--out", out, fails=True)
    assert lost[-1] in message
    assert "train" in message
    assert not out.exists()


def test_export_never_writes_over_the_model(folders, freqsgd):
    out = ["--format", "safetensors", "--out", folders / "fm" / "model.safetensors", "--force"]
    assert "an input, which is never replaced" in freqsgd(
        "export", folders / "fm", *out, fails=True
    )
    assert "it is a folder" in freqsgd(
        "export", folders / "fm", "--format", "npz", "--out", folders, "--force", fails=True
    )


def test_neighbors_prints_a_table(folders, freqsgd, tmp_path):
    names = tmp_path / "names.csv"
    names.write_text('plain,"A, plain shop"\n[red],\x1b[31mred\n', "utf-8")
    told = freqsgd("neighbors", folders / "fm", ODD, "plain", "日本", "--top", 6, "--names", names)
    first, second = told.split("\n\n")
    expected = Vectors.of_model(folders / "fm", ODD).nearest(["plain"], 6)[0]
    head, columns, *lines = first.splitlines()
    assert head == "plain  A, plain shop"
    assert columns.split() == ["rank", "token", "name", "cosine", "seen"]
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4", "5", "6"]
    for line, one in zip(lines, expected, strict=True):
        shown = one.token if one.token.isprintable() else repr(one.token)
        assert shown in line
        assert line.split()[-2:] == [f"{one.cosine:.4f}", f"{one.count:,}"]
    assert "\x1b" not in told
    assert second.startswith("日本\n")


def test_neighbors_as_json(folders, freqsgd, tmp_path):
    told = freqsgd("neighbors", folders / "fm", "user", "u1", "u2", "--top", 3, "--json")
    expected = Vectors.of_model(folders / "fm", "user").nearest(["u1", "u2"], 3)
    assert json.loads(told) == [
        {
            "token": token,
            "neighbors": [
                {"token": one.token, "cosine": one.cosine, "count": one.count} for one in near
            ],
        }
        for token, near in zip(["u1", "u2"], expected, strict=True)
    ]


def test_what_neighbors_refuses(folders, freqsgd, tmp_path):
    message = freqsgd("neighbors", folders / "fm", "user", "U1", fails=True)
    assert "no token 'U1'; spelled alike: 'u1'" in message
    assert "did you mean 'tags'" in freqsgd("neighbors", folders / "fm", "tag", "t1", fails=True)
    assert "--top" in freqsgd("neighbors", folders / "fm", "tags", "t1", "--top", 0, fails=True)
    names = ["--names", tmp_path / "none"]
    assert "cannot read" in freqsgd("neighbors", folders / "fm", "tags", "t1", *names, fails=True)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("1::Café::a|b\n2::One, two\n".encode("latin-1"), {"1": "Café", "2": "One, two"}),
        ('1\tCafé: \x85 bar\n\n2\t"two\r\n'.encode(), {"1": "Café: \x85 bar", "2": '"two'}),
        (b'\xef\xbb\xbf1,"One, two",x\n2,"a\nb"\n', {"1": "One, two", "2": "a\nb"}),
        (b"", {}),
    ],
)
def test_files_of_names(tmp_path, content, names):
    (tmp_path / "names").write_bytes(content)
    assert read_names(tmp_path / "names") == names


def test_a_line_without_a_name(tmp_path):
    (tmp_path / "names").write_text("1::a\n2\n")
    with pytest.raises(DataError, match="names, line 2: one column"):
        read_names(tmp_path / "names")
