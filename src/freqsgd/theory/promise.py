"""What the theory promises the tokens of real data, by how often they occur."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.theory.improvement import error_improvement

__all__ = ["Promise", "TokenPromise", "promises"]


@dataclass(frozen=True)
class TokenPromise:
    """Improvement of FA-SGD's upper bound over that of SGD for one token."""

    rank: int  # 1 is the most frequent token
    count: int
    p: float  # per sample
    error: float  # SGD's bound over FA-SGD's after as many iterations
    iterations: float  # SGD's iterations over FA-SGD's until the bounds are equal: error squared


@dataclass(frozen=True)
class Promise:
    """The tokens that half, and nine tenths, of the tokens are more frequent than."""

    median: TokenPromise
    p90: TokenPromise

    def as_json(self) -> dict[str, Any]:
        """As ``inspect.json`` has it."""
        return asdict(self)


def promises(counts: Sequence[NDArray[np.int64]], samples: int) -> tuple[list[Promise], Promise]:
    """What is promised to the tokens of each field, and to those of all fields together.

    The bounds of Theorems 1 (FA-SGD) and 2 (SGD) are sums over the tokens of all fields, with
    p_k = count_k / samples and equal sigma_k; for large T they leave, at equal T,

        SGD / FA-SGD = sqrt(sum_l p_l^2 / (p_k sum_l p_l))

    which is below 1 for tokens that are more frequent than an average occurrence's.

    Args:
        counts: of the tokens of each field, falling
        samples: in which they were counted; a token that is in a sample twice has p = 1 at most
    """
    whole = np.concatenate(counts)
    p = np.minimum(whole / samples, 1.0)
    error = error_improvement(p)
    stops = np.cumsum([len(field) for field in counts])[:-1]
    of_fields = zip(counts, np.split(p, stops), np.split(error, stops), strict=True)
    order = np.argsort(-whole, kind="stable")
    return [_promise(*field) for field in of_fields], _promise(whole[order], p[order], error[order])


def _promise(
    counts: NDArray[np.int64], p: NDArray[np.float64], error: NDArray[np.float64]
) -> Promise:
    def at(place: int) -> TokenPromise:
        improvement = float(error[place])
        return TokenPromise(
            place + 1, int(counts[place]), float(p[place]), improvement, improvement**2
        )

    return Promise(at(len(counts) // 2), at(9 * len(counts) // 10))
