from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from freqsgd.errors import DataError
from freqsgd.runs import checkpoint
from freqsgd.runs.machine import forget_peak, peak_memory


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "c.safetensors"
    tensors = {"a": torch.randn(50, 3), "n": torch.arange(4)}
    checkpoint.save(path, tensors, {"epoch": 3, "x": 0.1})
    return path, tensors


def test_what_is_saved_is_loaded(saved):
    path, tensors = saved
    loaded, description = checkpoint.load(path)
    assert description == {"epoch": 3, "x": 0.1}
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize("where", [-1, -500, 100, 9, 0])
def test_a_changed_byte_is_noticed(saved, where):
    path, _ = saved
    content = bytearray(path.read_bytes())
    content[where] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"c\.safetensors (is damaged|was changed|has format)"):
        checkpoint.load(path)


@pytest.mark.parametrize("length", [0, 5, 100, 700])
def test_a_truncated_file_is_refused(saved, length):
    path, _ = saved
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DataError, match="damaged"):
        checkpoint.load(path)


def test_a_file_of_another_version_is_refused(saved, monkeypatch):
    path, tensors = saved
    monkeypatch.setattr(checkpoint, "FORMAT", 1)
    checkpoint.save(path, tensors, {})
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    with pytest.raises(DataError, match="has format 1, this version of freqsgd reads 2"):
        checkpoint.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"there is no .*nothing\.safetensors"):
        checkpoint.load(tmp_path / "nothing.safetensors")


FULL = """
import resource, sys, torch
from pathlib import Path
from freqsgd.tables.dataset import DataError
from freqsgd.runs import checkpoint
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # as a full disk
try:
    checkpoint.save(Path(sys.argv[1]), {"a": torch.ones(1000, 100)}, {"epoch": 4})
except DataError as error:
    print(error)
"""


def test_a_full_disk_leaves_what_was_saved_before(saved):
    path, _ = saved
    before = path.read_bytes()
    child = [sys.executable, "-c", FULL, str(path)]
    told = subprocess.run(child, check=True, capture_output=True, text=True).stdout
    assert told == f"cannot write {path}: File too large; what was saved before is kept\n"
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_files_of_the_safetensors_library_are_read_and_ours_are_read_by_it(saved, tmp_path):
    path, tensors = saved
    theirs = load_file(path)
    assert all(torch.equal(theirs[name], tensors[name]) for name in tensors)
    with safe_open(path, "pt") as file:
        save_file(tensors, tmp_path / "copy.safetensors", file.metadata())
    loaded, description = checkpoint.load(tmp_path / "copy.safetensors")
    assert description == {"epoch": 3, "x": 0.1}
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)


KINDS = (torch.bool, torch.uint8, torch.int16, torch.int64, torch.bfloat16, torch.float64)


def test_every_kind_and_shape_of_tensor_comes_back(tmp_path):
    path = tmp_path / "c.safetensors"
    tensors = {str(kind): torch.arange(5).to(kind) for kind in KINDS}
    tensors |= {"none": torch.empty(0, 3), "number": torch.tensor(1.5), "odd": torch.ones(3, 1).T}
    checkpoint.save(path, tensors, {})
    loaded, _ = checkpoint.load(path)
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor)
    assert all(torch.equal(load_file(path)[name], tensors[name]) for name in tensors)


def test_tensors_are_read_into_those_given_where_they_fit(saved):
    path, tensors = saved
    into = {"a": torch.zeros(50, 3), "n": torch.zeros(4, dtype=torch.int32)}
    loaded, _ = checkpoint.load(path, into)
    assert torch.equal(into["a"], tensors["a"])
    assert loaded["a"].data_ptr() == into["a"].data_ptr()
    assert torch.equal(loaded["n"], tensors["n"])
    assert not into["n"].any()  # of another type


def test_the_description_is_there_without_the_tensors(saved):
    assert checkpoint.describe(saved[0]) == {"epoch": 3, "x": 0.1}


def test_a_large_tensor_is_written_and_read_without_another_copy(tmp_path):
    if peak_memory() is None:
        pytest.skip("this system does not tell")
    path, tensors = tmp_path / "c.safetensors", {"a": torch.ones(50_000_000)}
    forget_peak()
    before = peak_memory()
    checkpoint.save(path, tensors, {})
    checkpoint.load(path, tensors)
    assert peak_memory() < before + tensors["a"].nbytes // 4
