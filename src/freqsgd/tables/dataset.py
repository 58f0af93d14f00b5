"""What training takes: samples of encoded tokens, and which of them are for what."""

from __future__ import annotations

import hashlib
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.tables.fields import ABSENT, Field, Splits

if TYPE_CHECKING:
    from freqsgd.tables.encoder import Encoder


@dataclass(frozen=True)
class Dataset:
    """Encoded samples. Arrays may be memory-mapped and are read-only."""

    name: str
    fields: tuple[Field, ...]
    ids: NDArray[np.int32]  # (rows, sum of widths), C order; ids of each field start at 0
    labels: NDArray[np.uint8]  # (rows,), 0 or 1
    splits: Splits
    encoder: Encoder | None = None  # turns raw columns into ids; None: there are no raw columns
    _: KW_ONLY
    probabilities: NDArray[np.float32] | None = None  # of generated labels: no model can beat them
    weights: NDArray[np.float32] | None = None  # (rows,): times the loss of a row in training

    @property
    def rows(self) -> int:
        """Number of samples."""
        return len(self.labels)

    @property
    def tokens(self) -> int:
        """Number of ids of all fields."""
        return sum(field.size for field in self.fields)

    @cached_property
    def token_counts(self) -> NDArray[np.int64]:
        """Count how often each token occurs in the training rows, field after field."""
        counts, column = [], 0
        for field in self.fields:
            ids = self.ids[self.splits.train, column : column + field.width].reshape(-1)
            counts.append(np.bincount(ids[ids >= 0], minlength=field.size))
            lowest = 0 if field.width == 1 else ABSENT
            if len(counts[-1]) > field.size or ids.min(initial=0) < lowest:
                raise DataError(f"{self.name} has ids that are out of range for field {field.name}")
            column += field.width
        return np.concatenate(counts)

    @cached_property
    def fingerprint(self) -> str:
        """A digest that tells it from other data, other labels and other training rows."""
        digest = hashlib.blake2b(repr(self.fields).encode(), digest_size=16)
        weights = () if self.weights is None else (self.weights,)
        some = self.ids[:: 1 + self.rows // 100_000]
        for array in (self.splits.train, self.labels, some, *weights):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def summary(self) -> dict[str, Any]:
        """Return what ``results.json`` says of it."""
        return {
            "name": self.name,
            "rows": self.rows,
            "fields": len(self.fields),
            "tokens": self.tokens,
            "positive_rate": float(self.labels.mean()),
        }
