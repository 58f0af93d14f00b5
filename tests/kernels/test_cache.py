"""Compiled kernels on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from freqsgd.kernels.compiled import TOLD

STEP = """
import sys, torch, freqsgd
dtype = getattr(torch, sys.argv[1])
results = []
for fused in (False, True):
    torch.manual_seed(0)
    table = torch.nn.Parameter(torch.randn(50, 9, dtype=dtype))
    opt = freqsgd.CFSGD([table], 0.1, fused=fused)
    ids, values = torch.randint(0, 50, (1, 200)), torch.randn(200, 9, dtype=dtype)
    table.grad = torch.sparse_coo_tensor(ids, values, table.shape, check_invariants=True)
    opt.step()
    results.append(table.detach())
torch.testing.assert_close(*results, rtol=1e-5, atol=1e-5)
"""


def start(dtype: str, cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", STEP, dtype]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> int:
    """How often a process that must succeed says that it compiles."""
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 0, errors
    return errors.splitlines().count(TOLD)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels of two types, from processes that compile at the same time."""
    folder = tmp_path_factory.mktemp("cache")
    for process in [start("float32", folder), start("float64", folder)]:
        assert told(process) == 1
    return folder


def test_kernels_that_are_on_disk_are_not_compiled(cache: Path) -> None:
    assert told(start("float32", cache)) == 0


def test_kernels_of_different_types_never_share_a_file(cache: Path) -> None:
    """Processes that compile at the same time would overwrite each other's entries in one."""
    names = [path.name.split("-")[0] for path in cache.rglob("*.nbi")]
    assert len(names) == len(set(names))
    for kind in ("float32", "float64"):
        assert any(f"update_{kind}_int32_int32" in name for name in names)


def test_damaged_cache_files_are_compiled_around(cache: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(cache, tmp_path / "cache")
    for path in [*damaged.rglob("*.nbi"), *damaged.rglob("*.nbc")]:
        path.write_bytes(path.read_bytes()[:40])
    assert told(start("float32", damaged)) == 1
