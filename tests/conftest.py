from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
import torch

from tests.integration.ranks import Ranks


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests named after TorchRec need it; in continuous integration they must run."""
    for item in items:
        if "torchrec" in item.nodeid:
            item.add_marker(pytest.mark.ci)
            if find_spec("torchrec") is None:
                item.add_marker(pytest.mark.skip(reason="needs torchrec: see the README"))


@pytest.fixture(autouse=True)
def _torch_threads():
    """Commands that run within a test set them for the whole process."""
    before = torch.get_num_threads()
    yield
    if torch.get_num_threads() != before:
        torch.set_num_threads(before)


@pytest.fixture(scope="session")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """Two ranks, which stay for all tests, since torch and torchrec are slow to load."""
    ranks = Ranks(tmp_path_factory.mktemp("ranks"))
    yield ranks
    ranks.close()
