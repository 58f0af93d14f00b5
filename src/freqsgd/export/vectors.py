"""Vectors of tokens, apart from what trained them: nearest ones, files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.data.encoder import Encoder
from freqsgd.export import arrays, word2vec
from freqsgd.export.choosing import choose, close_to
from freqsgd.export.saved_model import SavedModel, field_rows
from freqsgd.nn.fm import FM

__all__ = ["Neighbor", "Vectors", "key"]

_AT_ONCE = 1 << 24  # cosines that are held at a time
_SUFFIX = ".vectors"


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A token near another one."""

    token: str
    cosine: float
    count: int | None  # how often it was seen; None: not known


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of one field's tokens.

    Args:
        tokens: the text of each row
        matrix: a row per token; a row of zeros was never trained, and is nobody's neighbour
        counts: how often each token was seen, -1 where that is not known
        name: of the field

    Example:
        >>> rows = np.array([[1, 0], [2, 1], [0, 3]], np.float32)
        >>> vectors = Vectors(["a", "b", "c"], rows)
        >>> [neighbor.token for neighbor in vectors.nearest(["a"])[0]]
        ['b', 'c']
    """

    tokens: Sequence[str]
    matrix: NDArray[np.float32]
    counts: NDArray[np.int64] | None = None
    name: str = "token"

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.dtype != np.float32:
            raise ValueError(
                "matrix must hold float32 numbers in two dimensions, got "
                f"{self.matrix.dtype} {self.matrix.shape}"
            )
        counts = len(self.tokens) if self.counts is None else len(self.counts)
        if not len(self.matrix) == len(self.tokens) == counts:
            raise ValueError(
                f"{len(self.matrix)} vectors, {len(self.tokens)} tokens and {counts} counts do not "
                "belong together"
            )

    @classmethod
    def of_model(cls, folder: Path | str, field: str | None = None) -> Vectors:
        """The vectors of a field of a model that ``freqsgd train`` wrote."""
        return cls.of_saved(SavedModel(Path(folder)), field)

    @classmethod
    def of_saved(cls, saved: SavedModel, field: str | None = None) -> Vectors:
        """The vectors of a field of a model that has been read."""
        name = choose("field", field, saved.fields)
        return cls.of(saved.model, saved.encoder, saved.fields.index(name), name)

    @classmethod
    def of(cls, model: FM, encoder: Encoder | None, field: int, name: str) -> Vectors:
        """A copy of a field's vectors; without an encoder its tokens are called by their ids."""
        matrix = field_rows(model, field)[:, : model.dim].copy()
        if encoder is None:
            return cls([str(number) for number in range(len(matrix))], matrix, name=name)
        counts = np.append(-1, encoder.counts()[field].to_numpy())  # rare tokens are not counted
        return cls(encoder.tokens(field), matrix, counts, name)

    @property
    def trained(self) -> NDArray[np.bool_]:
        """Which rows are not all zeros."""
        return np.asarray(self.matrix.any(1))

    def nearest(self, tokens: Sequence[str], top: int = 10) -> list[list[Neighbor]]:
        """The ``top`` tokens of the highest cosine with each of some tokens, nearest first.

        Raises:
            DataError: a token is not there, or was never trained
        """
        if top < 1:
            raise ValueError(f"top must be at least 1, got {top}")
        rows, units = self._units
        places = np.array([self._place(token) for token in tokens], np.int64)
        block = max(1, _AT_ONCE // len(self.tokens)) if tokens else 1
        found = []
        for first in range(0, len(places), block):
            some = places[first : first + block]
            cosines = units[some] @ units.T
            cosines[np.arange(len(some)), some] = -np.inf  # nobody is their own neighbour
            best = _highest(cosines, min(top, len(rows) - 1))
            of_best = np.take_along_axis(cosines, best, 1).clip(-1, 1)
            found += [
                [self._neighbor(row, c) for row, c in zip(line, values, strict=True)]
                for line, values in zip(rows[best].tolist(), of_best.tolist(), strict=True)
            ]
        return found

    def save(self, path: Path | str, format: str = "safetensors") -> None:
        """Write a file: "safetensors", "npz" or "word2vec-text"."""
        path = Path(path)
        if format == "word2vec-text":
            trained = self.trained
            tokens = [token for token, kept in zip(self.tokens, trained, strict=True) if kept]
            word2vec.write(path, tokens, self.matrix[trained])
        else:
            arrays.write(path, format, self.arrays())

    @classmethod
    def load(cls, path: Path | str, field: str | None = None) -> Vectors:
        """Read a file of any of these formats; of several fields one must be named."""
        path = Path(path)
        found = arrays.read(path)
        if found is None:
            tokens, matrix = word2vec.read(path)
            return cls(tokens, matrix, name=field or path.stem)
        names = [unquote(name.removesuffix(_SUFFIX)) for name in found if name.endswith(_SUFFIX)]
        name = choose("field", field, names)
        try:
            tokens = json.loads(bytes(found[key(name, "tokens")]))
            return cls(tokens, found[key(name, "vectors")], found.get(key(name, "counts")), name)
        except (KeyError, ValueError) as error:
            raise DataError(f"{path} does not hold vectors and their tokens ({error})") from error

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What files hold: numbers, and the tokens as JSON in UTF-8."""
        text = bytearray(json.dumps(list(self.tokens)).encode())
        named: dict[str, NDArray[Any]] = {
            key(self.name, "vectors"): np.ascontiguousarray(self.matrix),
            key(self.name, "tokens"): np.frombuffer(text, np.uint8),
        }
        if self.counts is not None:
            named[key(self.name, "counts")] = self.counts
        return named

    @cached_property
    def _units(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows that were trained, and their vectors at length 1."""
        rows = np.flatnonzero(self.trained)
        chosen = self.matrix[rows]
        # squares of float32 numbers may leave its range, the squares' sum in float64 does not
        lengths = np.sqrt(np.einsum("ij,ij->i", chosen, chosen, dtype=np.float64))
        chosen /= lengths[:, None]
        return rows, chosen

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {token: row for row, token in enumerate(self.tokens)}

    def _place(self, token: str) -> int:
        """Where a token is among those that were trained."""
        row = self._row_of.get(token)
        if row is None:
            close = ", ".join(map(repr, close_to(token, self.tokens)))
            hint = f"; spelled alike: {close}" if close else f" among {len(self.tokens):,}"
            raise DataError(f"the field {self.name} has no token {token!r}{hint}")
        rows, _ = self._units
        place = int(np.searchsorted(rows, row))
        if place == len(rows) or rows[place] != row:
            raise DataError(
                f"the token {token!r} of the field {self.name} was not in the training rows: it "
                "has no vector, and so no neighbours"
            )
        return place

    def _neighbor(self, row: int, cosine: float) -> Neighbor:
        count = -1 if self.counts is None else int(self.counts[row])
        return Neighbor(self.tokens[row], cosine, None if count < 0 else count)


def key(field: str, what: str) -> str:
    """The name of a field's array in a file: plain ASCII, whatever the field is called."""
    return f"{quote(field, safe='')}.{what}"


def _highest(values: NDArray[np.float32], top: int) -> NDArray[np.int64]:
    """Where the highest values of each line are, highest first."""
    size = values.shape[1]
    best = np.argpartition(values, size - top - 1, 1)[:, size - top :]
    order = np.argsort(-np.take_along_axis(values, best, 1), 1, kind="stable")
    return np.take_along_axis(best, order, 1)
