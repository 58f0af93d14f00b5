"""Learning rates of one pass: those that a comparison tries, and the cap on a token's."""

from __future__ import annotations

import math
from dataclasses import replace

from freqsgd.data.dataset import DataError
from freqsgd.training.rules import Rule

__all__ = ["GRIDS", "candidates", "capped", "check_optimizer"]

_MOST = 0.03
GRIDS = {
    # a factor of about 3 apart, around the best of clicks-small for batches of 1,024
    "sgd": (1.0, 3.0, 10.0, 30.0, 100.0),
    "cfsgd": (0.1, 0.3, 1.0, 3.0, 10.0),
    "adagrad": (0.003, 0.01, 0.03, 0.1, 0.3),
    "rowwise-adagrad": (0.003, 0.01, 0.03, 0.1, 0.3),
    "adam": (0.0003, 0.001, 0.003, 0.01, 0.03),
}


def check_optimizer(rule: Rule) -> None:
    """Refuse an optimizer that cannot learn from a stream."""
    if rule.optimizer not in GRIDS:
        raise DataError(
            f"{rule.optimizer} must know beforehand how often each token will occur, which a "
            "stream does not tell: use cfsgd, which counts as it goes"
        )


def candidates(rule: Rule, batch_size: int) -> list[Rule]:
    """The rule at its own learning rate, or at each of its optimizer's grid.

    Where batches are counted, rates of the grid are times the root of the batch size.

    Example:
        >>> [rule.lr for rule in candidates(Rule("cfsgd"), batch_size=1024)]
        [0.1, 0.3, 1.0, 3.0, 10.0]
        >>> [rule.lr for rule in candidates(Rule("cfsgd", count="batch"), batch_size=1024)]
        [3.2, 9.6, 32.0, 96.0, 320.0]
    """
    check_optimizer(rule)
    if rule.lr is not None:
        return [rule]
    scale = math.sqrt(batch_size) if rule.count == "batch" else 1.0
    return [replace(rule, lr=float(f"{scale * lr:.3g}")) for lr in GRIDS[rule.optimizer]]


def capped(rule: Rule, batch_size: int) -> Rule:
    """The rule with a cap on a token's rate, for cfsgd if it has none and counts occurrences.

    A token that is new after n examples would have the rate lr * sqrt(n), whatever n. A single
    occurrence moves a row by its rate / batch size, times its gradient: the cap keeps that at 3% of
    lr at most, so it grows with the batch. Where batches are counted there is no cap unless it is
    asked for: TorchRec, which counts them, knows none.

    Example:
        >>> capped(Rule("cfsgd", lr=2.0), batch_size=1000).max_lr
        60.0
    """
    open_ = rule.optimizer == "cfsgd" and rule.max_lr is None and rule.count == "occurrence"
    if not open_ or rule.lr is None:
        return rule
    return replace(rule, max_lr=_MOST * rule.lr * batch_size)
