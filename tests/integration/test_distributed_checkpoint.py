"""State by parameter name, as torch.distributed.checkpoint asks for it."""

from __future__ import annotations

import pytest
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)

from tests.integration.runs import SETUPS, STEPS, assert_identical


@pytest.mark.parametrize("name", ["sparse", "dense", "halflife", "bfloat16", "fasgd-decay"])
@pytest.mark.parametrize("flat", [False, True], ids=["nested", "flat"])
def test_state_by_name_comes_back(name: str, flat: bool) -> None:
    """Not strict: ordinary weights have no state, which torch otherwise takes for a loss."""
    setup = SETUPS[name]
    options = StateDictOptions(strict=False, flatten_optimizer_state_dict=flat)
    run = setup.begin().train(range(3))
    state = get_optimizer_state_dict(run.model, run.opt, options=options)

    other = setup.begin(seed=1)
    if flat:
        other.train([9])  # a flat state is read only for the names that the optimizer has already
    other.model.load_state_dict(run.model.state_dict())
    set_optimizer_state_dict(other.model, other.opt, state, options=options)
    other.schedule.load_state_dict(run.schedule.state_dict())
    for part in (run, other):
        part.train(range(3, STEPS))
    assert_identical(other.result(), run.result())
