"""A TorchRec model of one's own learns as in one process."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from freqsgd.errors import DataError, DivergedError
from freqsgd.torchrec.sharding import dense_parameters, shard
from freqsgd.torchrec.table_rates import TableRates
from tests.integration.ranks import Ranks
from tests.torchrec.own_model import (
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
    train_single_adam,
)


def assert_like_one_process(
    results: list[dict[str, Any]], kind: str, single: Callable[[str], dict[str, Any]] = train_single
) -> None:
    expected = single(kind)
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sharding", ["row-wise", "table-wise", "auto"])
def test_adams_scale_on_two_ranks_is_that_of_its_formulas(
    ranks: Ranks, kind: str, sharding: str
) -> None:
    results = ranks.run(train_sharded, kind, sharding, "adam")
    assert_like_one_process(results, kind, train_single_adam)


@pytest.mark.parametrize("kind", KINDS)
def test_adams_scale_on_one_rank_is_that_of_its_formulas(one_rank: Ranks, kind: str) -> None:
    results = one_rank.run(train_sharded, kind, "row-wise", "adam")
    assert_like_one_process(results, kind, train_single_adam)


def scale_means(rank: int, weighted: bool) -> list[Tensor]:
    """Rows after a batch on two ranks by ``scale="adam"``, and by its formulas in one process."""
    from torchrec import EmbeddingBagCollection, KeyedJaggedTensor

    random = torch.Generator().manual_seed(5)
    start, slopes = (torch.randn(9, 4, generator=random) for _ in range(2))
    bags = [[0, 1, 0], [], [2], [2, 3, 0, 0], [8], [1, 7]]  # three of each rank
    weights = [torch.rand(len(bag_), generator=random) for bag_ in bags]
    pooling = "SUM" if weighted else "MEAN"
    tables = EmbeddingBagCollection(
        tables=[bag("t", 9, pooling=pooling), bag("other", 9)], is_weighted=weighted
    )
    for parameter in tables.parameters():
        parameter.data = start.clone()
    model = shard(tables, lr=LR)
    rates = TableRates(model, scale="adam")
    own = slice(3 * rank, 3 * rank + 3)
    ids = torch.tensor([*chain(*bags[own])])
    lengths = torch.tensor([*map(len, bags[own]), 1, 1, 1])
    tokens = KeyedJaggedTensor(
        ["t", "other"],
        torch.cat([ids, torch.arange(3)]),
        torch.cat([*weights[own], torch.ones(3)]) if weighted else None,
        lengths,
    )
    rates.step()
    (model(tokens)["t"] * slopes[own]).sum().backward()

    parts = [w if weighted else torch.ones(len(w)) / len(w) for w in weights]
    occurrences = torch.cat([p[:, None] * slopes[n] / 2 for n, p in enumerate(parts)])
    rows = torch.tensor([*chain(*bags)])
    root = (occurrences.square().mean(1).sum() / len(rows.unique())).sqrt()
    expected = start.index_add(0, rows, occurrences, alpha=-LR / root.item())
    (held,) = model.state_dict()["embedding_bags.t.weight"].local_shards()
    first, size = held.metadata.shard_offsets[0], held.metadata.shard_sizes[0]
    return [held.tensor.clone(), expected[first : first + size]]


@pytest.mark.parametrize("weighted", [False, True])
def test_adams_scale_counts_occurrences_by_their_weight(ranks: Ranks, weighted: bool) -> None:
    for found, expected in ranks.run(scale_means, weighted):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def refuse_scales(rank: int) -> list[str]:
    run, scaled = Sharded(), Sharded(scale="adam")
    scaled.train(slice(2))
    state = scaled.rates.state_dict()
    name = "tables.embedding_bags.wide.weight"

    def damaged(moments: dict[str, Any]) -> str:
        return refusal(lambda: scaled.rates.load_state_dict(state | {"moments": moments}))

    bags, _ = make_batches()[2]
    before = scaled.result()["weights"]["wide"][1]
    scaled.rates.step()
    loss = scaled.model(part_of(bags, rank, 2)).sum() * (math.nan if rank else 1.0)
    with pytest.raises(DivergedError) as diverged:
        loss.backward()
    assert torch.equal(scaled.result()["weights"]["wide"][1], before)
    return [
        refusal(lambda: TableRates(run.model, scale="Adam")),
        refusal(lambda: TableRates(run.model, scale=("adam", None)[rank])),
        refusal(lambda: TableRates(scaled.model)),
        refusal(lambda: run.rates.load_state_dict(state)),
        refusal(lambda: scaled.rates.load_state_dict(run.rates.state_dict())),
        damaged({name: state["moments"][name]}),
        damaged(state["moments"] | {name: [-1.0, 2.0]}),
        damaged(state["moments"] | {name: [math.nan, 2.0]}),
        damaged(state["moments"] | {name: [1.0, 0.5]}),
        damaged(state["moments"] | {name: 1.0}),
        str(diverged.value),
    ]


def test_scales_and_moments_that_cannot_be_are_refused(ranks: Ranks) -> None:
    first, second = ranks.run(refuse_scales)
    assert first == second
    assert first == [
        "scale must be \"adam\" or None, got 'Adam'",
        "scale is 'adam' on rank 0 and None on rank 1: start all ranks with the same options",
        "the model has a TableRates with scale: take that one",
        *["the state was saved with another scale: give TableRates the same one"] * 2,
        *["the second moments in the state are damaged, or of another model"] * 5,
        "the loss gives table wide no finite gradients in step 2",
    ]


def resume_in_the_middle(rank: int, scale: str | None) -> list[dict[str, Any]]:
    half = slice(STEPS // 2), slice(STEPS // 2, None)
    whole, first, second = (Sharded(scale=scale) for _ in range(3))
    whole.train()
    first.train(half[0])
    second.model.load_state_dict(first.model.state_dict())
    second.rates.load_state_dict(json.loads(json.dumps(first.rates.state_dict())))
    second.rates.set_counts({name: counts for name, (_, counts) in first.rates.counts().items()})
    second.train(half[1])
    return [whole.result(), second.result()]


@pytest.mark.parametrize("scale", [None, "adam"])
def test_a_run_goes_on_from_its_state_to_the_same_bits(ranks: Ranks, scale: str | None) -> None:
    for whole, resumed in ranks.run(resume_in_the_middle, scale):
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


def count_rows_of_ranks(rank: int) -> dict[str, Any]:
    from torchrec import EmbeddingBagCollection

    model = shard(EmbeddingBagCollection(tables=[bag("a", 2), bag("b", 3)]), lr=LR)
    rates = TableRates(model)
    rates.step()
    model(keyed({"a": [[1]], "b": [[2]]})).values().sum().backward()
    return dict(rates.counts())


def test_counts_say_which_row_is_their_first(ranks: Ranks) -> None:
    first, second = ranks.run(count_rows_of_ranks)
    for table, parts in {
        "a": [(0, [0]), (1, [1])],
        "b": [(0, [0, 0]), (2, [1])],
    }.items():
        found = [part[f"embedding_bags.{table}.weight"] for part in (first, second)]
        assert [(row, counts.tolist()) for row, counts in found] == parts


def bag(name: str, rows: int, feature: str = "", pooling: str = "SUM", dim: int = 4) -> Any:
    from torchrec import EmbeddingBagConfig, PoolingType

    return EmbeddingBagConfig(
        name=name,
        num_embeddings=rows,
        embedding_dim=dim,
        feature_names=[feature or name],
        pooling=PoolingType(pooling),
    )


def keyed(bags: dict[str, list[list[int]]]) -> Any:
    """Ids of samples, by feature."""
    from torchrec import KeyedJaggedTensor

    samples = [sample for feature in bags.values() for sample in feature]
    return KeyedJaggedTensor(
        list(bags),
        torch.tensor([id for sample in samples for id in sample]),
        lengths=torch.tensor([len(sample) for sample in samples], dtype=torch.int32),
    )


def look_up_means(rank: int, tables: list[tuple[str, int, str, str]], sharding: str) -> Any:
    """What a sharded collection finds, and what the same finds in one process."""
    from torchrec import EmbeddingBagCollection

    torch.manual_seed(1)
    collection = EmbeddingBagCollection(tables=[bag(*table) for table in tables])
    bags = {feature: [[], [0], [0, rows - 1, 0]] for _, rows, feature, _ in tables}
    expected = collection(keyed(bags)).to_dict()
    try:
        model = shard(collection, lr=LR, sharding=sharding)
    except DataError as error:
        return str(error)
    found = model(keyed(bags)).to_dict()
    return [{name: rows.detach() for name, rows in by.items()} for by in (found, expected)]


ALONE = [("s", 30, "a", "SUM"), ("m", 40, "b", "MEAN"), ("z", 20, "c", "SUM")]
TINY = [("s", 30, "a", "SUM"), ("m", 40, "b", "MEAN"), ("t", 1, "c", "SUM")]
TINY_MEAN = [("s", 30, "a", "SUM"), ("z", 40, "b", "SUM"), ("t", 1, "c", "MEAN")]
SHARED = [("s", 30, "a", "SUM"), ("m", 30, "a", "MEAN"), ("z", 20, "c", "SUM")]


@pytest.mark.parametrize(
    ("tables", "sharding"),
    [
        *((ALONE, sharding) for sharding in ("row-wise", "table-wise", "auto")),
        *((TINY, sharding) for sharding in ("table-wise", "auto")),
        *((TINY_MEAN, sharding) for sharding in ("row-wise", "auto")),
        *((SHARED, sharding) for sharding in ("table-wise", "auto")),
    ],
)
def test_sums_and_means_are_those_of_one_process(
    ranks: Ranks, tables: list[tuple[str, int, str, str]], sharding: str
) -> None:
    for found, expected in ranks.run(look_up_means, tables, sharding):
        assert found.keys() == expected.keys()
        for name, rows in expected.items():
            torch.testing.assert_close(found[name], rows, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        (TINY, "t of the same collection has too few rows"),
        (SHARED, "several tables of its collection have the feature a"),
    ],
)
def test_means_that_torchrec_gets_wrong_are_refused(
    ranks: Ranks, tables: list[tuple[str, int, str, str]], reason: str
) -> None:
    for said in ranks.run(look_up_means, tables, "row-wise"):
        assert said.startswith("row-wise sharding of m, which averages")
        assert reason in said
        assert said.endswith("take table-wise, or a collection of its own")


def differ(rank: int) -> list[str]:
    from torchrec import EmbeddingBagCollection

    def ask(rows: int = 9, dim: int = 4, lr: float = LR, sharding: str = "row-wise") -> str:
        tables = EmbeddingBagCollection(tables=[bag("one", rows, dim=dim), bag("two", 8)])
        return refusal(lambda: shard(tables, lr=lr, sharding=sharding))

    return [
        ask(lr=(1.0, -1.0)[rank]),
        ask(sharding=("row-wise", "table-wise")[rank]),
        ask(rows=9 + rank),
        ask(dim=(4, 6)[rank]),
    ]


def test_ranks_that_ask_for_different_things_are_refused_on_all(ranks: Ranks) -> None:
    shape = "the shape of embedding_bags.one.weight"
    expected = [
        "lr is 1.0 on rank 0 and -1.0 on rank 1",
        "sharding is 'row-wise' on rank 0 and 'table-wise' on rank 1",
        f"{shape} is [9, 4] on rank 0 and [10, 4] on rank 1",
        f"{shape} is [9, 4] on rank 0 and [9, 6] on rank 1",
    ]
    for said in ranks.run(differ):
        assert said == [f"{line}: start all ranks with the same options" for line in expected]


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
    assert shape == "tables.embedding_bags.narrow.weight has 5 rows on this rank, but 1 counts"


def hand_over_nonsense(rank: int) -> list[str]:
    run = Sharded()
    rates, name = run.rates, "tables.embedding_bags.wide.weight"
    counts = {name: held for name, (_, held) in rates.counts().items()}

    def load(**state: Any) -> str:
        return refusal(lambda: rates.load_state_dict(state))

    def hand(wrong: float) -> str:
        return refusal(lambda: rates.set_counts(counts | {name: torch.full((23,), wrong)}))

    said = [
        refusal(lambda: rates.set_counts({})),
        *map(hand, (-1, 2**24 + 2, 0.5)),
        load(),
        *(load(steps=steps, lr=LR) for steps in (-1, 1.5, 2**25)),
        load(steps=1, lr=math.nan),
        refusal(lambda: TableRates(run.model, 2 * LR)),
        refusal(lambda: TableRates(run.model.module, LR)),
    ]
    assert rates.steps == 0
    assert not any(held.any() for _, held in rates.counts().values())
    return said


def test_counts_steps_and_rates_that_cannot_be_are_refused(one_rank: Ranks) -> None:
    (said,) = one_rank.run(hand_over_nonsense)
    weight, up_to = "tables.embedding_bags.wide.weight", "from 0 to 16,777,216"
    assert said == [
        "tables.embedding_bags.narrow.weight has rows on this rank, but no counts",
        *[f"counts of {weight} must be whole numbers {up_to}"] * 3,
        "the state of TableRates lacks lr and steps",
        *(
            f"steps must be a whole number {up_to}, got {steps}"
            for steps in ("-1", "1.5", "33554432")
        ),
        "lr must be a finite number >= 0, got nan",
        "lr is 0.6, but shard was given 0.3: leave it out here",
        "TableRates needs a model that freqsgd.torchrec.sharding.shard made",
    ]


def ask_for_what_cannot_be(rank: int) -> dict[str, str]:
    from torchrec import EmbeddingBagCollection

    class Mine(EmbeddingBagCollection):
        """One's own."""

    def table(dim: int, kind: Any = EmbeddingBagCollection) -> nn.Module:
        return kind(tables=[bag("one", 9, dim=dim)])

    def ask(model: nn.Module, lr: Any = LR, **options: Any) -> str:
        return refusal(lambda: shard(model, lr=lr, **options))

    return {
        "idle": ask(table(4), sharding="table-wise"),
        "sharding": ask(table(4), sharding="by-row"),
        "columns": ask(table(6)),
        "tables": ask(nn.Linear(3, 1)),
        "lr": ask(table(4), lr=math.nan),
        "no lr": ask(table(4), lr=None),
        "text": ask(table(4), lr="abc"),
        "max_lr": ask(table(4), max_lr=1.0),
        "momentum": ask(table(4), momentum=0.9),
        "frozen": ask(table(4).requires_grad_(False)),
        "twice": ask(shard(nn.Sequential(table(4)), lr=LR)),
        "subclass": ask(nn.Sequential(table(4, Mine))),
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
    assert first["no lr"] == "lr must be a finite number >= 0, got None"
    assert first["text"] == "lr must be a finite number >= 0, got 'abc'"
    assert "no max_lr" in first["max_lr"]
    assert first["momentum"] == "shard has no option momentum: leave it out"
    assert first["frozen"].startswith("embedding_bags.one.weight is frozen")
    assert first["twice"].startswith("the model is sharded already")
    assert first["subclass"] == (
        "0 is a Mine, but TorchRec does not shard subclasses: take EmbeddingBagCollection itself"
    )
