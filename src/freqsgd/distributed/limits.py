"""What FBGEMM's COUNTER_SGD cannot do, and what to do instead."""

from __future__ import annotations

from freqsgd.data.dataset import DataError
from freqsgd.rates import RateLaw
from freqsgd.training.rules import Rule

__all__ = ["MAX_STEPS", "check_rule", "check_rule_options", "law_of"]

MAX_STEPS = 2**24  # the kernel counts in float32, which cannot add 1 to this


def law_of(lr: float) -> RateLaw:
    """The law of the kernel's rows."""
    try:
        return RateLaw(lr)
    except (TypeError, ValueError) as error:
        raise DataError(f"lr must be a finite number >= 0, got {lr!r}") from error


def check_rule_options(
    *,
    optimizer: str = "cfsgd",
    count: str = "batch",
    max_lr: float | None = None,
    halflife: float | None = None,
    weight_decay: float = 0.0,
    power: float = 0.5,
    linear_lr_scale: float = 1.0,
) -> None:
    """Refuse options of :class:`~freqsgd.CFSGD` and of ``Rule`` that the kernel has not."""
    refusals = {
        f"optimizer {optimizer!r} (--optimizer)": (
            optimizer != "cfsgd",
            "take cfsgd, or train in one process",
        ),
        f"count={count!r} (--count)": (
            count != "batch",
            'take count="batch", and for tables start from lr * sqrt(batch size); dense layers '
            "keep their rate",
        ),
        "max_lr (--max-lr)": (
            max_lr is not None,
            "leave it out and take a smaller lr, or train in one process",
        ),
        "halflife (--halflife)": (halflife is not None, "train in one process"),
        "weight_decay (--weight-decay) of rows": (
            weight_decay != 0,
            "give it to the optimizer of the dense layers only, or train in one process",
        ),
        f"power={power:g}": (power != 0.5, "leave it at 1/2, or train in one process"),
        "linear_lr_scale (--linear-lr-scale)": (
            linear_lr_scale != 1,
            "leave it at 1, or train in one process",
        ),
    }
    for name, (refused, instead) in refusals.items():
        if refused:
            raise DataError(f"TorchRec's kernel has no {name}: {instead}")


def check_rule(rule: Rule) -> None:
    """Refuse a rule that the kernel cannot follow."""
    check_rule_options(
        optimizer=rule.optimizer,
        count=rule.count,
        max_lr=rule.law.max_lr,
        halflife=rule.halflife,
        weight_decay=rule.weight_decay,
        linear_lr_scale=rule.linear_lr_scale,
    )
