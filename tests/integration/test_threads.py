"""The number of threads, and who else computes at the time, never change a result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import torch
from torch import Tensor

from freqsgd import CFAdam
from freqsgd.kernels import threads
from freqsgd.nn import CFEmbedding
from freqsgd.optim._fused import SMALL
from tests.integration.large import DIM, Work, assert_same_bits, spy_on_team

pytestmark = pytest.mark.usefixtures("_restore_threads")

WORKS = {
    "one table": Work(),
    "many tables": Work(tables=7),
    "weight decay": Work(options={"weight_decay": 0.1, "weight_decay_power": 0.5}),
    "many tables, weight decay": Work(tables=5, options={"weight_decay": 0.1}),
    "dense observed": Work(dense=True),
    "dense observed, weight decay": Work(dense=True, options={"weight_decay": 0.1}),
    "batchwise": Work(options={"count": "batch", "weight_decay": 0.1}),
    "halflife": Work(options={"halflife": 1000.0, "power": 0.3}),
    "cfadam": Work(make=CFAdam),
    "cfadam, many tables, weight decay": Work(5, options={"weight_decay": 0.1}, make=CFAdam),
    "cfadam, dense observed": Work(dense=True, make=CFAdam),
}
works = pytest.mark.parametrize("work", WORKS.values(), ids=WORKS.keys())


@works
def test_a_step_has_the_same_bits_for_any_number_of_threads(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(1)
    expected = work.run()
    assert not torch.equal(expected[0], work.weights[0])
    team = spy_on_team(monkeypatch)
    for count in (2, 3):
        team.clear()
        torch.set_num_threads(count)
        assert_same_bits(work.run(), expected)
        assert set(team) == {count}, "the kernel did not run in parallel"
        assert torch.get_num_threads() == count, "a step changed torch's setting"


@works
def test_threads_of_our_own_give_the_same_bits(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch has no OpenMP team that a kernel could use."""
    torch.set_num_threads(1)
    expected = work.run()
    started: list[int] = []
    run_on_new_threads = threads._run_on_new_threads

    def spy(kernel: Any, address: int, workers: int) -> None:
        started.append(workers)
        run_on_new_threads(kernel, address, workers)

    monkeypatch.setattr(threads, "_team", None)
    monkeypatch.setattr(threads, "_run_on_new_threads", spy)
    for count in (2, 3):
        started.clear()
        torch.set_num_threads(count)
        assert_same_bits(work.run(), expected)
        assert set(started) == {count}
        assert torch.get_num_threads() == count


def train_embedding(**options: Any) -> list[Tensor]:
    """Three steps of three fields; all outputs, the weights and the counts."""
    generator = torch.Generator().manual_seed(1)
    sizes = torch.tensor([3000, 40, 7])
    torch.manual_seed(0)
    table = CFEmbedding(sizes.tolist(), DIM, lr=0.2, **options)
    outputs = []
    for _ in range(3):
        ids = (torch.rand(2500, 3, generator=generator) ** 3 * sizes).long()
        out = table(ids)
        assert ids.numel() * DIM > SMALL
        assert out.numel() > SMALL
        out.backward(torch.randn(out.shape, generator=generator))
        outputs.append(out.detach())
    return [*outputs, table.weight, table.counts]


@pytest.mark.parametrize("rule", ["sgd", "adam"])
@pytest.mark.parametrize("pooling", [None, "sum"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("own_threads", [False, True], ids=["team", "own threads"])
def test_an_embedding_that_updates_itself_has_the_same_bits_for_any_number_of_threads(
    rule: str,
    pooling: str | None,
    weight_decay: float,
    own_threads: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if own_threads:
        monkeypatch.setattr(threads, "_team", None)
    results = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        results.append(train_embedding(rule=rule, pooling=pooling, weight_decay=weight_decay))
        assert torch.get_num_threads() == count
    assert results[0][-1].sum() == 3 * 2500 * 3
    assert_same_bits(results[1], results[0])
    assert_same_bits(results[2], results[0])


def test_two_python_threads_step_two_optimizers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(2)
    pair = [
        Work(steps=40, options={"weight_decay": 0.1}),
        Work(tables=3, steps=40, seed=1, options={"count": "batch"}),
    ]
    serial = [work.run() for work in pair]
    team = spy_on_team(monkeypatch)
    start = Barrier(2, timeout=60)

    def run(work: Work) -> list[Tensor]:
        start.wait()
        return work.run()

    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(run, pair))
    assert max(team) > 1
    for result, expected in zip(together, serial, strict=True):
        assert_same_bits(result, expected)
    assert torch.get_num_threads() == 2
