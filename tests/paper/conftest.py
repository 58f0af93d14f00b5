from __future__ import annotations

import os

import pytest

from tests.paper.tiny import ROOT


@pytest.fixture(autouse=True)
def _no_data(monkeypatch, tmp_path):
    """No datasets but those that a test makes; the stub is found wherever tests are run."""
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
