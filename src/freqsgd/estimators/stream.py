"""Learning from a stream: tables that grow with their tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.data.growing import GrowingEncoder
from freqsgd.estimators.fitted import Fitted, resized, resized_state
from freqsgd.training.engine import DivergedError, engine_for
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings

__all__ = ["Stream"]


class Stream:
    """Goes on from what training left, one batch of rows after the other.

    A table has more rows than tokens; when a field runs out of them it gets twice as many.

    Args:
        fitted: where to begin
        rule: the optimizer; fasgd cannot be used, for it must know all frequencies before
        settings: size of a step, seed and scale of new vectors
        threads: of the kernels
    """

    def __init__(self, fitted: Fitted, rule: Rule, settings: Settings, threads: int | None) -> None:
        if rule.optimizer == "fasgd":
            raise DataError(
                "fasgd must know all frequencies before training: use cfsgd, which counts them"
            )
        self.rule, self.lr, self.settings = rule, rule.law.lr, settings
        self._options: dict[str, Any] = {
            "seed": settings.seed,
            "batch_size": settings.batch_size,
            "threads": threads,
        }
        self.dictionary = GrowingEncoder(fitted.encoder)
        self.model = resized(fitted.model, fitted.model.sizes, fitted.model.widths)
        self.engine = engine_for(self.model, rule, **self._options)
        fitted.hand_over(self.engine, self.model.sizes)

    def learn(
        self,
        frame: pl.DataFrame,
        labels: NDArray[np.uint8],
        weights: NDArray[np.float32] | None = None,
    ) -> None:
        """Take the steps of one pass over some rows, in their order."""
        before = self.dictionary.sizes.copy()
        ids = self.dictionary.take_in(frame)
        self._make_room()
        self._start_vectors(before, self.dictionary.sizes)
        steps = -(-len(ids) // self.engine.batch_size)
        lrs = np.full(steps, self.lr)
        try:
            for _ in self.engine.train(ids, labels, np.arange(len(ids)), lrs, weights=weights):
                pass
        except DivergedError as error:
            raise DataError(f"{error} at lr {self.lr:g}: start again with a smaller lr") from None

    def predict(self, frame: pl.DataFrame) -> NDArray[np.float32]:
        """Log odds of the rows of a frame."""
        return self.engine.predict(self.dictionary.encode(frame))

    def fitted(self) -> Fitted:
        """A copy of what was learned so far, without spare rows."""
        engine, model = self.engine, self.model
        sizes = self.dictionary.sizes.tolist()
        return Fitted(
            resized(model, sizes, model.widths),
            self.dictionary.encoder(),
            resized_state(engine.state, model.sizes, sizes),
            engine.samples,
            engine.steps,
        )

    def _make_room(self) -> None:
        needed, sizes = self.dictionary.sizes.tolist(), self.model.sizes
        widths = [column.width for column in self.dictionary.columns]
        pairs = zip(needed, sizes, strict=True)
        larger = [size if need <= size else max(need, 2 * size) for need, size in pairs]
        if larger == sizes and widths == self.model.widths:
            return
        state = resized_state(self.engine.state, sizes, larger)
        samples, steps = self.engine.samples, self.engine.steps
        self.model = resized(self.model, larger, widths)
        self.engine = engine_for(self.model, self.rule, **self._options)
        self.engine.load_state(state, samples, steps)

    def _start_vectors(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> None:
        """Draw the vectors of new tokens: xavier-uniform for the number of tokens so far."""
        dim = self.model.dim
        bound = self.settings.init_scale * (6 / (after.sum() + dim)) ** 0.5
        generator = np.random.Generator(np.random.PCG64([self.settings.seed, int(before.sum())]))
        starts = np.cumsum([0, *self.model.sizes])
        with torch.no_grad():
            for start, old, new in zip(starts, before, after, strict=False):
                vectors = generator.uniform(-bound, bound, (new - old, dim))
                rows = self.model.tokens.weight[start + old : start + new]
                rows[:, :dim] = torch.from_numpy(vectors)
