from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.ranks import Ranks


@pytest.fixture(scope="session")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """A group of one."""
    ranks = Ranks(tmp_path_factory.mktemp("one"), world=1)
    yield ranks
    ranks.close()
