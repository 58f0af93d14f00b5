"""Learning from a stream: tables that grow with their tokens."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError, DivergedError
from freqsgd.estimators.fitted import Fitted, moved, resized
from freqsgd.optimizers import Rule
from freqsgd.recommender.engine import Engine, engine_for
from freqsgd.recommender.models import model_of
from freqsgd.recommender.settings import Settings
from freqsgd.runs.metrics import cross_entropy
from freqsgd.runs.run import check_loss
from freqsgd.tables.encoders.columns import Column
from freqsgd.tables.encoders.frames import GrowingEncoder

_FREE = ("lr", "lr_decay", "epochs", "patience")  # may change; all but the first are for ``fit``


class Stream:
    """Goes on from what training left, one batch of rows after the other.

    A table has more rows than tokens; when a field runs out of them it gets twice as many.

    Args:
        fitted: where to begin
        rule: the optimizer; fasgd cannot be used, for it must know all frequencies before
        lr: learning rate, which may be changed between calls
        settings: size of a step, seed and scale of new vectors
        threads: of the kernels
    """

    def __init__(
        self, fitted: Fitted, rule: Rule, lr: float, settings: Settings, threads: int | None
    ) -> None:
        if rule.facts.needs_frequencies:
            raise DataError(
                f"{rule.optimizer} must know all frequencies before training: use cfsgd, which "
                "counts them"
            )
        self.lr, self.settings = lr, settings
        shape = model_of(fitted.model).shape(fitted.model)
        shape = {name: tuple(v) if isinstance(v, list) else v for name, v in shape.items()}
        self._given = {**_flat(rule, settings, threads), **shape}
        self.check_same(rule, settings, threads)
        self._rule = replace(rule, lr=lr)
        self._options: dict[str, Any] = {
            "seed": settings.seed,
            "batch_size": settings.batch_size,
            "threads": threads,
        }
        self.dictionary = GrowingEncoder(fitted.encoder)
        self._started = self.dictionary.sizes  # rows of each field whose vectors have been drawn
        self.engine = self._grown(fitted, fitted.model.sizes, fitted.model.widths)
        self._copy: Fitted | None = None  # of what was learned so far, if it was asked for

    @property
    def columns(self) -> tuple[Column, ...]:
        """The raw columns, one for each field."""
        return self.dictionary.columns

    def check_same(self, rule: Rule, settings: Settings, threads: int | None) -> None:
        """Refuse options that are not those the stream began with."""
        for name, value in _flat(rule, settings, threads).items():
            if value != self._given[name]:
                raise DataError(
                    f"{name} was {self._given[name]} when this stream began and cannot become "
                    f"{value}: set it back, or begin a new one"
                )

    def learn(
        self,
        frame: pl.DataFrame,
        labels: NDArray[np.uint8],
        weights: NDArray[np.float32] | None = None,
    ) -> None:
        """Take the steps of one pass over some rows, in their order."""
        self._copy = None
        ids = self.dictionary.take_in(frame)
        self._start_vectors()
        engine, size = self.engine, self.engine.batch_size
        lrs = np.full(-(-len(ids) // size), self.lr)
        try:
            for _ in engine.train(ids, labels, np.arange(len(ids)), lrs, weights=weights):
                pass
            last = slice((len(lrs) - 1) * size, None)  # the step whose loss was taken before it
            self._check(engine.predict(ids[last]), labels[last])
        except DivergedError as error:
            raise DataError(f"{error} at lr {self.lr:g}: start again with a smaller lr") from None

    def _check(self, logits: NDArray[np.float32], labels: NDArray[np.uint8]) -> None:
        """Raise if predictions of the rows of a step show that the stream diverged.

        A few rows may all be surprising, so they are judged together with a batch of rows that a
        model which knows nothing gives the probability 1/2.
        """
        if not np.isfinite(logits).all():
            raise DivergedError(self.engine.steps - 1)
        blank, size = math.log(2), self.engine.batch_size
        loss = (size * blank + len(logits) * cross_entropy(logits, labels)) / (size + len(logits))
        check_loss(loss, blank, self.engine.steps - 1)

    def predict(self, frame: pl.DataFrame, threads: int | None) -> NDArray[np.float32]:
        """Return log odds of the rows of a frame, by the threads that it was made with."""
        self._make_room()
        return self.engine.predict(self.dictionary.encode(frame))

    def fitted(self) -> Fitted:
        """Return a copy of what was learned so far, without spare rows."""
        if self._copy is None:
            self._start_vectors()
            engine, model = self.engine, self.engine.model
            sizes = self.dictionary.sizes.tolist()
            self._copy = Fitted(
                resized(model, sizes, model.widths),
                self.dictionary.encoder(),
                moved(engine.state, model.sizes, sizes),
                engine.samples,
                engine.steps,
            )
        return self._copy

    def _make_room(self) -> None:
        """Make rows for all tokens of the dictionary, also those that an interrupted call left."""
        model, widths = self.engine.model, [column.width for column in self.columns]
        pairs = zip(self.dictionary.sizes.tolist(), model.sizes, strict=True)
        sizes = [size if need <= size else max(need, 2 * size) for need, size in pairs]
        if sizes != model.sizes or widths != model.widths:
            self.engine = self._grown(self.engine, sizes, widths)

    def _grown(self, of: Fitted | Engine, sizes: list[int], widths: list[int]) -> Engine:
        """Return an engine that goes on from others' state, with other sizes of the fields."""
        engine = engine_for(resized(of.model, sizes, widths), self._rule, **self._options)
        state = moved(of.state, of.model.sizes, sizes)
        engine.load_state({**engine.state, **state}, of.samples, of.steps)
        return engine

    def _start_vectors(self) -> None:
        """Draw the vectors of new tokens: xavier-uniform for the number of tokens so far."""
        self._make_room()
        model, before, after = self.engine.model, self._started, self.dictionary.sizes
        bound = self.settings.init_scale * (6 / (after.sum() + model.dim)) ** 0.5
        generator = np.random.Generator(np.random.PCG64([self.settings.seed, int(before.sum())]))
        starts = np.cumsum([0, *model.sizes])
        table = model.tokens.weight.detach().numpy()
        for start, old, new in zip(starts, before, after, strict=False):
            vectors = generator.uniform(-bound, bound, (new - old, model.dim))
            table[start + old : start + new, : model.dim] = vectors
        self._started = after


def _flat(rule: Rule, settings: Settings, threads: int | None) -> dict[str, Any]:
    """Return the options that matter to a stream."""
    options = {**asdict(settings), **asdict(rule), "threads": threads}
    return {name: value for name, value in options.items() if name not in _FREE}
