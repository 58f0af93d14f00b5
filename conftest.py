"""What all tests share, examples in docstrings included."""

from __future__ import annotations

import gc
import os
import sys

import pytest
import torch
import torch._dynamo  # which the first step of an optimizer imports, with warnings
from hypothesis import settings

import freqsgd

settings.register_profile("freqsgd", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("freqsgd")


_imported = 0  # modules, when objects were last looked at


@pytest.fixture(autouse=True)
def _imports_are_not_searched() -> None:
    """Keep what was imported, a million objects, out of every later search of all objects.

    The garbage collector searches them, and each optimizer does once, for embedding modules.
    """
    global _imported
    if len(sys.modules) != _imported:
        gc.collect()
        gc.freeze()
        _imported = len(sys.modules)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _names_of_examples(doctest_namespace: dict[str, object]) -> None:
    names = {name: getattr(freqsgd, name) for name in freqsgd.__all__}
    doctest_namespace.update(names, torch=torch)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """In continuous integration a test marked ``ci`` that is skipped has failed."""
    outcome = yield
    report = outcome.get_result()
    required = item.get_closest_marker("ci") is not None and os.environ.get("FREQSGD_CI")
    if report.skipped and required and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, but required in continuous integration: {report.longrepr}"
