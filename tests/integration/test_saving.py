"""A run that was saved and loaded goes on to the last bit as if nothing had happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from freqsgd import CFSGD
from freqsgd.nn import CFEmbedding
from tests.integration.runs import SETUPS, STEPS, Setup, assert_identical

setups = pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS.keys())


def through_a_file(state: Any, folder: Path) -> Any:
    torch.save(state, folder / "state.pt")
    return torch.load(folder / "state.pt", weights_only=True)


@setups
@pytest.mark.parametrize("pending", [False, True], ids=["after a step", "observations pending"])
def test_a_resumed_run_ends_with_the_same_bits(setup: Setup, pending: bool, tmp_path: Path) -> None:
    whole, half = setup.begin(), setup.begin()
    for run in (whole, half):
        run.train(range(3))
        if pending:
            run.observe()
    whole.train(range(3, STEPS))

    resumed = setup.begin(seed=1).load_state_dict(through_a_file(half.state_dict(), tmp_path))
    resumed.train(range(3, STEPS))
    assert_identical(resumed.result(), whole.result())
    if setup.rule == "cfsgd":
        assert torch.equal(resumed.opt.counts(resumed.table), whole.opt.counts(whole.table))


def test_observations_that_were_pending_when_saved_are_counted(tmp_path: Path) -> None:
    half = SETUPS["dense"].begin().train(range(2)).observe()
    before = half.opt.counts(half.table)
    resumed = SETUPS["dense"].begin().load_state_dict(through_a_file(half.state_dict(), tmp_path))
    resumed.opt.step()
    gained = resumed.opt.counts(resumed.table) - before
    assert gained.nonzero().flatten().tolist() == [0, 3, 15]
    assert gained[[0, 3, 15]].tolist() == [1, 3, 1]


def test_loading_shares_no_memory_with_what_was_loaded() -> None:
    run = SETUPS["dense"].begin().train(range(2)).observe()
    other = SETUPS["dense"].begin().load_state_dict(run.state_dict())
    counts = run.opt.counts(run.table)
    other.train(range(2, 5))
    assert torch.equal(run.opt.counts(run.table), counts)
    assert "observed" in run.opt.state[run.table]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("large", [2**24 + 1, 2**31 - 5, 2**31 + 5, 2**40 + 3])
def test_counts_beyond_the_precision_of_floats_survive(
    large: int, dtype: torch.dtype, tmp_path: Path
) -> None:
    def make() -> tuple[nn.Embedding, CFSGD]:
        table = nn.Embedding(4, 3, sparse=True, dtype=dtype)
        return table, CFSGD(table.parameters(), lr=0.1)

    table, opt = make()
    opt.set_counts(table.weight, torch.tensor([large, 0, 1, 2]), samples=large + 7)
    loaded_table, loaded = make()
    loaded.load_state_dict(through_a_file(opt.state_dict(), tmp_path))
    assert loaded.counts(loaded_table.weight).tolist() == [large, 0, 1, 2]
    assert torch.equal(loaded.frequencies(loaded_table.weight), opt.frequencies(table.weight))

    loaded_table(torch.tensor([0, 0, 2] * 3)).sum().backward()  # past 2^31 where it was below
    loaded.step()
    assert loaded.counts(loaded_table.weight).tolist() == [large + 6, 0, 4, 2]
    expected = (large + 6) / (large + 7 + 9)
    assert loaded.frequencies(loaded_table.weight)[0].item() == expected


def embedding_at(counts: list[int], seed: int = 0) -> CFEmbedding:
    torch.manual_seed(seed)
    table = CFEmbedding([3, 2], 4, lr=0.2, weight_decay=0.1)
    numbers = torch.tensor(counts)
    state = table.state_dict()
    state["counts"], state["seen"] = numbers, torch.tensor([int(numbers.sum())] * 2)
    table.load_state_dict(state)
    return table


def train_embedding(table: CFEmbedding) -> dict[str, Tensor]:
    ids = torch.tensor([[2, 1], [2, 0], [2, 1]])
    table(ids).pow(2).mean().backward()
    return table.state_dict()


@pytest.mark.parametrize("large", [2**24 + 1, 2**31 + 5])
def test_an_embedding_that_updates_itself_resumes_with_the_same_bits(
    large: int, tmp_path: Path
) -> None:
    whole = embedding_at([0, 1, large, 0, large])
    train_embedding(whole)
    resumed = CFEmbedding([3, 2], 4, lr=0.2, weight_decay=0.1)
    resumed.load_state_dict(through_a_file(whole.state_dict(), tmp_path))
    assert resumed.counts.tolist() == [0, 1, large + 3, 1, large + 2]
    assert_identical(train_embedding(resumed), train_embedding(whole))
    assert resumed.counts.tolist() == [0, 1, large + 6, 2, large + 4]
