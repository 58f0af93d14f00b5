"""What the theory promises the tokens of real data, by how often they occur."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Promise", "TokenPromise", "field_improvements", "promises"]


@dataclass(frozen=True)
class TokenPromise:
    """Improvement of FA-SGD's upper bound over that of SGD for one token."""

    rank: int  # 1 is the most frequent token
    count: int
    p: float  # occurrences per sample; of a bag's token it may exceed 1
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


def field_improvements(counts: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float64]]:
    """SGD's bound over FA-SGD's, at equal T, for every token of every field.

    The bounds of Theorems 1 (FA-SGD) and 2 (SGD) are sums over the tokens of all fields. With
    p_k = occurrences of token k per sample, as the rate law has it, and equal sigma_k they leave,
    for large T,

        SGD / FA-SGD = sqrt(sum_l p_l^2 / (p_k sum_l p_l))

    which is below 1 for tokens that are more frequent than an average occurrence's. It does not
    depend on p's scale, so that counts will do, also of bags, where p may exceed 1.

    A field whose samples all have the same token is a bias and no choice between tokens: it is
    left out of the sums, unless all fields are such.

    Args:
        counts: of the tokens of each field; tokens that never occur have an improvement of 1

    Example:
        >>> [improvement.round(1).tolist() for improvement in field_improvements([[90, 10], [100]])]
        [[1.0, 2.9], [0.9]]
    """
    fields = [np.asarray(field, np.float64) for field in counts]
    several = [field for field in fields if np.count_nonzero(field) > 1] or fields
    occurrences = sum(float(field.sum()) for field in several)
    average = sum(float(field @ field) for field in several) / (occurrences or 1.0) or 1.0
    return [np.sqrt(average / np.where(field > 0.0, field, average)) for field in fields]


def promises(counts: Sequence[NDArray[np.int64]], samples: int) -> tuple[list[Promise], Promise]:
    """What is promised to the tokens of each field, and to those of all fields together.

    Args:
        counts: of the tokens of each field, falling
        samples: in which they were counted
    """
    errors = field_improvements(counts)
    whole, error = np.concatenate(counts), np.concatenate(errors)
    order = np.argsort(-whole, kind="stable")
    of_fields = [_promise(*field, samples) for field in zip(counts, errors, strict=True)]
    return of_fields, _promise(whole[order], error[order], samples)


def _promise(counts: NDArray[np.int64], error: NDArray[np.float64], samples: int) -> Promise:
    def at(place: int) -> TokenPromise:
        count, improvement = int(counts[place]), float(error[place])
        return TokenPromise(place + 1, count, count / samples, improvement, improvement**2)

    return Promise(at(len(counts) // 2), at(9 * len(counts) // 10))
