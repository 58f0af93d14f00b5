from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has an encoded cache of its own, and no datasets but its own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FREQSGD_CACHE", str(folder))
    monkeypatch.delenv("FREQSGD_DATA", raising=False)
    return folder
