"""A simulation to write pages of. Every number in it is made up: nothing was simulated."""

from __future__ import annotations

import math
from typing import Any

USERS, ITEMS, TOP = 12, 8, 3


def make_theory(
    tail: str = "exponential", rate: float | None = 0.3, **changes: Any
) -> dict[str, Any]:
    """The content of a ``theory.json`` in which all goes as the paper says."""
    ranks = [*range(1, USERS + 1), *range(1, ITEMS + 1)]
    rarity = [gain(tail, rate, rank) for rank in ranks]
    uniform = tail == "uniform"
    document = {
        "schema": 1,
        "kind": "theory",
        "command": f"freqsgd theory --tail {tail}",
        "created": "2024-05-01T12:00:00+00:00",
        "seconds": 61.4,
        "problem": {
            "tail": tail,
            "rate": rate,
            "users": USERS,
            "items": ITEMS,
            "dim": 2,
            "gradient_bound": 1.0,
            "minimum_iterations": 1000,
            "radius": 4.0,
            "smoothness": 5.0,
            "iterations": 1_000_000,
            "repetitions": 100,
            "output": "random",
            "seed": 0,
            "gap": 0.6,
            "top_users": USERS if uniform else TOP,
            "top_items": ITEMS if uniform else TOP,
            "corollary": {"applies": True, "reason": None},
        },
        "tokens": {
            "side": ["user"] * USERS + ["item"] * ITEMS,
            "rank": ranks,
            "p": [0.25 / rare for rare in rarity],
            "sigma2": [1.5] * len(ranks),
            "start": [0.01] * len(ranks),
        },
        "runs": [
            make_run("sgd", [1.0] * len(ranks)),
            make_run("fasgd", rarity),
            make_run("cfsgd", [0.9 * rare for rare in rarity]),
            make_run("sbcd", [0.2] * len(ranks), bound=None),
        ],
        "improvements": [
            make_improvement("fasgd", rarity, uniform),
            make_improvement("cfsgd", [0.9 * rare for rare in rarity], uniform),
        ],
        "checks": [
            {"statement": "bounds hold", "holds": True, "detail": "all 60 tokens and optimizers"},
            {"statement": "CF-SGD's rates converge", "holds": True, "detail": "within 1%"},
        ],
    }
    return {**document, **changes}


def gain(tail: str, rate: float | None, rank: int) -> float:
    """How much rarer a token is than the first."""
    if tail == "uniform" or rate is None:
        return 1.0
    return math.exp(rate * (rank - 1)) if tail == "exponential" else rank**rate


def make_run(optimizer: str, better: list[float], **changes: Any) -> dict[str, Any]:
    """A run whose errors are ``better`` times smaller than SGD's, its bound's only by the root."""
    measured = [1e-4 / factor for factor in better]
    run = {
        "optimizer": optimizer,
        "alpha": 0.7,
        "steps": [0.001] * len(better),
        "bound": [0.02 / math.sqrt(factor) for factor in better],
        "measured": measured,
        "low": [0.8 * value for value in measured],
        "high": [1.2 * value for value in measured],
        "invalid": 0,
        "mean_loss_gap": 0.01,
    }
    return {**run, **changes}


def make_improvement(optimizer: str, better: list[float], uniform: bool) -> dict[str, Any]:
    """What ``better`` is beside the bounds."""
    return {
        "optimizer": optimizer,
        "bound": [math.sqrt(factor) for factor in better],
        "iterations": better,
        "corollary": None if uniform else [factor / 3.16 for factor in better],
        "measured": better,
        "low": [0.9 * factor for factor in better],
        "high": [1.1 * factor for factor in better],
        "slope": None
        if uniform
        else {
            "measured": 0.29,
            "low": 0.27,
            "high": 0.31,
            "predicted": 0.15,
            "axis": "rank",
            "tokens": 14,
            "begun": 14,
        },
    }
