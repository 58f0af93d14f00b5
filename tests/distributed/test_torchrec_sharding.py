"""A TorchRec model of one's own learns as in one process."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from freqsgd.data.dataset import DataError
from freqsgd.distributed import TableRates, dense_parameters, shard
from tests.integration.ranks import Ranks

from .own_model import (
    FEATURES,
    KINDS,
    LR,
    ROWS,
    Own,
    Sharded,
    initial_weight,
    join_rows,
    make_batches,
    part_of,
    train_sharded,
    train_single,
)


def assert_like_one_process(results: list[dict[str, Any]], kind: str) -> None:
    expected = train_single(kind)
    counts = join_rows([result["counts"] for result in results])
    weights = join_rows([result["weights"] for result in results])
    for table in ROWS:
        assert torch.equal(counts[table], expected["counts"][table])
        torch.testing.assert_close(weights[table], expected["weights"][table], rtol=0, atol=1e-5)
    for result in results:
        torch.testing.assert_close(result["network"], expected["network"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sharding", ["row-wise", "table-wise", "auto"])
def test_two_ranks_learn_what_one_process_learns(ranks: Ranks, kind: str, sharding: str) -> None:
    assert_like_one_process(ranks.run(train_sharded, kind, sharding), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_one_rank_learns_what_one_process_learns(one_rank: Ranks, kind: str) -> None:
    assert_like_one_process(one_rank.run(train_sharded, kind, "row-wise"), kind)
