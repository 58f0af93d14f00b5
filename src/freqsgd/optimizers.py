"""The optimizers by name, and what each keeps."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from freqsgd.rates import RateLaw, check_counting

__all__ = ["ALIKE", "OPTIMIZERS", "WIDE", "Rule"]

OPTIMIZERS = {
    "sgd": "nothing",
    "fasgd": "one frequency per row",
    "cfsgd": "one counter per row",
    "adagrad": "one float per weight",
    "rowwise-adagrad": "two floats per row",
    "adam": "two floats per weight",
}
"""The optimizers by name, with what each keeps."""
WIDE = 2**31  # counts that could come to so many have 64 bits
ALIKE = {"fasgd": "cfsgd", "rowwise-adagrad": "adagrad"}  # take the other's learning rates


@dataclass(frozen=True)
class Rule:
    """An optimizer and its options.

    Weight decay of adagrad and adam is torch's: every row, every step. That of the others follows
    the law of :mod:`freqsgd.rates`, for which sgd and rowwise-adagrad keep a counter per row too.

    Args:
        optimizer: a key of :data:`OPTIMIZERS`
        lr: learning rate; None to let :func:`~freqsgd.recommender.find_lr.find_lr` find it
        weight_decay: strength of the L2 penalty
        weight_decay_power: how the law spreads it over frequencies; 1 is ordinary L2
        max_lr: cap on the rate of a row, for fasgd and cfsgd
        linear_lr_scale: learning rate of linear weights, times that of the vectors
        linear_decay_scale: weight decay of linear weights, times that of the vectors
        halflife: of counts, in samples, for cfsgd; None: they do not fade
        count: ``"occurrence"``, or, for cfsgd, ``"batch"``: a row counts once per batch that holds
            it, and frequencies are per batch, as TorchRec counts. Then start from
            lr * sqrt(batch size)
        dense_lr: rate of the bias and of a network where batches are counted; None: that which
            goes with ``lr`` where occurrences are
    """

    optimizer: str
    lr: float | None = None
    weight_decay: float = 0.0
    weight_decay_power: float = 1.0
    max_lr: float | None = None
    linear_lr_scale: float = 1.0
    linear_decay_scale: float = 1.0
    halflife: float | None = None
    count: str = "occurrence"
    dense_lr: float | None = None

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            known = ", ".join(OPTIMIZERS)
            raise ValueError(f"unknown optimizer {self.optimizer!r}; known: {known}")
        _ = self.law
        for name in ("linear_lr_scale", "linear_decay_scale"):
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be a number >= 0, got {getattr(self, name)}")
        check_counting(halflife=self.halflife, count=self.count)
        if self.halflife is not None and self.optimizer != "cfsgd":
            raise ValueError(f"halflife is for cfsgd, which counts, not for {self.optimizer}")
        if self.count == "batch":
            self._check_batches()
        elif self.dense_lr is not None:
            raise ValueError("dense_lr needs count 'batch': else bias and network move at lr")

    def _check_batches(self) -> None:
        """Refuse what does not go with counting batches."""
        if self.optimizer != "cfsgd":
            raise ValueError(f"count 'batch' is for cfsgd, which counts, not for {self.optimizer}")
        if self.halflife is not None:
            raise ValueError(
                "halflife is in samples, which count 'batch' does not count: leave one out"
            )
        if self.dense_lr is not None and not 0.0 <= self.dense_lr < math.inf:
            raise ValueError(f"dense_lr must be a finite number >= 0, got {self.dense_lr}")

    @property
    def law(self) -> RateLaw:
        """The rate law; sgd is the law of power 0. A rate that is yet to be found is 0."""
        aware = self.optimizer in ("fasgd", "cfsgd")
        return RateLaw(
            lr=self.lr or 0.0,
            power=0.5 if aware else 0.0,
            max_lr=self.max_lr if aware and self.max_lr != math.inf else None,
            weight_decay=self.weight_decay,
            weight_decay_power=self.weight_decay_power,
        )

    def dense_rate(self, batch_size: int) -> float:
        """The rate of weights that every sample touches: the bias, a network."""
        if self.dense_lr is not None:
            return self.dense_lr
        return self.law.lr * self.dense_scale(batch_size)

    def dense_scale(self, batch_size: int) -> float:
        """That rate as a part of ``lr``, which it follows where a schedule lowers it."""
        if self.dense_lr is None:
            return 1.0 / math.sqrt(batch_size) if self.count == "batch" else 1.0
        if not self.lr:
            raise ValueError(f"dense_lr needs a learning rate (lr) > 0 beside it, got {self.lr}")
        return self.dense_lr / self.lr

    def most_counted(self, samples: int, width: int, batch_size: int) -> int:
        """The most that so many samples can count for a row of a field with so many columns."""
        return -(-samples // batch_size) if self.count == "batch" else samples * width

    @property
    def plain(self) -> dict[str, Any]:
        """All options, as JSON can hold them: an infinite cap is none."""
        return {k: None if v == math.inf else v for k, v in asdict(self).items()}

    @property
    def counts(self) -> bool:
        """Whether each row has a counter."""
        decays = self.weight_decay > 0 and self.optimizer in ("sgd", "rowwise-adagrad")
        return self.optimizer == "cfsgd" or decays

    @property
    def dense(self) -> bool:
        """Whether every step changes all rows, also those that the batch does not hold."""
        decays = self.weight_decay > 0 and self.optimizer == "adagrad"
        return self.optimizer == "adam" or decays

    @property
    def decay_rule(self) -> str:
        """How weight decay works, in words."""
        if self.weight_decay == 0:
            return "none"
        if self.optimizer in ("adagrad", "adam"):
            return "dense L2: every row, every step"
        return f"by frequency, power {self.weight_decay_power:g}"

    @property
    def keeps(self) -> str:
        """What the optimizer keeps beside the weights, in words."""
        if self.counts and self.optimizer != "cfsgd":
            also = "" if self.optimizer == "sgd" else f"{OPTIMIZERS[self.optimizer]} and "
            return also + "one counter per row"
        return OPTIMIZERS[self.optimizer]
