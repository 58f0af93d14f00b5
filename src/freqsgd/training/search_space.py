"""What ``freqsgd tune`` searches: a range per setting and optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings

__all__ = [
    "SEARCHED",
    "Point",
    "Range",
    "apply",
    "default",
    "describe",
    "parameters",
    "point_of",
    "search_space",
    "suggest",
]

SEARCHED = (  # options of compare and train that tune has no use for
    "lr",
    "init_scale",
    "lr_decay",
    "weight_decay",
    "weight_decay_power",
    "max_lr",
    "linear_lr_scale",
    "linear_decay_scale",
)
_LR = {
    "sgd": (0.1, 300),
    "fasgd": (0.03, 30),
    "cfsgd": (0.03, 30),
    "adagrad": (0.002, 2),
    "rowwise-adagrad": (0.002, 2),
    "adam": (1e-5, 0.1),
}
_DENSE_DECAY = ("adagrad", "adam")  # L2 of every row in every step: stronger for the same number
_CAPPED = ("fasgd", "cfsgd")

Point = dict[str, float | None]  # a value per setting; None is "without it"


@dataclass(frozen=True)
class Range:
    """Where a setting may lie, ends included.

    Args:
        low, high: the ends
        scale: "log", "linear", or "whole" for whole numbers
        optional: it may also be left out
        only_with: it exists only where that other setting is not left out
    """

    low: float
    high: float
    scale: str = "log"
    optional: bool = False
    only_with: str | None = None


def search_space(optimizer: str, settings: Settings) -> dict[str, Range]:
    """The settings that are searched for an optimizer.

    ``decay_epochs`` are those over which the learning rate falls to 0, else it is constant;
    ``max_lr_ratio`` is the cap on a row's rate over the learning rate.
    """
    dense = optimizer in _DENSE_DECAY
    space = {
        "lr": Range(*_LR[optimizer]),
        "init_scale": Range(0.1, 3),
        "linear_lr_scale": Range(0.1, 1),
        "decay_epochs": Range(
            min(4, settings.epochs), min(30, settings.epochs), "whole", optional=True
        ),
        "weight_decay": Range(*((1e-7, 1e-3) if dense else (1e-6, 1e-2)), optional=True),
        "linear_decay_scale": Range(0.5, 5, only_with="weight_decay"),
    }
    if not dense:
        space["weight_decay_power"] = Range(0.5, 1, "linear", only_with="weight_decay")
    if optimizer in _CAPPED:
        space["max_lr_ratio"] = Range(10, 300, optional=True)
    return space


def describe(space: Mapping[str, Range]) -> dict[str, Any]:
    """The space as JSON."""
    return {name: asdict(each) for name, each in space.items()}


def default(space: Mapping[str, Range], lr: float) -> Point:
    """A point that is worth trying first: a learning rate, and nothing else."""
    point: Point = {name: None for name, each in space.items() if each.optional}
    lr = min(max(lr, space["lr"].low), space["lr"].high)
    return {**point, "lr": lr, "init_scale": 1.0, "linear_lr_scale": 1.0}


def suggest(trial: Any, space: Mapping[str, Range]) -> Point:
    """Let an Optuna trial choose a point."""
    point: Point = {}
    for name, each in space.items():
        if each.only_with is not None and point[each.only_with] is None:
            continue
        if each.optional and not trial.suggest_categorical(_switch(name), [False, True]):
            point[name] = None
        elif each.scale == "whole":
            point[name] = trial.suggest_int(name, int(each.low), int(each.high))
        else:
            point[name] = trial.suggest_float(name, each.low, each.high, log=each.scale == "log")
    return point


def parameters(point: Point, space: Mapping[str, Range]) -> dict[str, Any]:
    """What Optuna calls a point: :func:`suggest` backwards."""
    switches = {_switch(name): point[name] is not None for name in space if space[name].optional}
    return switches | {name: value for name, value in point.items() if value is not None}


def point_of(parameters: Mapping[str, Any], space: Mapping[str, Range]) -> Point:
    """A point from what Optuna calls it."""
    return {
        name: parameters.get(name)
        for name, each in space.items()
        if each.optional or name in parameters
    }


def _switch(name: str) -> str:
    return f"with_{name}"


def apply(point: Point, optimizer: str, settings: Settings) -> tuple[Rule, Settings]:
    """The rule and the settings that a point stands for."""
    values = dict(point)
    decay_epochs, ratio = values.pop("decay_epochs"), values.pop("max_lr_ratio", None)
    init_scale, lr = values.pop("init_scale"), values.pop("lr")
    assert init_scale is not None
    assert lr is not None
    rule = Rule(
        optimizer,
        lr,
        max_lr=None if ratio is None else ratio * lr,
        **{name: value for name, value in values.items() if value is not None},
    )
    settings = replace(settings, init_scale=init_scale)
    if decay_epochs is not None:
        settings = replace(settings, lr_decay="linear", epochs=int(decay_epochs))
    return rule, settings
