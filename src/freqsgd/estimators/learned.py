"""What an estimator has learned: its vectors, and how it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from freqsgd.data.conversion import token_text
from freqsgd.data.dataset import DataError
from freqsgd.data.encoder import Encoder
from freqsgd.estimators import folder as folders
from freqsgd.estimators.fitted import Fitted
from freqsgd.estimators.stream import Stream
from freqsgd.export.vectors import Neighbor, Vectors
from freqsgd.nn.fm import FM

__all__ = ["LearnedEstimator"]


class LearnedEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that has learned vectors, or will."""

    _kind: str  # of the model: "fm" or "deepfm"
    _fitted: Fitted | None = None
    _stream: Stream | None = None  # goes on from there, once partial_fit was called

    @property
    def model_(self) -> FM:
        """The trained torch module; after ``partial_fit`` a copy of it."""
        return self._learned().model

    @property
    def encoder_(self) -> Encoder:
        """Turns values into ids of the model."""
        return self._learned().encoder

    def vectors(self, column: str) -> Vectors:
        """The vectors of a column's values."""
        learned, names = self._learned(), self._names()
        if column not in names:
            raise DataError(f"there is no column {column!r}: the columns are {', '.join(names)}")
        field = names.index(column)
        start = sum(learned.model.sizes[:field])
        rows = learned.model.tokens.weight.detach()[start : start + learned.model.sizes[field]]
        counts = np.append(0, learned.encoder.counts()[field].to_numpy())
        matrix = rows[:, : learned.model.dim].numpy().copy()
        return Vectors(learned.encoder.tokens(field), matrix, counts, column)

    def neighbors(self, column: str, value: Any, top: int = 10) -> list[Neighbor]:
        """The values of a column whose vectors have the highest cosine with that of a value."""
        text = token_text(value) or "<missing>"
        return self.vectors(column).nearest([text], top)[0]

    def save(self, path: str | Path) -> None:
        """Write a model folder, which ``load`` and the commands of ``freqsgd`` read."""
        learned, params = self._learned(), self.get_params(deep=False)
        if not isinstance(params["random_state"], int | None):
            params["random_state"] = self._seed  # which was drawn from it
        saved = folders.Saved(
            params,
            self.classes_,
            self.lr_,
            self._seed,
            has_names=hasattr(self, "feature_names_in_"),
            record=getattr(self, "_record", {"options": {}}),
        )
        folders.save(Path(path), learned, saved)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model folder that ``save`` or ``freqsgd train`` wrote."""
        fitted, saved = folders.load(Path(path), cls._kind, cls._get_param_names())
        estimator = cls(**saved.params)
        names = [column.name for column in fitted.encoder.columns]
        estimator.n_features_in_ = len(names)
        if saved.has_names:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator._keep(saved.classes, saved.seed, saved.lr)
        if "epochs" in saved.record:
            estimator._keep_record(saved.record)
        estimator._fitted = fitted
        return estimator

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None or self._stream is not None

    def __getstate__(self) -> dict[str, Any]:
        state = {**super().__getstate__()}
        if state.pop("_stream", None) is not None:
            state["_fitted"] = self._learned()
        return state

    def _learned(self) -> Fitted:
        check_is_fitted(self)
        if self._fitted is None:
            assert self._stream is not None
            self._fitted = self._stream.fitted()
        return self._fitted

    def _keep(self, classes: NDArray[Any], seed: int, lr: float) -> None:
        self.classes_, self._seed, self.lr_ = classes, seed, lr

    def _keep_record(self, record: dict[str, Any]) -> None:
        self._record = record
        self.history_: list[dict[str, Any]] = record["epochs"]
        self.n_iter_ = len(self.history_)
        self.best_epoch_: int = record["best_epoch"]

    def _names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{place}" for place in range(self.n_features_in_)]
