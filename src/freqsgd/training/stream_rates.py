"""Learning rates of one pass: those that a comparison tries, and the cap on a token's."""

from __future__ import annotations

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


def candidates(rule: Rule) -> list[Rule]:
    """The rule at its own learning rate, or at each of its optimizer's grid.

    Example:
        >>> [rule.lr for rule in candidates(Rule("adam"))]
        [0.0003, 0.001, 0.003, 0.01, 0.03]
    """
    check_optimizer(rule)
    if rule.lr is not None:
        return [rule]
    return [replace(rule, lr=lr) for lr in GRIDS[rule.optimizer]]


def capped(rule: Rule, batch_size: int) -> Rule:
    """The rule with a cap on a token's rate, for cfsgd if it has none.

    A token that is new after n examples would have the rate lr * sqrt(n), whatever n. A single
    occurrence moves a row by its rate / batch size, times its gradient: the cap keeps that at 3% of
    lr at most, so it grows with the batch.

    Example:
        >>> capped(Rule("cfsgd", lr=2.0), batch_size=1000).max_lr
        60.0
    """
    if rule.optimizer != "cfsgd" or rule.max_lr is not None or rule.lr is None:
        return rule
    return replace(rule, max_lr=_MOST * rule.lr * batch_size)
