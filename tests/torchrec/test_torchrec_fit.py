"""One pass on ranks equals one pass in one process that counts batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from freqsgd.recommender.engine import new_model
from tests.integration.ranks import Ranks
from tests.recommender.slow import SlowFM
from tests.torchrec.sharded import (
    BATCH,
    MODELS,
    RULE,
    BagStream,
    assert_like_one_process,
    put_together,
    settings_of,
    train,
)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("sharding", ["row-wise", "table-wise", "auto"])
def test_two_ranks_learn_what_one_process_learns(ranks: Ranks, model: str, sharding: str) -> None:
    results = ranks.run(train, model, {"sharding": sharding})
    assert_like_one_process(results, model)
    for result in results:
        told = [result["record"][key] for key in ("engine", "ranks", "sharding")]
        assert told == ["torchrec", 2, sharding]


@pytest.mark.parametrize("model", MODELS)
def test_one_rank_learns_what_one_process_learns(one_rank: Ranks, model: str) -> None:
    assert_like_one_process(one_rank.run(train, model, {}), model)


@pytest.mark.parametrize(
    ("model", "batch_size"),
    [("fm", 64), ("deepfm", 59)],  # all batches are full; the last of the evaluation has one
)
def test_batches_of_other_sizes_are_parted_alike(ranks: Ranks, model: str, batch_size: int) -> None:
    case: dict[str, Any] = {"stream": "plain", "batch_size": batch_size}
    assert_like_one_process(ranks.run(train, model, case), model, **case)


def test_two_ranks_learn_what_is_written_out_sample_by_sample(ranks: Ranks) -> None:
    stream, settings = BagStream(), settings_of("fm")
    start = new_model(stream.fields, settings)
    assert RULE.lr is not None
    slow = SlowFM(
        start.tokens.weight.detach().numpy(), 0.0, start.columns_start.tolist(), "cfsgd", RULE.lr,
        count="batch", dense_lr=RULE.dense_lr,
    )  # fmt: skip
    ids, labels, _ = stream.whole(0, 2)
    losses = []
    for first in range(0, len(ids), BATCH):
        part = slice(first, first + BATCH)
        losses.append(slow.step(ids[part], labels[part]) * len(labels[part]))
    results = ranks.run(train, "fm", {})
    weight, counts = put_together(results)
    np.testing.assert_array_equal(counts, slow.counts)
    np.testing.assert_allclose(weight[:, :5], slow.weight, rtol=0, atol=1e-5)
    for result in results:
        assert result["others"]["bias"].item() == pytest.approx(slow.bias, abs=1e-5)
        loss = result["record"]["train_loss"]
        assert loss == pytest.approx(sum(losses) / len(labels), abs=1e-5)
