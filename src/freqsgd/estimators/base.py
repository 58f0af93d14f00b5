"""What the classifiers have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from freqsgd.errors import DataError
from freqsgd.estimators import fitted as folders
from freqsgd.estimators.fitted import Fitted
from freqsgd.estimators.inputs import (
    all_to_train,
    check_options,
    check_table,
    classes_of,
    hold_out,
    labels_of,
    no_samples,
    numeric_names,
    rows_of,
    rule_of,
    seed_of,
    settings_of,
    target_of,
    validate_on,
    warn_of_distinct,
)
from freqsgd.estimators.stream import Stream
from freqsgd.nn.fm import FM
from freqsgd.optimizers import Rule
from freqsgd.recommender.find_lr import find_lr
from freqsgd.recommender.models import build_model
from freqsgd.recommender.predictor import predictor_for
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import InterruptedFitError, Progress, fit
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.encoder import Encoder
from freqsgd.tables.frames import empty_encoder, encode_frame, frame_columns, new_encoder
from freqsgd.tables.values import read_frame, token_text
from freqsgd.vectors.vectors import Neighbor, Vectors

__all__ = ["BaseClassifier", "keep_base_rate", "shift_to_base_rate"]


class BaseClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A binary classifier of rows of categories."""

    _kind: str  # of the model: "fm" or "deepfm"
    _fitted: Fitted | None = None
    _stream: Stream | None = None  # goes on from there, once partial_fit was called

    # ---- learning --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, eval_set: Any = None, sample_weight: Any = None) -> Self:
        """Train until the validation AUC stops rising, and keep the best epoch's model.

        Its bias is then moved until the mean probability of the rows is their mean label.

        Args:
            X: a pandas or polars frame, or an array, of categories; lists in a frame are bags
            y: the class of each row; there are two
            eval_set: (X, y) to validate on, instead of a part of the rows
            sample_weight: times the loss of each row; a row of weight 0 is as if it were not there
        """
        with self._or_as_before():
            self._fitted = self._stream = None
            settings, rule = self._options(seed_of(self.random_state))
            X = self._check(X, y, reset=True)
            there, target, weights = rows_of(X, y, sample_weight)
            classes = classes_of(target)
            frame = self._frame(X, there)
            columns = frame_columns(frame, self._numeric(), self.numeric_rule)
            encoder, ids = new_encoder(frame, columns, self.min_count)
            warn_of_distinct(encoder, len(frame))
            data = all_to_train(encoder, ids, labels_of(target, classes), weights)
            if eval_set is not None:
                data = validate_on(data, *self._read_eval_set(eval_set, encoder, classes))
            elif self.patience is not None:
                data = hold_out(data, self.validation_fraction, settings.seed)
            model, record = self._run(data, rule, settings)
            keep_base_rate(model, data, self.threads)
            self._keep(classes, settings.seed, record["lr"])
            self._keep_record(record)
            self._fitted = Fitted.of_run(model, data, rule, self.best_epoch_)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, in one pass and in their order; new tokens get rows of their own.

        Args:
            X: as for ``fit``
            y: the class of each row
            classes: both classes, needed by the first call unless its ``y`` holds both
            sample_weight: as for ``fit``
        """
        with self._or_as_before():
            known = self.__sklearn_is_fitted__()
            X = self._check(X, y, reset=not known)
            there, target, weights = rows_of(X, y, sample_weight)
            given = target if classes is None else np.asarray(classes)
            found = self.classes_ if known else classes_of(given)
            if classes is not None and not np.array_equal(classes_of(given), found):
                raise DataError(f"classes must stay what they were, {found.tolist()}")
            frame, labels = self._frame(X, there), labels_of(target, found)
            stream = self._stream_for(frame, labels, weights)
            stream.learn(frame, labels, weights)
            self._keep(found, stream.settings.seed, stream.lr)
            self._stream, self._fitted = stream, None
        return self

    def _stream_for(
        self,
        frame: pl.DataFrame,
        labels: NDArray[np.uint8],
        weights: NDArray[np.float32] | None,
    ) -> Stream:
        """Go on from what was learned, or begin without tokens."""
        fitted, known = self._fitted, self.__sklearn_is_fitted__()
        settings, rule = self._options(self._seed if known else seed_of(self.random_state))
        lr = self.lr_ if known and rule.lr is None else rule.lr
        if self._stream is not None:
            assert lr is not None
            self._stream.check_same(rule, settings, self.threads)
            self._stream.lr = lr
            return self._stream
        if fitted is None:
            columns = frame_columns(frame, self._numeric(), self.numeric_rule)
            if lr is None:
                first = all_to_train(*new_encoder(frame, columns, 1), labels, weights)
                lr = find_lr(first, rule, settings, threads=self.threads)
            encoder = empty_encoder(columns)
            fitted = Fitted(build_model(no_samples(encoder), settings), encoder)
        assert lr is not None
        return Stream(fitted, rule, lr, settings, self.threads)

    def _options(self, seed: int) -> tuple[Settings, Rule]:
        params = self.get_params(deep=False)
        check_options(params)
        return settings_of(params, self._kind, seed), rule_of(params)

    def _run(self, data: Dataset, rule: Rule, settings: Settings) -> tuple[FM, dict[str, Any]]:
        listener = _print_epochs if self.verbose else None
        try:
            model, record = fit(data, rule, settings, threads=self.threads, listener=listener)
        except InterruptedFitError:
            raise KeyboardInterrupt from None
        if record["stopped"] == "diverged":
            raise DataError(record["error"])
        return model, record

    # ---- predicting ------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log odds of the second class."""
        check_is_fitted(self)
        frame = self._frame(self._check(X, reset=False))
        if self._stream is not None:
            return self._stream.predict(frame).astype(np.float64)
        return self._learned().predict(frame, self.threads).astype(np.float64)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class."""
        log_odds = self.decision_function(X)
        return np.exp(-np.logaddexp(0.0, np.stack([log_odds, -log_odds], 1)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that is more probable."""
        above: NDArray[np.bool_] = self.decision_function(X) > 0
        return self.classes_[above.astype(np.int64)]

    # ---- what was learned ------------------------------------------------------------------------

    @property
    def model_(self) -> FM:
        """The trained torch module; after ``partial_fit`` a copy of it."""
        return self._learned().model

    @property
    def encoder_(self) -> Encoder:
        """Turns values into ids of the model."""
        return self._learned().encoder

    def vectors(self, column: str) -> Vectors:
        """The vectors of a column's values; where these are numbers, of their bins."""
        return self._learned().vectors(self._place(column))

    def neighbors(self, column: str, value: Any, top: int = 10) -> list[Neighbor]:
        """The values of a column whose vectors have the highest cosine with that of a value."""
        encoder, place = self.encoder_, self._place(column)
        if encoder.columns[place].is_number:
            raise DataError(
                f"column {column!r} holds numbers, and it is bins of them that have vectors: "
                f"see vectors({column!r})"
            )
        name = encoder.called(place, token_text(value))
        return self.vectors(column).nearest([name], top)[0]

    def save(self, path: str | Path) -> None:
        """Write a model folder, which ``load`` and the commands of ``freqsgd`` read."""
        learned, params = self._learned(), self.get_params(deep=False)
        if not isinstance(params["random_state"], Integral | None):
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

    def __getstate__(self) -> dict[str, Any]:
        state = {**super().__getstate__()}
        state.pop("_stream", None)
        if self.__sklearn_is_fitted__():
            state["_fitted"] = replace(self._learned())  # without vectors that were asked for
        return state

    def _learned(self) -> Fitted:
        check_is_fitted(self)
        if self._stream is not None:
            return self._stream.fitted()
        assert self._fitted is not None
        return self._fitted

    def _keep(self, classes: NDArray[Any], seed: int, lr: float) -> None:
        self.classes_, self._seed, self.lr_ = classes, seed, lr

    def _keep_record(self, record: dict[str, Any]) -> None:
        self._record = record
        self.history_: list[dict[str, Any]] = record["epochs"]
        self.n_iter_ = len(self.history_)
        self.best_epoch_: int = record["best_epoch"]

    @contextlib.contextmanager
    def _or_as_before(self) -> Iterator[None]:
        """Whatever goes wrong, leave the estimator with what it had."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    # ---- scikit-learn ----------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None or self._stream is not None

    # ---- what it is given ------------------------------------------------------------------------

    def _check(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """X, whose columns are those that were there before; ``reset`` if they are new."""
        X = check_table(X, self)
        validate_data(self, X, y, reset=reset, skip_check_array=True)
        return X

    def _frame(self, X: Any, there: slice | NDArray[np.int64] = slice(None)) -> pl.DataFrame:
        """The rows of X that are there."""
        return read_frame(X, self._names(), self._numeric())[there]

    def _read_eval_set(
        self, eval_set: Any, encoder: Encoder, classes: NDArray[Any]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
            raise DataError("eval_set must be a pair (X, y)")
        try:
            X, name = self._check(eval_set[0], reset=False), "y of eval_set"
        except ValueError as error:
            raise DataError(f"eval_set: {error}") from error
        target = target_of(eval_set[1], len(X), name)
        return encode_frame(encoder, self._frame(X)), labels_of(target, classes, name)

    def _names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{place}" for place in range(self.n_features_in_)]

    def _numeric(self) -> list[str]:
        """The columns of numbers; once it is fitted they stay what they are."""
        learned = self._stream or self._fitted
        if learned is None:
            return numeric_names(self.numeric, self._names())
        return [column.name for column in learned.columns if column.is_number]

    def _place(self, column: str) -> int:
        check_is_fitted(self)
        names = self._names()
        if column not in names:
            raise DataError(f"there is no column {column!r}: the columns are {', '.join(names)}")
        return names.index(column)


def _print_epochs(progress: Progress, record: dict[str, Any]) -> None:
    """Print a line when an epoch is over."""
    if record["epochs"] and progress.step == 0:
        epoch = record["epochs"][-1]
        auc = "" if epoch["val_auc"] is None else f", validation AUC {epoch['val_auc']:.4f}"
        print(f"epoch {epoch['epoch']}: training loss {epoch['train_loss']:.4f}{auc}")


_CLOSE = 1e-9  # log odds; those of a model are float32
_MOST_STEPS = 100  # enough for halving alone


def keep_base_rate(model: FM, data: Dataset, threads: int | None) -> None:
    """Move the bias until the mean probability of the training rows is their mean label.

    The epoch was chosen by AUC, which does not see the level of the probabilities.
    """
    rows = data.splits.train
    logits = predictor_for(model, threads).predict(data.ids, rows).astype(np.float64)
    weights = None if data.weights is None else data.weights[rows].astype(np.float64)
    with torch.no_grad():
        model.bias.add_(shift_to_base_rate(logits, data.labels[rows], weights))


def shift_to_base_rate(
    logits: NDArray[np.float64], labels: NDArray[np.uint8], weights: NDArray[np.float64] | None
) -> float:
    """What to add to log odds of rows of both classes: Newton's method, between bounds."""
    if not np.isfinite(logits).all():
        raise DataError("log odds of training rows are not finite numbers: try a smaller lr")
    share = np.full(len(logits), 1 / len(logits)) if weights is None else weights / weights.sum()
    positive, negative = share @ labels, share @ (1 - labels)
    level = np.log(positive) - np.log(negative)
    low, high = level - logits.max(), level - logits.min()  # no row is above, none is below it
    shift = min(max(0.0, low), high)
    for _ in range(_MOST_STEPS):
        with np.errstate(over="ignore"):
            p = 1 / (1 + np.exp(-(logits + shift)))
        excess, slope = share @ p - positive, share @ (p * (1 - p))
        low, high = (low, shift) if excess > 0 else (shift, high)
        step = -excess / slope if slope > 0 else np.inf
        if not low < shift + step < high:
            step = (low + high) / 2 - shift
        shift += step
        if abs(step) < _CLOSE:
            break
    return float(shift)
