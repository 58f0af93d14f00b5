"""What the classifiers have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from freqsgd.data.conversion import read_frame
from freqsgd.data.dataset import DataError, Dataset
from freqsgd.data.encoder import Encoder
from freqsgd.data.frames import empty_encoder, encode_frame, frame_columns, new_encoder
from freqsgd.estimators.checks import check_table, classes_of, labels_of, weights_of
from freqsgd.estimators.fitted import Fitted
from freqsgd.estimators.learned import LearnedEstimator
from freqsgd.estimators.options import check_options, numeric_names, rule_of, seed_of, settings_of
from freqsgd.estimators.samples import (
    all_to_train,
    hold_out,
    no_samples,
    validate_on,
    warn_of_distinct,
)
from freqsgd.estimators.stream import Stream
from freqsgd.nn.fm import FM
from freqsgd.training.find_lr import find_lr
from freqsgd.training.fit import InterruptedFitError, Progress, fit
from freqsgd.training.prepare import build_model
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings

__all__ = ["BaseClassifier"]


class BaseClassifier(ClassifierMixin, LearnedEstimator):  # type: ignore[misc]
    """A binary classifier of rows of categories."""

    # ---- learning --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, eval_set: Any = None, sample_weight: Any = None) -> Self:
        """Train until the validation AUC stops rising, and keep the best epoch's model.

        Args:
            X: a pandas or polars frame, or an array, of categories; lists in a frame are bags
            y: the class of each row; there are two
            eval_set: (X, y) to validate on, instead of a part of the rows
            sample_weight: times the loss of each row
        """
        settings, rule = self._options(seed_of(self.random_state))
        self._fitted = self._stream = None
        X = self._check(X, y, reset=True)
        classes = classes_of(y)
        labels = labels_of(y, classes, len(X))
        weights = weights_of(sample_weight, len(X))
        if weights is not None and np.ptp(labels[weights > 0]) == 0:
            raise DataError("the rows whose sample_weight is not 0 are all of one class")
        frame = self._frame(X)
        columns = frame_columns(frame, self._numeric(), self.numeric_rule)
        encoder, ids = new_encoder(frame, columns, self.min_count)
        warn_of_distinct(encoder, len(frame))
        data = all_to_train(encoder, ids, labels, weights)
        if eval_set is not None:
            data = validate_on(data, *self._read_eval_set(eval_set, encoder, classes))
        elif self.patience is not None:
            data = hold_out(data, self.validation_fraction, settings.seed)
        model, record = self._run(data, rule, settings)
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
            sample_weight: times the loss of each row
        """
        known = self.__sklearn_is_fitted__()
        X = self._check(X, y, reset=not known)
        found = classes_of(y if classes is None else classes) if not known else self.classes_
        if classes is not None and not np.array_equal(classes_of(classes), found):
            raise DataError(f"classes must stay what they were, {found.tolist()}")
        labels = labels_of(y, found, len(X))
        weights = weights_of(sample_weight, len(X))
        frame = self._frame(X)
        stream = self._stream or self._open_stream(frame, labels, weights)
        stream.learn(frame, labels, weights)
        self._stream, self._fitted = stream, None
        self._keep(found, stream.settings.seed, stream.lr)
        return self

    def _open_stream(
        self,
        frame: pl.DataFrame,
        labels: NDArray[np.uint8],
        weights: NDArray[np.float32] | None,
    ) -> Stream:
        """Go on from what ``fit`` left, or begin without tokens."""
        fitted = self._fitted
        settings, rule = self._options(self._seed if fitted else seed_of(self.random_state))
        if fitted:
            rule = replace(rule, lr=self.lr_)
        else:
            columns = frame_columns(frame, self._numeric(), self.numeric_rule)
            if rule.lr is None:
                first = all_to_train(*new_encoder(frame, columns, 1), labels, weights)
                rule = replace(rule, lr=find_lr(first, rule, settings, threads=self.threads))
            encoder = empty_encoder(columns)
            fitted = Fitted(build_model(no_samples(encoder), settings), encoder)
        return Stream(fitted, rule, settings, self.threads)

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
        assert self._fitted is not None
        return self._fitted.predict(frame, self.threads).astype(np.float64)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class."""
        log_odds = self.decision_function(X)
        return np.exp(-np.logaddexp(0.0, np.stack([log_odds, -log_odds], 1)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that is more probable."""
        above: NDArray[np.bool_] = self.decision_function(X) > 0
        return self.classes_[above.astype(np.int64)]

    # ---- scikit-learn ----------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = False
        return tags

    # ---- what it is given ------------------------------------------------------------------------

    def _check(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """X, whose columns are those that were there before; ``reset`` if they are new."""
        X = check_table(X, self)
        validate_data(self, X, y, reset=reset, skip_check_array=True)
        return X

    def _frame(self, X: Any) -> pl.DataFrame:
        return read_frame(X, self._names(), self._numeric())

    def _read_eval_set(
        self, eval_set: Any, encoder: Encoder, classes: NDArray[Any]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
            raise DataError("eval_set must be a pair (X, y)")
        X, y = eval_set
        frame = self._frame(self._check(X, reset=False))
        return encode_frame(encoder, frame), labels_of(y, classes, len(frame), "y of eval_set")

    def _numeric(self) -> list[str]:
        return numeric_names(self.numeric, self._names())


def _print_epochs(progress: Progress, record: dict[str, Any]) -> None:
    """Print a line when an epoch is over."""
    if record["epochs"] and progress.step == 0:
        epoch = record["epochs"][-1]
        auc = "" if epoch["val_auc"] is None else f", validation AUC {epoch['val_auc']:.4f}"
        print(f"epoch {epoch['epoch']}: training loss {epoch['train_loss']:.4f}{auc}")
