"""A TorchRec model of one's own learns as in one process."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from freqsgd.data.dataset import DataError
from freqsgd.distributed import TableRates, dense_parameters, shard
from tests.integration.ranks import Ranks

from .own_model import (
    KINDS,
    LR,
    ROWS,
    STEPS,
    Own,
    Sharded,
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


def resume_in_the_middle(rank: int) -> list[dict[str, Any]]:
    half = slice(STEPS // 2), slice(STEPS // 2, None)
    whole, first, second = Sharded(), Sharded(), Sharded()
    whole.train()
    first.train(half[0])
    second.model.load_state_dict(first.model.state_dict())
    second.rates.load_state_dict(first.rates.state_dict())
    second.rates.set_counts({name: counts for name, (_, counts) in first.rates.counts().items()})
    second.train(half[1])
    return [whole.result(), second.result()]


def test_a_run_goes_on_from_its_state_to_the_same_bits(ranks: Ranks) -> None:
    for whole, resumed in ranks.run(resume_in_the_middle):
        torch.testing.assert_close(resumed, whole, rtol=0, atol=0)


def move_rows_one_by_one(rank: int) -> torch.Tensor:
    """What row t has moved that only batch t held, with a slope of 1."""
    run = Sharded()
    (before,) = (rows.clone() for _, rows in [run.result()["weights"]["wide"]])
    empty = (torch.tensor([], dtype=torch.int64), torch.tensor([0]))
    for row in range(4):
        run.rates.step()
        bags = {"w": (torch.tensor([row]), torch.tensor([1])), "n1": empty, "n2": empty}
        run.model.module.network = nn.Identity()
        run.model(bags).sum().backward()
    return before - run.result()["weights"]["wide"][1]


def test_the_rate_of_a_batch_acts_on_that_batch(one_rank: Ranks) -> None:
    (moved,) = one_rank.run(move_rows_one_by_one)
    expected = LR * torch.arange(1, 5).sqrt()
    torch.testing.assert_close(moved[:4], expected[:, None].expand(4, 8))
    assert not moved[4:].any()


def learn_from_meta(rank: int) -> list[float]:
    torch.manual_seed(rank)
    model = shard(Own("bags", device="meta"), lr=LR)
    rates = TableRates(model, LR)
    losses = []
    for _ in range(3):
        bags, targets = make_batches()[0]
        rates.step()
        loss = (model(part_of(bags, rank, 2)) - targets.chunk(2)[rank]).square().mean()
        loss.backward()
        losses.append(loss.item())
    return losses


def test_tables_need_not_exist_before_they_are_sharded(ranks: Ranks) -> None:
    for losses in ranks.run(learn_from_meta):
        assert all(math.isfinite(loss) for loss in losses)
        assert losses[-1] < losses[0]


def learn_tables_of_few_rows(rank: int, rows: list[int], sharding: str) -> Any:
    from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor

    names = [str(i) for i in range(len(rows))]
    tables = EmbeddingBagCollection(
        tables=[
            EmbeddingBagConfig(
                name=name, num_embeddings=number, embedding_dim=4, feature_names=[name]
            )
            for name, number in zip(names, rows, strict=True)
        ]
    )
    model = shard(tables, lr=LR, sharding=sharding)
    assert dense_parameters(model) == []
    rates = TableRates(model, LR)
    for _ in range(2):
        rates.step()
        first = torch.zeros(len(rows), dtype=torch.int64)
        ids = KeyedJaggedTensor(names, first, lengths=torch.ones_like(first).int())
        model(ids).values().sum().backward()
    return {name.split(".")[-2]: counts.tolist() for name, (_, counts) in rates.counts().items()}


@pytest.mark.parametrize("rows", [[3, 1], [1, 3], [1, 1], [1, 5, 1, 2, 1]])
@pytest.mark.parametrize("sharding", ["row-wise", "auto"])
def test_tables_of_too_few_rows_are_on_one_rank(
    ranks: Ranks, rows: list[int], sharding: str
) -> None:
    parts = ranks.run(learn_tables_of_few_rows, rows, sharding)
    for number, size in enumerate(rows):
        found = [part[str(number)] for part in parts if str(number) in part]
        assert [count for part in found for count in part] == [2] + [0] * (size - 1)
        assert all(found)


def count_too_far(rank: int) -> list[str]:
    rates = Sharded().rates
    rates.load_state_dict({"steps": 2**24 - 1, "lr": LR})
    rates.step()
    return [
        refusal(rates.step),
        refusal(lambda: rates.set_counts({name: torch.ones(1) for name in rates.counts()})),
    ]


def refusal(call: Any) -> str:
    with pytest.raises(DataError) as caught:
        call()
    return str(caught.value)


def test_counters_end_where_float32_does(one_rank: Ranks) -> None:
    ((end, shape),) = one_rank.run(count_too_far)
    assert "16,777,216 batches: take larger batches" in end
    assert shape == "tables.embedding_bags.wide.weight has 23 rows on this rank, but 1 counts"


def ask_for_what_cannot_be(rank: int) -> dict[str, str]:
    from torchrec import EmbeddingBagCollection, EmbeddingBagConfig

    def table(dim: int) -> nn.Module:
        config = EmbeddingBagConfig(
            name="one", num_embeddings=9, embedding_dim=dim, feature_names=["f"]
        )
        return EmbeddingBagCollection(tables=[config])

    def ask(model: nn.Module, lr: float = LR, **options: Any) -> str:
        return refusal(lambda: shard(model, lr=lr, **options))

    return {
        "idle": ask(table(4), sharding="table-wise"),
        "sharding": ask(table(4), sharding="by-row"),
        "columns": ask(table(6)),
        "tables": ask(nn.Linear(3, 1)),
        "lr": ask(table(4), lr=math.nan),
        "max_lr": ask(table(4), max_lr=1.0),
    }


def test_what_cannot_be_sharded_is_refused(ranks: Ranks) -> None:
    first, second = ranks.run(ask_for_what_cannot_be)
    assert first == second
    assert first["idle"] == (
        "table-wise sharding of 1 tables over 2 ranks leaves some idle: take row-wise, or at most "
        "1 ranks"
    )
    assert first["sharding"] == ("unknown sharding 'by-row'; known: row-wise, table-wise, auto")
    assert first["columns"] == (
        "embedding_bags.one.weight has embedding_dim 6, but FBGEMM needs a multiple of 4: take 8"
    )
    assert first["tables"].startswith("the model holds no EmbeddingBagCollection")
    assert first["lr"] == "lr must be a finite number >= 0, got nan"
    assert "no max_lr" in first["max_lr"]
