"""What the tests of distributed training share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.ranks import Ranks


@pytest.fixture(scope="session")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """Two ranks, which stay for all tests, since torchrec is slow to load."""
    ranks = Ranks(tmp_path_factory.mktemp("ranks"))
    yield ranks
    ranks.close()


@pytest.fixture(scope="session")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """A group of one."""
    ranks = Ranks(tmp_path_factory.mktemp("one"), world=1)
    yield ranks
    ranks.close()
