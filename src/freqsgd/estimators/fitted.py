"""What training leaves, and how its rows move when tables grow."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.data.columns import Column
from freqsgd.data.dataset import Dataset
from freqsgd.data.encoder import Encoder
from freqsgd.data.frames import encode_frame
from freqsgd.export.vectors import Vectors
from freqsgd.nn.fm import FM, DeepFM
from freqsgd.training.engine import Engine
from freqsgd.training.predictor import predictor_for
from freqsgd.training.rules import Rule

__all__ = ["Fitted", "counts_of", "resized", "resized_state"]

_BY_ROW = ("counts", "state", "moment")  # optimizer state that has a row for each token


@dataclass
class Fitted:
    """A model, its dictionary, and the optimizer's state, from which training can go on."""

    model: FM
    encoder: Encoder
    state: dict[str, Tensor] = field(default_factory=dict)
    samples: int = 0  # that the state has seen
    steps: int = 0
    _vectors: dict[int, Vectors] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of_run(cls, model: FM, data: Dataset, rule: Rule, epochs: int) -> Fitted:
        """After some epochs, each of which has counted every sample once."""
        assert data.encoder is not None
        fitted = cls(model, data.encoder)
        if rule.counts:
            fitted.samples = epochs * len(data.splits.train)
            fitted.state = {"counts": counts_of(epochs * data.token_counts)}
        return fitted

    @property
    def columns(self) -> tuple[Column, ...]:
        """The raw columns, one for each field."""
        return self.encoder.columns

    def vectors(self, place: int) -> Vectors:
        """The vectors of a field, made when they are first asked for."""
        if place not in self._vectors:
            name = self.columns[place].name
            self._vectors[place] = Vectors.of(self.model, self.encoder, place, name)
        return self._vectors[place]

    def predict(self, frame: pl.DataFrame, threads: int | None) -> NDArray[np.float32]:
        """Log odds of the rows of a frame."""
        return predictor_for(self.model, threads).predict(encode_frame(self.encoder, frame))

    def hand_over(self, engine: Engine, sizes: Sequence[int]) -> None:
        """Give the state to an engine whose model has these sizes; what is not known stays new."""
        known = resized_state(self.state, self.model.sizes, sizes)
        engine.load_state({**engine.state, **known}, self.samples, self.steps)


def counts_of(seen: NDArray[np.int64]) -> Tensor:
    """Counters of the optimizer, in 32 bits if they fit."""
    counts = torch.from_numpy(seen)
    return counts.int() if seen.max(initial=0) < 2**31 else counts


def resized(model: FM, sizes: Sequence[int], widths: Sequence[int]) -> FM:
    """A copy of a model with other sizes of its fields; new rows are zeros."""
    options: dict[str, Any] = {"widths": widths, "init_scale": model.init_scale}
    if isinstance(model, DeepFM):
        options |= {"hidden": model.hidden, "dropout": model.dropout}
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        copied = type(model)(sizes, model.dim, **options)
        copied.tokens.weight.copy_(_moved(model.tokens.weight, model.sizes, sizes))
        copied.bias.copy_(model.bias)
    if isinstance(model, DeepFM):
        assert isinstance(copied, DeepFM)
        copied.network = copy.deepcopy(model.network)
    return copied.eval()


def resized_state(
    state: dict[str, Tensor], before: Sequence[int], after: Sequence[int]
) -> dict[str, Tensor]:
    """The same for the optimizer's state."""
    return {
        name: _moved(tensor, before, after) if name in _BY_ROW else tensor.clone()
        for name, tensor in state.items()
    }


def _moved(rows: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
    """The rows of each field, as many as have room, at the field's new place."""
    moved = rows.new_zeros(sum(after), *rows.shape[1:])
    starts = zip(np.cumsum([0, *before]), np.cumsum([0, *after]), strict=True)
    for (old, new), size, room in zip(starts, before, after, strict=False):
        kept = min(size, room)
        moved[new : new + kept] = rows[old : old + kept]
    return moved
