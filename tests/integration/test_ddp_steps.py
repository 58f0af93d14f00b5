"""When ranks talk to each other, and what a step that fails leaves behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import freqsgd
from freqsgd import CFSGD
from tests.integration.ranks import Ranks

ROWS, DIM = 12, 4


def make_table(sparse: bool) -> tuple[nn.Embedding, CFSGD]:
    torch.manual_seed(1)
    table = nn.Embedding(ROWS, DIM, sparse=sparse)
    return table, CFSGD(table.parameters(), lr=0.5)


def step_on_rank_0_only(rank: int, watched: bool) -> Tensor:
    """Rank 1 leaves at once: a collective on rank 0 would find nobody."""
    if rank == 1:
        return torch.zeros(0)
    table, opt = make_table(sparse=not watched)
    if watched:
        freqsgd.watch(table, opt)
    for ids in ([3, 3, 7], [3, 9, 9]):
        table(torch.tensor(ids)).pow(2).sum().backward()
        opt.step()
        opt.zero_grad()
    return opt.counts(table.weight)


@pytest.mark.parametrize("watched", [False, True])
def test_a_model_without_ddp_steps_on_one_rank_alone(ranks: Ranks, watched: bool) -> None:
    counts, _ = ranks.run(step_on_rank_0_only, watched)
    assert counts.tolist() == [0, 0, 0, 3, 0, 0, 0, 1, 0, 2, 0, 0]


def step_unwatched_ddp_on_rank_0_only(rank: int) -> Tensor:
    table, opt = make_table(sparse=True)
    ddp = DistributedDataParallel(table)
    ddp(torch.tensor([[3, 3, 7], [1, 1, 1]][rank])).sum().backward()
    if rank == 0:
        opt.step()
    return opt.counts(table.weight)


def test_without_watch_a_ddp_model_needs_no_other_rank_to_step(ranks: Ranks) -> None:
    stepped, waiting = ranks.run(step_unwatched_ddp_on_rank_0_only)
    assert (stepped > 0).nonzero().flatten().tolist() == [1, 3, 7]
    assert not waiting.any()


def evaluate_on_rank_0_only(rank: int) -> Tensor:
    table, opt = make_table(sparse=False)
    ddp = DistributedDataParallel(table)
    freqsgd.watch(ddp, opt)
    if rank == 0:
        with torch.no_grad():
            ddp.module(torch.tensor([5, 5, 5]))
        table.eval()
        table(torch.tensor([6, 6]))
        table.train()
    ddp(torch.tensor([[3, 3], [3, 8]][rank])).pow(2).mean().backward()
    opt.step()
    return opt.counts(table.weight)


def test_evaluation_on_one_rank_is_neither_counted_nor_waited_for(ranks: Ranks) -> None:
    for counts in ranks.run(evaluate_on_rank_0_only):
        assert counts.tolist() == [0, 0, 0, 3, 0, 0, 0, 0, 1, 0, 0, 0]


def train_with_process_group(rank: int) -> tuple[Tensor, Tensor]:
    """Average gradients by hand, as someone without the DDP wrapper does."""
    table, opt = make_table(sparse=False)
    freqsgd.watch(table, opt, dist.group.WORLD)
    for ids in ([[3, 3], [3, 8]], [[8, 0], [0, 0]]):
        table(torch.tensor(ids[rank])).pow(2).mean().backward()
        dist.all_reduce(table.weight.grad)
        table.weight.grad /= dist.get_world_size()
        opt.step()
        opt.zero_grad()
    return opt.counts(table.weight), table.weight.detach()


def test_a_process_group_takes_the_place_of_ddp(ranks: Ranks) -> None:
    results = ranks.run(train_with_process_group)
    table, opt = make_table(sparse=False)
    freqsgd.watch(table, opt)
    for ids in ([3, 3, 3, 8], [8, 0, 0, 0]):
        table(torch.tensor(ids)).pow(2).mean().backward()
        opt.step()
        opt.zero_grad()
    for counts, weight in results:
        assert torch.equal(counts, opt.counts(table.weight))
        torch.testing.assert_close(weight, table.weight.detach(), rtol=0, atol=1e-6)


class LanguageModel(nn.Module):
    """Words in, logits of the next word out; the targets are the tokens of the output table."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(ROWS, DIM)
        self.out = nn.Linear(DIM, ROWS, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.words(ids))


def train_language_model(rank: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Both ranks with half of each batch, or (rank None) one process with all of it."""
    torch.manual_seed(3)
    model = LanguageModel()
    opt = CFSGD(model.parameters(), lr=0.2)
    wrapped = model if rank is None else DistributedDataParallel(model)
    freqsgd.watch(wrapped, opt)
    generator = torch.Generator().manual_seed(4)
    for _ in range(4):
        ids, targets = (torch.rand(2, 8, generator=generator) ** 2 * ROWS).long()
        if rank is not None:
            ids, targets = ids[4 * rank :][:4], targets[4 * rank :][:4]
        nn.functional.cross_entropy(wrapped(ids), targets).backward()
        opt.observe(model.out.weight, targets)
        opt.step()
        opt.zero_grad()
    weights = torch.cat([p.detach() for p in model.parameters()])
    return opt.counts(model.words.weight), opt.counts(model.out.weight), weights


def test_what_each_rank_observes_by_hand_is_gathered_too(ranks: Ranks) -> None:
    words, out, weights = train_language_model(None)
    for counts, out_counts, rank_weights in ranks.run(train_language_model):
        assert torch.equal(counts, words)
        assert torch.equal(out_counts, out)
        torch.testing.assert_close(rank_weights, weights, rtol=0, atol=1e-6)
    assert out.sum() == 32


def train_past_a_refused_step(rank: int) -> tuple[Tensor, Tensor]:
    table, opt = make_table(sparse=False)
    ddp = DistributedDataParallel(table)
    freqsgd.watch(ddp, opt)
    ddp(torch.tensor([[3, 3], [8, 4]][rank])).mul(torch.inf).sum().backward()
    before = table.weight.detach().clone()
    with pytest.raises(ValueError, match="infinity"):
        opt.step()
    assert torch.equal(table.weight, before)
    opt.zero_grad()
    ddp(torch.tensor([[1], [1]][rank])).sum().backward()
    opt.step()
    return opt.counts(table.weight), opt.frequencies(table.weight)


def test_the_observations_of_a_refused_step_count_once(ranks: Ranks) -> None:
    """They wait for the next step, on two ranks as on one."""
    for counts, frequencies in ranks.run(train_past_a_refused_step):
        assert counts.tolist() == [0, 2, 0, 2, 1, 0, 0, 0, 1, 0, 0, 0]
        assert frequencies.sum().item() == pytest.approx(1.0)


def train_past_a_skipped_step(rank: int) -> dict[str, Any]:
    """An infinite gradient makes the scaler of every rank skip the first step."""
    table, opt = make_table(sparse=False)
    ddp = DistributedDataParallel(table)
    freqsgd.watch(ddp, opt)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for factor, ids in ((torch.inf, [[3, 3], [8, 4]]), (1.0, [[1], [1]])):
        loss = ddp(torch.tensor(ids[rank])).mul(factor).sum()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
    return {"counts": opt.counts(table.weight), "weight": table.weight.detach()}


def test_ranks_count_a_step_that_all_of_them_skipped(ranks: Ranks) -> None:
    for result in ranks.run(train_past_a_skipped_step):
        assert result["counts"].tolist() == [0, 2, 0, 2, 1, 0, 0, 0, 1, 0, 0, 0]
        assert result["weight"].isfinite().all()
