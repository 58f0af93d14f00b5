"""Factorization machines as scikit-learn estimators."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from freqsgd.errors import DataError, InterruptedFitError
from freqsgd.estimators import fitted as folders
from freqsgd.estimators.fitted import Fitted, keep_base_rate
from freqsgd.estimators.inputs import (
    all_to_train,
    check_table,
    classes_of,
    hold_out,
    labels_of,
    numeric_names,
    options_of,
    rows_of,
    seed_of,
    target_of,
    validate_on,
    warn_of_distinct,
)
from freqsgd.estimators.stream import Stream
from freqsgd.nn.fm import FM
from freqsgd.optimizers import Rule
from freqsgd.recommender.engine import new_model
from freqsgd.recommender.find_lr import find_lr
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.runs.epochs import Progress
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.encoders.encoder import Encoder
from freqsgd.tables.encoders.frames import empty_encoder, encode_frame, frame_columns, new_encoder
from freqsgd.tables.encoders.values import read_frame, token_text
from freqsgd.vectors.vectors import Neighbor, Vectors

__all__ = ["DeepFMClassifier", "FMClassifier"]


class BaseClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A binary classifier of rows of categories."""

    _kind: str  # of the model: "fm" or "deepfm"
    _learned: Fitted | Stream | None = None  # a stream once partial_fit was called

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
            self._learned = None
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
            self._keep(classes, settings.seed, record["lr"], record)
            self._learned = Fitted.of_run(model, data, rule, self.best_epoch_)
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
            self._learned = stream
        return self

    def _stream_for(
        self,
        frame: pl.DataFrame,
        labels: NDArray[np.uint8],
        weights: NDArray[np.float32] | None,
    ) -> Stream:
        """Go on from what was learned, or begin without tokens."""
        learned, known = self._learned, self.__sklearn_is_fitted__()
        settings, rule = self._options(self._seed if known else seed_of(self.random_state))
        lr = self.lr_ if known and rule.lr is None else rule.lr
        if isinstance(learned, Stream):
            assert lr is not None
            learned.check_same(rule, settings, self.threads)
            learned.lr = lr
            return learned
        if learned is None:
            columns = frame_columns(frame, self._numeric(), self.numeric_rule)
            if lr is None:
                first = all_to_train(*new_encoder(frame, columns, 1), labels, weights)
                lr = find_lr(first, rule, settings, threads=self.threads)
            encoder = empty_encoder(columns)
            model = new_model(encoder.fields, settings)
            torch.nn.init.zeros_(model.tokens.weight)
            learned = Fitted(model, encoder)
        assert lr is not None
        return Stream(learned, rule, lr, settings, self.threads)

    def _options(self, seed: int) -> tuple[Settings, Rule]:
        return options_of(self.get_params(deep=False), self._kind, seed)

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
        """Return log odds of the second class."""
        check_is_fitted(self)
        frame = self._frame(self._check(X, reset=False))
        assert self._learned is not None
        return self._learned.predict(frame, self.threads).astype(np.float64)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class."""
        log_odds = self.decision_function(X)
        return np.exp(-np.logaddexp(0.0, np.stack([log_odds, -log_odds], 1)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class that is more probable."""
        above: NDArray[np.bool_] = self.decision_function(X) > 0
        return self.classes_[above.astype(np.int64)]

    # ---- what was learned ------------------------------------------------------------------------

    @property
    def model_(self) -> FM:
        """The trained torch module; after ``partial_fit`` a copy of it."""
        return self._fitted().model

    @property
    def encoder_(self) -> Encoder:
        """Turns values into ids of the model."""
        return self._fitted().encoder

    def vectors(self, column: str) -> Vectors:
        """Return the vectors of a column's values; where these are numbers, of their bins."""
        return self._fitted().vectors(self._place(column))

    def neighbors(self, column: str, value: Any, top: int = 10) -> list[Neighbor]:
        """Return the values of a column whose vectors have the highest cosine with a value's."""
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
        learned, params = self._fitted(), self.get_params(deep=False)
        if not isinstance(params["random_state"], Integral | None):
            params["random_state"] = self._seed  # which was drawn from it
        about = {
            "params": params,
            "lr": self.lr_,
            "seed": self._seed,
            "classes": self.classes_,
            "has_names": hasattr(self, "feature_names_in_"),
        }
        folders.save(Path(path), learned, about, getattr(self, "_record", {"options": {}}))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model folder that ``save`` or ``freqsgd train`` wrote."""
        fitted, about, record = folders.load(Path(path), cls._kind, cls._get_param_names())
        estimator = cls(**about["params"])
        names = [column.name for column in fitted.columns]
        estimator.n_features_in_ = len(names)
        if about["has_names"]:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator._keep(about["classes"], about["seed"], about["lr"], record)
        estimator._learned = fitted
        return estimator

    def __getstate__(self) -> dict[str, Any]:
        state = {**super().__getstate__()}
        if self._learned is not None:
            state["_learned"] = replace(self._fitted())  # without vectors that were asked for
        return state

    def _fitted(self) -> Fitted:
        check_is_fitted(self)
        assert self._learned is not None
        return self._learned.fitted()

    def _keep(
        self, classes: NDArray[Any], seed: int, lr: float, record: dict[str, Any] | None = None
    ) -> None:
        self.classes_, self._seed, self.lr_ = classes, seed, lr
        if record and "epochs" in record:  # that of one pass has none
            self._record = record
            self.history_: list[dict[str, Any]] = record["epochs"]
            self.n_iter_ = len(self.history_)
            self.best_epoch_: int = record["best_epoch"]

    @contextlib.contextmanager
    def _or_as_before(self) -> Iterator[None]:
        """Leave the estimator, whatever goes wrong, with what it had."""
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
        return self._learned is not None

    # ---- what it is given ------------------------------------------------------------------------

    def _check(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """Return X, whose columns are those that were there before; ``reset`` if they are new."""
        X = check_table(X, self)
        validate_data(self, X, y, reset=reset, skip_check_array=True)
        return X

    def _frame(self, X: Any, there: slice | NDArray[np.int64] = slice(None)) -> pl.DataFrame:
        """Return the rows of X that are there."""
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
        """Return the columns of numbers; once it is fitted they stay what they are."""
        if self._learned is None:
            return numeric_names(self.numeric, self._names())
        return [column.name for column in self._learned.columns if column.is_number]

    def _place(self, column: str) -> int:
        check_is_fitted(self)
        names = self._names()
        if column not in names:
            raise DataError(f"there is no column {column!r}: the columns are {', '.join(names)}")
        return names.index(column)


@dataclass(eq=False, repr=False)
class FMClassifier(BaseClassifier):
    """A factorization machine that tells two classes apart by categories.

    The log odds of a row with tokens k are bias + sum_k w_k + sum_{k < l} <v_k, v_l>: each distinct
    value of each column has a weight and a vector of its own.

    Args:
        dim: size of the vectors
        optimizer: "cfsgd", "cfadam", "sgd", "fasgd", "adagrad", "rowwise-adagrad" or "adam"
        lr: learning rate; "auto" finds one (for cfadam it is 0.001)
        weight_decay: strength of the L2 penalty
        weight_decay_power: how it follows frequency; 1 is ordinary L2
        max_lr: cap on the rate of a token, for fasgd and cfsgd
        init_scale: times the xavier-uniform start of the vectors
        lr_decay: "constant", or "linear": to 0 over all epochs
        epochs: at most
        patience: stop after so many epochs without a better validation AUC, and keep the best; None
            to train for all epochs and keep the last
        batch_size: rows of a step
        validation_fraction: rows of each class that are held out, where there is no ``eval_set``
        min_count: tokens seen less often share a row
        numeric: names, or places, of columns of numbers, which are put into bins
        numeric_rule: "log", or "quantiles"
        threads: of the kernels; None for torch's number
        random_state: of start, order of rows, held-out rows and dropout
        verbose: print a line for each epoch

    Attributes:
        classes_: the two classes; probabilities are in their order
        n_features_in_, feature_names_in_: columns, and their names if they have any
        lr_: the learning rate
        n_iter_, best_epoch_, history_: epochs trained, which of them was kept, figures of each
        model_: the torch module
        encoder_: turns values into its ids

    Example:
        >>> import numpy as np
        >>> X = np.array([["ann", "tea"], ["ann", "ale"], ["bob", "tea"], ["bob", "ale"]] * 50)
        >>> y = X[:, 1] == "tea"
        >>> FMClassifier(dim=4, lr=1.0).fit(X, y).predict([["ann", "tea"], ["bob", "ale"]])
        array([ True, False])
    """

    dim: int = 64
    _: KW_ONLY
    optimizer: str = "cfsgd"
    lr: float | str = "auto"
    weight_decay: float = 0.0
    weight_decay_power: float = 1.0
    max_lr: float | None = None
    init_scale: float = 1.0
    lr_decay: str = "constant"
    epochs: int = 60
    patience: int | None = 5
    batch_size: int = 1024
    validation_fraction: float = 0.1
    min_count: int = 1
    numeric: Sequence[str | int] = ()
    numeric_rule: str = "log"
    threads: int | None = None
    random_state: Any = 0
    verbose: bool = False

    _kind = "fm"


@dataclass(eq=False, repr=False)
class DeepFMClassifier(FMClassifier):
    """A factorization machine plus a network over the same vectors.

    Args:
        dim: size of the vectors
        hidden: sizes of the network's hidden layers
        dropout: chance that a hidden value is dropped in training
        optimizer: and all others: as for :class:`FMClassifier`

    Example:
        >>> DeepFMClassifier(dim=8, hidden=(32,)).get_params()["hidden"]
        (32,)
    """

    dim: int = 16
    _: KW_ONLY
    hidden: Sequence[int] = (16, 16)
    dropout: float = 0.2

    _kind = "deepfm"


def _print_epochs(progress: Progress, record: dict[str, Any]) -> None:
    """Print a line when an epoch is over."""
    if record["epochs"] and progress.step == 0:
        epoch = record["epochs"][-1]
        auc = "" if epoch["val_auc"] is None else f", validation AUC {epoch['val_auc']:.4f}"
        print(f"epoch {epoch['epoch']}: training loss {epoch['train_loss']:.4f}{auc}")
