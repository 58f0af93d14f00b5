"""Two ranks that share a batch train like one process that has all of it."""

from __future__ import annotations

import contextlib
import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import freqsgd
from freqsgd import CFSGD, FASGD, CFAdam
from freqsgd.optim._base import FrequencyOptimizer
from tests.integration.ranks import WORLD, Ranks
from tests.integration.slow import SlowTable

ITEMS, WORDS, DIM = 20, 15, 6
BATCH, STEPS, LR = 16, 5, 0.1
PADDING = 0

Batch = tuple[Tensor, Tensor | None, Tensor]  # items (B, 3), words (B, 4), clicks (B,)


class Model(nn.Module):
    def __init__(self, sparse: bool) -> None:
        super().__init__()
        self.items = nn.Embedding(ITEMS, DIM, sparse=sparse)
        self.words = nn.EmbeddingBag(WORDS, DIM, mode="sum", sparse=sparse, padding_idx=PADDING)
        self.head = nn.Linear(2 * DIM, 1)

    def forward(self, items: Tensor, words: Tensor | None) -> Tensor:
        bag = torch.zeros(len(items), DIM) if words is None else self.words(words)
        return self.head(torch.cat([self.items(items).sum(1), bag], 1)).squeeze(1)


def make_model(sparse: bool) -> Model:
    torch.manual_seed(7)
    return Model(sparse)


def make_optimizer(model: Model, rule: str, options: dict[str, Any]) -> FrequencyOptimizer:
    if rule == "cfadam":
        return CFAdam(model.parameters(), LR, **options)
    groups = [
        {"params": [model.items.weight], "tokens_per_sample": 3},
        {"params": [model.words.weight]},
        {"params": [*model.head.parameters()]},
    ]
    if rule == "cfsgd":
        return CFSGD(groups, LR, **options)
    generator = torch.Generator().manual_seed(5)
    for group, rows in zip(groups, (ITEMS, WORDS), strict=False):
        group["frequencies"] = torch.rand(rows, generator=generator) * 0.9 + 0.05
    return FASGD(groups, LR, frequencies=None, **options)


def make_batches(steps: int = STEPS) -> list[Batch]:
    """Batches full of duplicates, within a sample too, and of padding among the words."""
    generator = torch.Generator().manual_seed(3)
    batches = []
    for _ in range(steps):
        items = (torch.rand(BATCH, 3, generator=generator) ** 2 * ITEMS).long()
        words = (torch.rand(BATCH, 4, generator=generator) ** 2 * WORDS).long()
        batches.append((items, words, torch.rand(BATCH, generator=generator).round()))
    return batches


def share_of(rank: int, batch: Batch) -> Batch:
    mine = slice(rank * BATCH // WORLD, (rank + 1) * BATCH // WORLD)
    items, words, targets = batch
    return items[mine], None if words is None else words[mine], targets[mine]


def loss_of(model: nn.Module, batch: Batch) -> Tensor:
    items, words, targets = batch
    return nn.functional.binary_cross_entropy_with_logits(model(items, words), targets)


def result_of(model: Model, opt: FrequencyOptimizer) -> dict[str, Tensor]:
    result = {name: value.detach() for name, value in model.named_parameters()}
    if isinstance(opt, CFSGD | CFAdam):
        for name, table in (("items", model.items.weight), ("words", model.words.weight)):
            result[f"{name} counts"] = opt.counts(table)
            result[f"{name} frequencies"] = opt.frequencies(table)
    return result


def train_on_rank(
    rank: int,
    rule: str,
    sparse: bool,
    options: dict[str, Any],
    batches: list[Batch],
    accumulate: int = 1,
    ddp_options: dict[str, Any] | None = None,
) -> dict[str, Tensor]:
    model = make_model(sparse)
    ddp = DistributedDataParallel(model, **(ddp_options or {}))
    opt = make_optimizer(model, rule, options)
    freqsgd.watch(ddp, opt)
    for number, batch in enumerate(batches, 1):
        last = number % accumulate == 0
        with contextlib.nullcontext() if last else ddp.no_sync():
            loss_of(ddp, share_of(rank, batch)).backward()
        if last:
            opt.step()
            opt.zero_grad()
    return result_of(model, opt)


def train_alone(
    rule: str,
    sparse: bool,
    options: dict[str, Any],
    batches: list[Batch],
    accumulate: int = 1,
) -> dict[str, Tensor]:
    model = make_model(sparse)
    opt = make_optimizer(model, rule, options)
    freqsgd.watch(model, opt)
    for number, batch in enumerate(batches, 1):
        loss_of(model, batch).backward()
        if number % accumulate == 0:
            opt.step()
            opt.zero_grad()
    return result_of(model, opt)


def assert_same(results: list[dict[str, Tensor]], alone: dict[str, Tensor]) -> None:
    for result in results:
        assert result.keys() == alone.keys()
        for name, value in alone.items():
            exact = value.dtype == torch.int64 or "frequencies" in name
            tolerance = 0.0 if exact else 1e-6
            torch.testing.assert_close(
                result[name], value, rtol=0, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
            )
    for name in alone:
        assert torch.equal(results[0][name], results[1][name]), f"ranks differ in {name}"


def occurrences(ids: list[Tensor], rows: int, padding: int | None = None) -> list[int]:
    flat = torch.cat([i.reshape(-1) for i in ids])
    if padding is not None:
        flat = flat[flat != padding]
    return torch.bincount(flat, minlength=rows).tolist()


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("cfsgd", {}),
        ("cfsgd", {"weight_decay": 0.1}),
        ("cfsgd", {"count": "batch"}),
        ("cfsgd", {"count": "batch", "weight_decay": 0.1, "weight_decay_power": 0.5}),
        ("cfsgd", {"max_lr": 0.8, "fused": False}),
        ("fasgd", {"weight_decay": 0.1}),
        # DDP merges the occurrences of a token, so the bound sees its sum.
        ("cfadam", {"clip": None}),
        ("cfadam", {"clip": None, "weight_decay": 0.1}),
    ],
    ids=[
        "plain",
        "decay",
        "batchwise",
        "batchwise-decay",
        "unfused",
        "fasgd-decay",
        "cfadam",
        "cfadam-decay",
    ],
)
def test_two_ranks_train_like_one_process(
    ranks: Ranks, rule: str, options: dict[str, Any], sparse: bool
) -> None:
    batches = make_batches()
    results = ranks.run(train_on_rank, rule, sparse, options, batches)
    assert_same(results, train_alone(rule, sparse, options, batches))


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_every_rank_counts_the_whole_batch(ranks: Ranks, sparse: bool) -> None:
    batches = make_batches()
    items = occurrences([items for items, _, _ in batches], ITEMS)
    words = occurrences([words for _, words, _ in batches if words is not None], WORDS, PADDING)
    assert max(items) > STEPS  # duplicates within batches
    for result in ranks.run(train_on_rank, "cfsgd", sparse, {}, batches):
        assert result["items counts"].tolist() == items
        assert result["words counts"].tolist() == words
        shares = torch.tensor(items, dtype=torch.float64) / (STEPS * BATCH)
        torch.testing.assert_close(result["items frequencies"], shares)


@pytest.mark.parametrize("decay", [0.0, 0.2])
def test_two_ranks_follow_the_law_on_the_whole_batch(ranks: Ranks, decay: float) -> None:
    batches = make_batches()
    results = ranks.run(train_on_rank, "cfsgd", True, {"weight_decay": decay}, batches)

    model = make_model(sparse=False)
    items = SlowTable(model.items.weight, LR, tokens_per_sample=3, weight_decay=decay)
    words = SlowTable(model.words.weight, LR, weight_decay=decay)
    for batch in batches:
        loss_of(model, batch).backward()
        items.step(model.items.weight.grad, batch[0])
        words.step(model.words.weight.grad, batch[1][batch[1] != PADDING])
        with torch.no_grad():
            model.items.weight.copy_(items.weight)
            model.words.weight.copy_(words.weight)
            for param in model.head.parameters():
                param -= LR * (param.grad + decay * param)
        model.zero_grad()
    for result in results:
        items.same_as(result["items.weight"], result["items counts"], 2e-6)
        words.same_as(result["words.weight"], result["words counts"], 2e-6)


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_a_rank_may_hold_nothing_but_padding(ranks: Ranks, sparse: bool, decay: float) -> None:
    batches = make_batches()
    batches[0][1][BATCH // 2 :] = PADDING  # the first words that rank 1 sees
    batches[2][1][: BATCH // 2] = PADDING
    batches[3][1][:] = PADDING  # nobody holds a word
    options = {"weight_decay": decay}
    results = ranks.run(train_on_rank, "cfsgd", sparse, options, batches)
    assert_same(results, train_alone("cfsgd", sparse, options, batches))


def train_without_words_on_rank_1(
    rank: int, options: dict[str, Any], batches: list[Batch]
) -> dict[str, Tensor]:
    if rank == 1:
        batches = [(items, None, targets) for items, _, targets in batches]
    ddp_options = {"find_unused_parameters": True}
    return train_on_rank(rank, "cfsgd", False, options, batches, ddp_options=ddp_options)


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1}, {"count": "batch"}])
def test_a_rank_may_not_look_into_a_table_at_all(ranks: Ranks, options: dict[str, Any]) -> None:
    batches = make_batches()
    results = ranks.run(train_without_words_on_rank_1, options, batches)
    for _, words, _ in batches:
        words[BATCH // 2 :] = PADDING  # what leaves the bag empty
    assert_same(results, train_alone("cfsgd", False, options, batches))


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("cfsgd", {}),
        ("cfsgd", {"count": "batch"}),
        ("cfsgd", {"weight_decay": 0.1}),
        ("fasgd", {"weight_decay": 0.1}),
    ],
    ids=["plain", "batchwise", "decay", "fasgd-decay"],
)
def test_accumulated_batches_are_one_batch(
    ranks: Ranks, rule: str, options: dict[str, Any], sparse: bool
) -> None:
    batches = make_batches(steps=6)
    results = ranks.run(train_on_rank, rule, sparse, options, batches, 3)
    assert_same(results, train_alone(rule, sparse, options, batches, accumulate=3))


def test_cfadam_accumulates_dense_gradients_of_ranks_with_its_bound(ranks: Ranks) -> None:
    batches = make_batches(steps=6)
    results = ranks.run(train_on_rank, "cfadam", False, {"clip": 0.5}, batches, 3)
    assert_same(results, train_alone("cfadam", False, {"clip": 0.5}, batches, accumulate=3))


def test_counts_that_fade_are_the_same_on_all_ranks(ranks: Ranks) -> None:
    batches = make_batches()
    options = {"halflife": 20.0}
    results = ranks.run(train_on_rank, "cfsgd", False, options, batches)
    assert_same(results, train_alone("cfsgd", False, options, batches))


def warnings_on_rank(rank: int, watched: bool, batches: list[Batch]) -> list[str]:
    model = make_model(sparse=True)
    ddp = DistributedDataParallel(model)
    opt = make_optimizer(model, "cfsgd", {})
    if watched:
        freqsgd.watch(ddp, opt)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for batch in batches:
            loss_of(ddp, share_of(rank, batch)).backward()
            opt.step()
            opt.zero_grad()
    return [str(w.message) for w in caught if "freqsgd.watch(model, optimizer)" in str(w.message)]


def test_merged_gradients_of_ranks_that_nobody_watches_are_told_once(ranks: Ranks) -> None:
    for told in ranks.run(warnings_on_rank, False, make_batches()):
        assert len(told) == 1
        assert "is coalesced, as DDP delivers it" in told[0]
    assert ranks.run(warnings_on_rank, True, make_batches()) == [[], []]


def copy_on_rank(rank: int) -> list[str]:
    """A pair of which only one rank may have a copy must not wait for the others."""
    model = make_model(sparse=False)
    opt = make_optimizer(model, "cfsgd", {})
    freqsgd.watch(DistributedDataParallel(model), opt)
    if rank:
        return []
    model, opt = copy.deepcopy((model, opt))
    loss_of(model, make_batches()[0]).backward()
    try:
        opt.step()
    except RuntimeError as error:
        return [str(error)]
    return ["no error"]


def test_a_copy_takes_no_part_in_gathering_and_says_that_nobody_counts(ranks: Ranks) -> None:
    (said,), _ = ranks.run(copy_on_rank)
    assert "call freqsgd.watch(model, optimizer) once" in said


@pytest.mark.parametrize("ddp_option", ["gradient_as_bucket_view", "static_graph"])
def test_options_of_ddp_change_nothing(ranks: Ranks, ddp_option: str) -> None:
    """With views, the gradients of all parameters lie in one buffer."""
    batches = make_batches()
    results = ranks.run(train_on_rank, "cfsgd", False, {}, batches, 1, {ddp_option: True})
    assert_same(results, train_alone("cfsgd", False, {}, batches))


def shard_and_step(rank: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 1))
    fully_shard(model, mesh=init_device_mesh("cpu", (WORLD,)))
    opt = CFSGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model(torch.tensor([1, 2])).sum().backward()  # rows of the first rank alone
        opt.step()
        opt.zero_grad()


def test_shards_of_fsdp_are_stepped_without_collectives(ranks: Ranks) -> None:
    ranks.run(shard_and_step)


def wrap_after_the_optimizer(rank: int, watch_again: bool) -> list[str]:
    model = make_model(sparse=False)
    opt = CFAdam(model, LR)
    ddp = DistributedDataParallel(model)
    if watch_again:
        freqsgd.watch(ddp, opt)
    try:
        loss_of(ddp, share_of(rank, make_batches()[0])).backward()
    except RuntimeError as error:
        return [str(error)]
    opt.step()
    return [str(int(opt.counts(model.items.weight).sum()))]


def test_a_model_that_is_wrapped_after_the_optimizer_must_be_watched_again(ranks: Ranks) -> None:
    for (said,) in ranks.run(wrap_after_the_optimizer, False):
        assert "with the wrapped model" in said
    assert ranks.run(wrap_after_the_optimizer, True) == [[str(3 * BATCH)]] * 2
