"""State that no run has written is refused, and the optimizer stays as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from freqsgd.nn import CFEmbedding
from tests.integration.runs import ROWS, SETUPS, Run, assert_identical

State = dict[str, Any]


def replace(name: str, value: Any) -> Callable[[State], None]:
    """Damage: another value, or what a function makes of the old one."""

    def damage(state: State) -> None:
        state[name] = value(state[name]) if callable(value) else value

    return damage


def remove(name: str) -> Callable[[State], None]:
    def damage(state: State) -> None:
        del state[name]

    return damage


def change(name: str, row: int, value: float) -> Callable[[State], None]:
    def damage(state: State) -> None:
        state[name][row] = value

    return damage


def observed(ids: list[int]) -> Callable[[State], None]:
    return replace("observed", [(torch.tensor(ids), len(ids))])


DAMAGE = {
    "a negative count": change("counts", 3, -1),
    "too few counts": replace("counts", lambda c: c[:-1]),
    "too many counts": replace("counts", lambda c: torch.cat([c, c[:1]])),
    "counts in a matrix": replace("counts", lambda c: c[:, None]),
    "float32 counts": replace("counts", lambda c: c.float()),
    "boolean counts": replace("counts", lambda c: c > 0),
    "no counts": remove("counts"),
    "no indices": remove("indices"),
    "no units": remove("units"),
    "negative indices": replace("indices", -1),
    "negative units": replace("units", -1),
    "a count above the indices": replace("indices", 0),
    "an observed id beyond the table": observed([1, ROWS]),
    "a negative observed id": observed([1, -1]),
}


def assert_refused(run: Run, state: State) -> None:
    kept = copy.deepcopy(run.state_dict())
    with pytest.raises((ValueError, TypeError, IndexError)):
        run.opt.load_state_dict(state)
    assert_identical(run.state_dict(), kept)
    run.train([5])  # and it still works


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
@pytest.mark.parametrize("name", ["sparse", "dense"])
def test_damaged_counts_are_refused(name: str, damage: Callable[[State], None]) -> None:
    setup = SETUPS[name]
    state = copy.deepcopy(setup.begin().train(range(3)).opt.state_dict())
    damage(state["state"][0])
    assert_refused(setup.begin().train(range(2)).observe(), state)


@pytest.mark.parametrize(
    "damage",
    [
        remove("mass"),
        remove("origin"),
        change("counts", 3, -0.5),
        change("counts", 3, torch.nan),
        change("counts", 3, torch.inf),
        replace("mass", -1.0),
    ],
    ids=["no mass", "no origin", "a negative count", "NaN", "infinity", "negative mass"],
)
def test_damaged_counts_that_fade_are_refused(damage: Callable[[State], None]) -> None:
    setup = SETUPS["halflife"]
    state = copy.deepcopy(setup.begin().train(range(3)).opt.state_dict())
    damage(state["state"][0])
    assert_refused(setup.begin().train(range(2)).observe(), state)


@pytest.mark.parametrize(
    "damage",
    [
        replace("frequencies", lambda f: f[:-1]),
        change("frequencies", 2, 0.0),
        change("frequencies", 2, -0.5),
        change("frequencies", 2, torch.nan),
        replace("frequencies", lambda f: f.bfloat16()),
    ],
    ids=["too few", "zero", "negative", "NaN", "bfloat16"],
)
def test_damaged_frequencies_are_refused(damage: Callable[[State], None]) -> None:
    setup = SETUPS["fasgd"]
    state = copy.deepcopy(setup.begin().train(range(3)).opt.state_dict())
    damage(state["state"][0])
    assert_refused(setup.begin().train(range(2)), state)


def test_the_state_of_another_model_is_refused() -> None:
    state = SETUPS["sparse"].begin().train(range(3)).opt.state_dict()
    state["param_groups"][0]["params"].pop()
    assert_refused(SETUPS["sparse"].begin().train(range(2)).observe(), state)


@pytest.mark.parametrize(
    "damage",
    [
        change("counts", 1, -3),
        replace("counts", lambda c: c[:-1]),
        replace("counts", lambda c: c.float()),
        replace("seen", torch.tensor([-1, 4])),
        replace("seen", torch.tensor([4])),
        remove("seen"),
        remove("counts"),
    ],
    ids=[
        "a negative count",
        "too few counts",
        "float32 counts",
        "negative indices",
        "no units",
        "no numbers seen",
        "no counts",
    ],
)
def test_an_embedding_that_updates_itself_refuses_damaged_counts(
    damage: Callable[[State], None],
) -> None:
    def make(seed: int) -> CFEmbedding:
        torch.manual_seed(seed)
        table = CFEmbedding([3, 2], 4, lr=0.2)
        table(torch.tensor([[2, 1], [2, 0]])).pow(2).sum().backward()
        return table

    state = dict(make(0).state_dict())
    damage(state)
    table = make(1)
    kept = copy.deepcopy(dict(table.state_dict()))
    with pytest.raises((ValueError, RuntimeError)):
        table.load_state_dict(state)
    for name in ("counts", "seen"):
        assert_identical(table.state_dict()[name], kept[name], name)
