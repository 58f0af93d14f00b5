"""Learning rates that a one-pass comparison tries where none is given."""

from __future__ import annotations

from dataclasses import replace

from freqsgd.data.dataset import DataError
from freqsgd.training.rules import Rule

__all__ = ["GRIDS", "candidates"]

GRIDS = {
    # a factor of about 3 apart; around the best of clicks-small for batches of 1,024 to 65,536
    "sgd": (1.0, 3.0, 10.0, 30.0, 100.0),
    "cfsgd": (0.1, 0.3, 1.0, 3.0, 10.0),
    "adagrad": (0.003, 0.01, 0.03, 0.1, 0.3),
    "rowwise-adagrad": (0.003, 0.01, 0.03, 0.1, 0.3),
    "adam": (0.0003, 0.001, 0.003, 0.01, 0.03),
}


def candidates(rule: Rule) -> list[Rule]:
    """The rule at its own learning rate, or at each of its optimizer's grid.

    Example:
        >>> [rule.lr for rule in candidates(Rule("adam"))]
        [0.0003, 0.001, 0.003, 0.01, 0.03]
    """
    if rule.optimizer not in GRIDS:
        raise DataError(
            f"{rule.optimizer} must know beforehand how often each token will occur, which a "
            "stream does not tell: use cfsgd, which counts as it goes"
        )
    if rule.lr is not None:
        return [rule]
    return [replace(rule, lr=lr) for lr in GRIDS[rule.optimizer]]
