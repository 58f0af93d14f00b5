"""Check the numbers of the theory, and load scipy."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freqsgd.errors import DataError

Array = NDArray[np.float64]


def frequencies(p: ArrayLike) -> Array:
    """Return tokens' frequencies as an array: every one in (0, 1]."""
    values = np.asarray(p, np.float64)
    if values.ndim != 1 or not values.size:
        raise DataError(f"p must be a list of frequencies, one per token, got shape {values.shape}")
    wrong = np.flatnonzero(~((values > 0.0) & (values <= 1.0)))
    if wrong.size:
        raise DataError(
            f"p must lie in (0, 1], got {values[wrong[0]]:g} for token {wrong[0]}: "
            "leave out tokens that never occur"
        )
    return values


def per_token(name: str, x: ArrayLike, p: Array) -> Array:
    """Return numbers >= 0, one for each token of ``p``; a single number stands for all."""
    values = np.asarray(x, np.float64)
    if values.ndim and values.shape != p.shape:
        raise DataError(f"{name} must hold {p.size} numbers, one per token, got {values.shape}")
    if not np.all((values >= 0.0) & (values < math.inf)):
        raise DataError(f"{name} must be finite numbers >= 0")
    return np.broadcast_to(values, p.shape)


def positive(**numbers: float) -> None:
    """Refuse numbers that are not finite and above 0."""
    for name, value in numbers.items():
        if not 0.0 < value < math.inf:
            raise DataError(f"{name} must be a finite number > 0, got {value:g}")


def scipy(module: str) -> Any:
    """Load a module of scipy."""
    try:
        return importlib.import_module(f"scipy.{module}")
    except ImportError as error:
        raise DataError("this needs scipy: pip install 'freqsgd[cli]'") from error
