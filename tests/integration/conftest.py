"""What the integration tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.integration.ranks import Ranks


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    ranks = Ranks(tmp_path_factory.mktemp("ranks"))
    yield ranks
    ranks.close()


@pytest.fixture
def _restore_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
