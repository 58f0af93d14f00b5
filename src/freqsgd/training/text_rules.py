"""The optimizers of word vectors: their default rates, and what does not go together."""

from __future__ import annotations

from dataclasses import replace

from freqsgd.data.dataset import DataError
from freqsgd.training.presets import text_preset
from freqsgd.training.rules import OPTIMIZERS, Rule
from freqsgd.training.text_settings import TextSettings

__all__ = ["check_rule", "with_default_lr"]

_PER_WEIGHT = ("adagrad", "adam")


def with_default_lr(rule: Rule, settings: TextSettings) -> Rule:
    """Give a rule without learning rate the default one, and the cap that goes with it."""
    if rule.lr is not None:
        return rule
    values = text_preset("paper", settings.model, settings.loss, rule.optimizer)
    cap = values.get("max_lr") if rule.max_lr is None else rule.max_lr
    return replace(rule, lr=values["lr"], max_lr=cap)


def check_rule(rule: Rule, settings: TextSettings) -> None:
    """Refuse what word vectors cannot be trained with."""
    for name in ("linear_lr_scale", "linear_decay_scale"):
        if getattr(rule, name) != 1.0:
            raise DataError(f"{name} is for fm and deepfm: word vectors have no linear weights")
    if rule.weight_decay and rule.optimizer == "rowwise-adagrad":
        raise DataError("weight_decay of word vectors does not go with rowwise-adagrad")
    if settings.loss != "negative":
        return
    if rule.optimizer in _PER_WEIGHT:
        others = ", ".join(name for name in OPTIMIZERS if name not in _PER_WEIGHT)
        raise DataError(
            f"{rule.optimizer} keeps numbers for every weight, and the loss negative updates rows "
            f"by rules that keep one number a row at most: use {others}, or the loss softmax"
        )
    if rule.weight_decay:
        raise DataError(
            "weight_decay does not go with the loss negative, whose steps touch a few rows only: "
            "leave it out, or use the loss softmax"
        )
