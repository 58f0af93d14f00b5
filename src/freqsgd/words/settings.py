"""What all optimizers of a comparison of word vectors share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.checks import real_number, whole_number
from freqsgd.errors import DataError
from freqsgd.optimizers import OPTIMIZERS, Optimizer, Rule

TEXT_MODELS = ("cbow", "skipgram")
LOSSES = ("softmax", "negative")
_BY_LOSS: Any = None  # a default that depends on the loss
_DEFAULTS = {
    # the paper's, and the usual ones
    "softmax": {"epochs": 20, "batch_size": 96, "lr_decay": "epochs", "windows": "full"},
    "negative": {"epochs": 5, "batch_size": 1024, "lr_decay": "linear", "windows": "all"},
}
_LEAST = {
    "dim": 1, "window": 1, "negatives": 1, "epochs": 1, "patience": 1, "batch_size": 1,
    "checkpoint_steps": 1, "seed": 0,
}  # fmt: skip
_MAY_BE_NONE = ("patience", "checkpoint_steps", "max_norm")


@dataclass(frozen=True)
class TextSettings:
    """What all optimizers of a comparison of word vectors share.

    A skip-gram sample is a pair: the vector of a word, the centre, predicts a word of its window.
    A CBOW sample is a position: the mean of the window's vectors predicts the word in its middle.

    Args:
        model: "cbow" or "skipgram"
        loss: "softmax" over the whole vocabulary, or "negative": negative sampling
        dim: size of the vectors
        window: words on each side
        windows: "full": only words whose window lies within their paragraph are centres (middles,
            for CBOW); "all": windows are cut at the ends of a paragraph. None: "full" for softmax
        negatives: noise words of a sample, drawn with probability ~ count^0.75; for "negative"
        subsample: words of a frequency f above this are kept with probability
            sqrt(subsample / f) + subsample / f, drawn anew in every epoch; 0 keeps all
        max_norm: longest word vector; longer ones are shortened when they are used. For "softmax"
        epochs: at most; None: 20 for softmax, 5 for negative
        patience: stop after so many epochs without a lower validation loss, and keep the best;
            None to train for all epochs and keep the last
        batch_size: paragraphs of a step; None: 96 for softmax, 1024 for negative
        lr_decay: "constant", "linear": to 0 over all ``epochs``, step by step, or "epochs": the
            same, epoch by epoch. None: "epochs" for softmax, "linear" for negative
        seed: of the start, the order of the paragraphs, and the noise words
        checkpoint_steps: write a checkpoint after so many steps too, not only after each epoch
    """

    model: str = "skipgram"
    loss: str = "negative"
    dim: int = 300
    window: int = 4
    windows: str = _BY_LOSS
    negatives: int = 5
    subsample: float = 0.0
    max_norm: float | None = None
    epochs: int = _BY_LOSS
    patience: int | None = None
    batch_size: int = _BY_LOSS
    lr_decay: str = _BY_LOSS
    seed: int = 0
    checkpoint_steps: int | None = None

    def __post_init__(self) -> None:
        for name, known in (("model", TEXT_MODELS), ("loss", LOSSES)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"unknown {name} {getattr(self, name)!r}; known: {', '.join(known)}"
                )
        for name, value in _DEFAULTS[self.loss].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.windows not in ("full", "all"):
            raise ValueError(f"windows must be full or all, got {self.windows!r}")
        if self.lr_decay not in ("constant", "linear", "epochs"):
            raise ValueError(f"lr_decay must be constant, linear or epochs, got {self.lr_decay!r}")
        # numpy's numbers become Python's, which JSON can hold
        for name in (*_LEAST, "subsample", "max_norm"):
            value = getattr(self, name)
            if value is None and name in _MAY_BE_NONE:
                continue
            number = (
                whole_number(name, value, _LEAST[name])
                if name in _LEAST
                else real_number(name, value)
            )
            object.__setattr__(self, name, number)
        if not 0 <= self.subsample < 1:
            raise ValueError(f"subsample must lie in [0, 1), got {self.subsample}")
        if self.max_norm is not None and not 0 < self.max_norm < float("inf"):
            raise ValueError(f"max_norm must be a number > 0, got {self.max_norm}")
        if self.max_norm is not None and self.loss == "negative":
            raise ValueError("max_norm goes with the loss softmax only")

    @property
    def about_model(self) -> dict[str, Any]:
        """The model, as ``results.json`` describes it."""
        model = {"name": self.model, "loss": self.loss, "dim": self.dim}
        if self.loss == "negative":
            model["negatives"] = self.negatives
        return {**model, "window": self.window, "hidden": []}

    @property
    def inputs_per_sample(self) -> int:
        """Words that predict in a sample with a full window, by which frequencies are counted."""
        return 1 if self.model == "skipgram" else 2 * self.window

    def most_counted(self, words: int, samples: int = 0) -> int:
        """Return how often a word may be counted at most, in samples and windows of words."""
        samples += words * 2 * self.window
        return samples * max(2 * self.window, 1 + self.negatives)


# The paper's Appendix B; adagrad's is ours, cfadam's is that of adam
_OF_SOFTMAX = {"sgd": 1.0, "cfsgd": 1.0, "adagrad": 0.1, "adam": 0.025, "cfadam": 0.025}
_RATES = {
    ("skipgram", "softmax"): _OF_SOFTMAX,
    ("cbow", "softmax"): _OF_SOFTMAX,
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
    rate = rates.get(rule.optimizer, rates.get(rule.facts.rates_of or "", rule.facts.lr))
    if settings.loss == "softmax" or rule.facts.adaptive:
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
    if rule.weight_decay and not rule.facts.word_decay:
        raise DataError(f"weight_decay of word vectors does not go with {rule.optimizer}")
    trained_by = {name: _trains(facts, settings.loss) for name, facts in OPTIMIZERS.items()}
    if not trained_by[rule.optimizer]:
        others = ", ".join(name for name, trains in trained_by.items() if trains)
        if settings.loss == "negative" and _trains(rule.facts, "softmax"):
            raise DataError(
                f"{rule.optimizer} keeps numbers for every weight, and the loss negative updates "
                f"rows by rules that keep one number a row at most: use {others}, or the loss "
                "softmax"
            )
        raise DataError(
            f"{rule.optimizer} does not train words with the loss {settings.loss}: use {others}"
        )
    if rule.weight_decay and settings.loss == "negative":
        raise DataError(
            "weight_decay does not go with the loss negative, whose steps touch a few rows only: "
            "leave it out, or use the loss softmax"
        )


def _trains(facts: Optimizer, loss: str) -> bool:
    return (facts.words_kernel if loss == "negative" else facts.softmax) is not None
