"""Forked processes step without OpenMP, which does not survive a fork, and get the same bits."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import freqsgd
from freqsgd import CFSGD
from freqsgd.nn import CFEmbedding
from tests.integration.large import Work, spy_on_team

pytestmark = [
    pytest.mark.usefixtures("_restore_threads"),
    pytest.mark.skipif(
        "fork" not in multiprocessing.get_all_start_methods(), reason="the platform has no fork"
    ),
]

TIMEOUT = 60  # seconds; a child that enters OpenMP waits for ever


@pytest.fixture(autouse=True)
def _openmp_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has run a kernel on several threads before any test forks."""
    torch.set_num_threads(2)
    with monkeypatch.context() as patch:
        team = spy_on_team(patch)
        Work().run()
        assert set(team) == {2}


def bits_of(tensors: list[Tensor]) -> list[bytes]:
    return [tensor.numpy().tobytes() for tensor in tensors]


def in_a_fork(function: Any, *args: Any) -> Any:
    """What the function returns in a forked child."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(function(*args)))
    child.start()
    sender.close()
    try:
        assert receiver.poll(TIMEOUT), "the child hangs"
        return receiver.recv()
    finally:
        child.kill()
        child.join()
        receiver.close()


def large_step(opt: CFSGD, params: list[nn.Parameter]) -> list[bytes]:
    opt.step()
    return bits_of([p.detach() for p in params] + [opt.state[p]["counts"] for p in params])


@pytest.mark.parametrize(
    "work",
    [
        Work(),
        Work(tables=4, options={"weight_decay": 0.1}),
        Work(dense=True, options={"count": "batch"}),
    ],
    ids=["one table", "many tables with weight decay", "dense observed"],
)
def test_a_forked_child_steps_like_its_parent(work: Work) -> None:
    params, opt = work.begin()
    work.load(params, opt, 0)
    opt.step()
    work.load(params, opt, 1)
    from_child = in_a_fork(large_step, opt, params)
    assert from_child == large_step(opt, params)


def embedding_step(table: CFEmbedding, ids: Tensor, grad: Tensor) -> list[bytes]:
    out = table(ids)
    out.backward(grad)
    return bits_of([out.detach(), table.weight, table.counts])


def test_a_forked_child_trains_an_embedding_like_its_parent() -> None:
    generator = torch.Generator().manual_seed(2)
    table = CFEmbedding([2000, 50], 16, lr=0.3)
    ids = (torch.rand(3000, 2, generator=generator) ** 3 * torch.tensor([2000, 50])).long()
    grad = torch.randn(3000, 2, 16, generator=generator)
    embedding_step(table, ids, grad)
    assert in_a_fork(embedding_step, table, ids, grad) == embedding_step(table, ids, grad)


def small_step(number: int, sparse: bool) -> Tensor:
    """One step of a fresh small model; its table."""
    torch.manual_seed(number)
    model = nn.Sequential(nn.Embedding(9, 5, sparse=sparse), nn.Linear(5, 1))
    opt = CFSGD(model.parameters(), lr=0.2, weight_decay=0.1)
    freqsgd.watch(model, opt)
    model(torch.tensor([number, 3, 3, 8])).pow(2).mean().backward()
    opt.step()
    return model[0].weight.detach()


class StepsWhenAsked(Dataset[Tensor]):
    def __init__(self, large: bool) -> None:
        self.large = large

    def __len__(self) -> int:
        return 6

    def __getitem__(self, number: int) -> Tensor:
        if self.large:
            return Work(seed=number, steps=2).run()[0]
        return small_step(number, sparse=number % 2 == 0)


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_workers_of_a_data_loader_may_step(large: bool) -> None:
    dataset = StepsWhenAsked(large)
    expected = [dataset[number] for number in range(len(dataset))]
    loader = DataLoader(
        dataset, batch_size=2, num_workers=2, multiprocessing_context="fork", timeout=TIMEOUT
    )
    batches = list(loader)
    assert len(batches) == 3
    assert torch.equal(torch.cat(batches), torch.stack(expected))


def test_the_parent_goes_on_in_parallel_after_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work()
    params, opt = work.begin()
    work.load(params, opt, 0)
    before = bits_of([p.detach() for p in params])
    in_a_fork(large_step, opt, params)
    assert bits_of([p.detach() for p in params]) == before, "the child has weights of its own"
    team = spy_on_team(monkeypatch)
    large_step(opt, params)
    assert set(team) == {2}
