"""The search space of ``freqsgd tune``: a range per setting and optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from freqsgd.optimizers import OPTIMIZERS, Rule
from freqsgd.recommender.settings import Settings
from freqsgd.tables.dataset import Dataset

Point = dict[str, float | None]  # a value per setting; None is "without it"


@dataclass(frozen=True)
class Range:
    """Range of a setting, ends included.

    Args:
        low, high: the ends
        plain: its value in the first trial; None to leave it out
        scale: "log", "linear", or "whole" for whole numbers
        off: the end that stands for leaving it out, where the way there is smooth
        optional: it may be left out by a choice of its own
    """

    low: float
    high: float
    plain: float | None
    scale: str = "log"
    off: float | None = None
    optional: bool = False


def search_space(optimizer: str, settings: Settings, lr: float) -> dict[str, Range]:
    """Return the settings that are searched for an optimizer, around a learning rate.

    ``decay_epochs`` are those over which the learning rate falls to 0, else it is constant;
    ``max_lr_ratio`` is the cap on a row's rate over the learning rate; ``typical_decay`` is the
    weight decay of an occurrence of a typical token, whatever the power: with ``weight_decay``
    itself, the best value of one would depend very much on the other.
    """
    facts = OPTIMIZERS[optimizer]
    ranges = facts.search
    shortest, longest = min(4, settings.epochs), min(30, settings.epochs)
    space = {
        "lr": Range(lr / 8, lr * 16, lr),
        "init_scale": Range(0.3, 2, 1),
        "linear_lr_scale": Range(*ranges.linear_lr, 1),
        "linear_decay_scale": Range(*ranges.linear_decay, 1),
        "decay_epochs": Range(shortest, longest, None, "whole", optional=True),
    }
    if facts.dense_decay:  # is stronger for the same number
        space["weight_decay"] = Range(1e-7, 1e-3, None, off=1e-7)
    else:
        low, high = ranges.typical_decay
        space["typical_decay"] = Range(low, high, None, off=low)
        space["weight_decay_power"] = Range(*ranges.decay_power, 1, "linear")
    if facts.capped:
        space["max_lr_ratio"] = Range(10, 300, None, off=300)
    return space


def typical_frequency(data: Dataset) -> float:
    """Return the geometric mean of the frequencies of the tokens that training meets."""
    counts = data.token_counts[data.token_counts > 0]
    return float(np.exp(np.average(np.log(counts / len(data.splits.train)), weights=counts)))


def default(space: Mapping[str, Range]) -> Point:
    """Return a point that is worth trying first: a learning rate, and nothing else."""
    return {name: each.plain for name, each in space.items()}


def suggest(trial: Any, space: Mapping[str, Range]) -> Point:
    """Let an Optuna trial choose a point."""
    point: Point = {}
    for name, each in space.items():
        if each.optional and not trial.suggest_categorical(_switch(name), [False, True]):
            point[name] = None
        elif each.scale == "whole":
            point[name] = trial.suggest_int(name, int(each.low), int(each.high))
        else:
            value = trial.suggest_float(name, each.low, each.high, log=each.scale == "log")
            point[name] = None if value == each.off else value
    return point


def parameters(point: Point, space: Mapping[str, Range]) -> dict[str, Any]:
    """Return what Optuna calls a point: :func:`suggest` backwards."""
    named: dict[str, Any] = {}
    for name, each in space.items():
        if each.optional:
            named[_switch(name)] = point[name] is not None
        value = each.off if point[name] is None else point[name]
        if value is not None:
            named[name] = value
    return named


def _switch(name: str) -> str:
    return f"with_{name}"


def apply(
    point: Point, optimizer: str, settings: Settings, frequency: float
) -> tuple[Rule, Settings]:
    """Return the rule and settings of a point; ``frequency`` is a typical token's."""
    values: dict[str, Any] = dict(point)
    decay_epochs, ratio = values.pop("decay_epochs"), values.pop("max_lr_ratio", None)
    settings = replace(settings, init_scale=values.pop("init_scale"))
    if decay_epochs is not None:
        settings = replace(settings, lr_decay="linear", epochs=int(decay_epochs))
    if (decay := values.pop("typical_decay", None)) is not None:
        values["weight_decay"] = decay * frequency ** values["weight_decay_power"]
    if ratio is not None:
        values["max_lr"] = ratio * values["lr"]
    values = {name: value for name, value in values.items() if value is not None}
    return Rule(optimizer, **values), settings
