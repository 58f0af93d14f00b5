"""Learning rates that a one-pass comparison tries where none is given."""

from __future__ import annotations

from dataclasses import replace

from freqsgd.training.rules import Rule

__all__ = ["GRIDS", "candidates"]

GRIDS = {
    # a factor of about 3 apart; for batches of 65,536
    "sgd": (3.0, 10.0, 30.0, 100.0, 300.0),
    "cfsgd": (0.3, 1.0, 3.0, 10.0, 30.0),
    "adagrad": (0.01, 0.03, 0.1, 0.3, 1.0),
    "rowwise-adagrad": (0.01, 0.03, 0.1, 0.3, 1.0),
    "adam": (0.001, 0.003, 0.01, 0.03, 0.1),
}


def candidates(rule: Rule) -> list[Rule]:
    """The rule at its own learning rate, or at each of its optimizer's grid.

    Example:
        >>> [rule.lr for rule in candidates(Rule("adam"))]
        [0.001, 0.003, 0.01, 0.03, 0.1]
    """
    if rule.lr is not None:
        return [rule]
    return [replace(rule, lr=lr) for lr in GRIDS[rule.optimizer]]
