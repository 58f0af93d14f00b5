"""Factorization machines as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from freqsgd.estimators.base import BaseClassifier

__all__ = ["DeepFMClassifier", "FMClassifier"]


class FMClassifier(BaseClassifier):
    """A factorization machine that tells two classes apart by categories.

    The log odds of a row with tokens k are bias + sum_k w_k + sum_{k < l} <v_k, v_l>: each distinct
    value of each column has a weight and a vector of its own.

    Args:
        dim: size of the vectors
        optimizer: "cfsgd", "sgd", "fasgd", "adagrad", "rowwise-adagrad" or "adam"
        lr: learning rate; "auto" finds one
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

    _kind = "fm"

    def __init__(
        self,
        dim: int = 64,
        *,
        optimizer: str = "cfsgd",
        lr: float | str = "auto",
        weight_decay: float = 0.0,
        weight_decay_power: float = 1.0,
        max_lr: float | None = None,
        init_scale: float = 1.0,
        lr_decay: str = "constant",
        epochs: int = 60,
        patience: int | None = 5,
        batch_size: int = 1024,
        validation_fraction: float = 0.1,
        min_count: int = 1,
        numeric: Sequence[str | int] = (),
        numeric_rule: str = "log",
        threads: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.dim = dim
        self.optimizer = optimizer
        self.lr = lr
        self.weight_decay = weight_decay
        self.weight_decay_power = weight_decay_power
        self.max_lr = max_lr
        self.init_scale = init_scale
        self.lr_decay = lr_decay
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.min_count = min_count
        self.numeric = numeric
        self.numeric_rule = numeric_rule
        self.threads = threads
        self.random_state = random_state
        self.verbose = verbose


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

    _kind = "deepfm"

    def __init__(
        self,
        dim: int = 16,
        *,
        hidden: Sequence[int] = (16, 16),
        dropout: float = 0.2,
        optimizer: str = "cfsgd",
        lr: float | str = "auto",
        weight_decay: float = 0.0,
        weight_decay_power: float = 1.0,
        max_lr: float | None = None,
        init_scale: float = 1.0,
        lr_decay: str = "constant",
        epochs: int = 60,
        patience: int | None = 5,
        batch_size: int = 1024,
        validation_fraction: float = 0.1,
        min_count: int = 1,
        numeric: Sequence[str | int] = (),
        numeric_rule: str = "log",
        threads: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            dim,
            optimizer=optimizer,
            lr=lr,
            weight_decay=weight_decay,
            weight_decay_power=weight_decay_power,
            max_lr=max_lr,
            init_scale=init_scale,
            lr_decay=lr_decay,
            epochs=epochs,
            patience=patience,
            batch_size=batch_size,
            validation_fraction=validation_fraction,
            min_count=min_count,
            numeric=numeric,
            numeric_rule=numeric_rule,
            threads=threads,
            random_state=random_state,
            verbose=verbose,
        )
        self.hidden = hidden
        self.dropout = dropout
