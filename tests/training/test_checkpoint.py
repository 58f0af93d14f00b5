from __future__ import annotations

import errno

import pytest
import torch

from freqsgd.data.dataset import DataError
from freqsgd.training import checkpoint


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
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    checkpoint.save(path, tensors, {})
    monkeypatch.setattr(checkpoint, "FORMAT", 1)
    with pytest.raises(DataError, match="has format 2, this version of freqsgd reads 1"):
        checkpoint.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"there is no .*nothing\.safetensors"):
        checkpoint.load(tmp_path / "nothing.safetensors")


def test_a_full_disk_leaves_what_was_saved_before(saved, monkeypatch):
    path, tensors = saved
    before = path.read_bytes()

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(DataError, match=r"No space left.*what was saved before is kept"):
        checkpoint.save(path, tensors, {"epoch": 4})
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]
