"""The optimizers of word vectors: their default rates, and what does not go together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.training.rules import ALIKE, OPTIMIZERS, Rule
from freqsgd.training.text_settings import TextSettings

__all__ = ["check_rule", "with_default_lr"]

_PER_WEIGHT = ("adagrad", "adam")

_RATES = {
    # the paper's Appendix B; adagrad's is ours
    ("skipgram", "softmax"): {"sgd": 1.0, "cfsgd": 1.0, "adagrad": 0.1, "adam": 0.025},
    ("cbow", "softmax"): {"sgd": 1.0, "cfsgd": 1.0, "adagrad": 0.1, "adam": 0.025},
    # sgd's with skipgram is that of the original program
    ("skipgram", "negative"): {"sgd": 0.025, "rowwise-adagrad": 0.1},
    ("cbow", "negative"): {"sgd": 0.2, "rowwise-adagrad": 0.2},
}
# For negative sampling with rates that follow frequency: the mean over a text's words of their
# rates in the input table, and the cap on each. So the default suits vocabularies of any size.
_USUAL = 6  # words that a sample touches: its target and five of noise
_MEANS = {"skipgram": (0.05, 0.05), "cbow": (0.18, 0.15)}


def with_default_lr(rule: Rule, settings: TextSettings, counts: NDArray[np.int64]) -> Rule:
    """Give a rule without learning rate the default one, and the cap that goes with it."""
    if rule.lr is not None:
        return rule
    rates = _RATES[settings.model, settings.loss]
    name = ALIKE.get(rule.optimizer, rule.optimizer)
    rate = rates.get(rule.optimizer, rates.get(name))
    if settings.loss == "softmax" or rule.optimizer == "rowwise-adagrad":
        return replace(rule, lr=rate)
    # More noise words make longer gradients. Adagrad divides by their length anyway.
    scale = min(1.0, _USUAL / (1 + settings.negatives))
    if rate is not None:
        return replace(rule, lr=scale * rate)
    mean, cap = _MEANS[settings.model]
    share = counts[counts > 0] / counts.sum()
    p = share * settings.inputs_per_sample
    lr = scale * mean / float((share * p**-rule.law.power).sum())
    return replace(rule, lr=lr, max_lr=scale * cap if rule.max_lr is None else rule.max_lr)


def check_rule(rule: Rule, settings: TextSettings) -> None:
    """Refuse what word vectors cannot be trained with."""
    for name in ("linear_lr_scale", "linear_decay_scale"):
        if getattr(rule, name) != 1.0:
            raise DataError(f"{name} is for fm and deepfm: word vectors have no linear weights")
    if rule.halflife is not None:
        raise DataError("halflife is for fm and deepfm: counts of words do not fade")
    if rule.count != "occurrence":
        raise DataError(f"count {rule.count!r} is for fm and deepfm: words count as they occur")
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
