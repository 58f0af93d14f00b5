"""What the kernel cannot do is refused with what to do instead."""

from __future__ import annotations

from typing import Any

import pytest

from freqsgd.errors import DataError
from freqsgd.torchrec.limits import check_options


def test_what_the_kernel_does_is_let_through() -> None:
    check_options({})
    none = {"max_lr": None, "halflife": None, "weight_decay": 0.0}
    check_options({"optimizer": "cfsgd", "count": "batch", "power": 0.5, **none})


@pytest.mark.parametrize(
    ("option", "value", "instead"),
    [
        ("optimizer", "adam", "take cfsgd"),
        ("count", "occurrence", r"count=\"batch\", and for tables start from lr \* sqrt\(batch"),
        ("max_lr", 3.0, "take a smaller lr, or train in one process"),
        ("halflife", 1e6, "train in one process"),
        ("weight_decay", 1e-5, "dense layers only, or train in one process"),
        ("power", 0.25, "leave it at 1/2"),
        ("linear_lr_scale", 0.1, "leave it at 1"),
    ],
)
def test_what_it_cannot_do_is_refused(option: str, value: Any, instead: str) -> None:
    with pytest.raises(DataError, match=instead) as refused:
        check_options({option: value})
    assert option in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_misspelt_option_is_refused() -> None:
    with pytest.raises(DataError, match="shard has no option max_rate: leave it out"):
        check_options({"max_rate": 1.0})
