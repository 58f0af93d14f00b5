"""Vectors of tokens, apart from what trained them: nearest ones, files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from freqsgd.checks import whole_number
from freqsgd.errors import DataError
from freqsgd.files import check_target, read_json
from freqsgd.nn.fm import FM
from freqsgd.recommender.folder import has_tokens, load_dictionary, load_model
from freqsgd.runs.checkpoint import check_folder, holds_words
from freqsgd.tables.encoders.columns import Column
from freqsgd.tables.encoders.encoder import Encoder
from freqsgd.vectors.files import (
    check_rows,
    read_arrays,
    read_word2vec,
    write_arrays,
    write_word2vec,
)
from freqsgd.vectors.names import (
    VECTOR_FORMATS,
    WORD2VEC_FORMATS,
    UnknownTokenError,
    choose,
    close_to,
)
from freqsgd.words.folder import load_words

_AT_ONCE = 1 << 24  # cosines that are held at a time
_NOTHING = 1e-5  # length of a sum of unit vectors that is nothing but rounding
_SUFFIX = ".vectors"


class SavedModel:
    """The model of a folder that ``freqsgd train`` wrote, field by field.

    Attributes:
        model: its weights
        fields: the names of its fields
        encoder: its token dictionaries; a model of generated data has none, and its tokens are
            called by their ids
        columns: how raw columns become tokens
    """

    def __init__(self, folder: Path) -> None:
        check_folder(folder)
        self.model, description = load_model(folder)
        self.fields: list[str] = description["fields"]
        expected = has_tokens(folder) or description.get("tokens")
        self.encoder = load_dictionary(folder, self.model, description) if expected else None
        widths = zip(self.fields, self.model.widths, strict=True)
        self.columns = (
            self.encoder.columns
            if self.encoder
            else tuple(
                Column(name, "bag" if width > 1 else "category", width=width)
                for name, width in widths
            )
        )


def field_rows(model: FM, field: int) -> NDArray[np.float32]:
    """Return a field's part of a model's table: a vector and, last, the linear weight of a row."""
    first, size = sum(model.sizes[:field]), model.sizes[field]
    table: NDArray[np.float32] = model.tokens.weight.detach().numpy()
    return table[first : first + size]


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
        if not all(isinstance(token, str) for token in self.tokens):
            raise TypeError("tokens must be texts")
        # numpy's texts become Python's
        object.__setattr__(self, "tokens", [str.__str__(token) for token in self.tokens])
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
        """Return the vectors of a field of a model that ``freqsgd train`` wrote.

        A model of words has one field, "word", which need not be named.
        """
        folder = Path(folder)
        if holds_words(folder):
            model, words, counts, _ = load_words(folder)
            return cls(words, model.vectors.numpy(), counts, choose("field", field, ["word"]))
        saved = SavedModel(folder)
        name = choose("field", field, saved.fields)
        return cls.of(saved.model, saved.encoder, saved.fields.index(name), name)

    @classmethod
    def of(cls, model: FM, encoder: Encoder | None, field: int, name: str) -> Vectors:
        """Copy a field's vectors; without an encoder its tokens are called by their ids."""
        matrix = field_rows(model, field)[:, : model.dim].copy()
        if encoder is None:
            return cls([str(number) for number in range(len(matrix))], matrix, name=name)
        counts = np.append(-1, encoder.counts()[field].to_numpy())  # rare tokens are not counted
        return cls(encoder.tokens(field), matrix, counts, name)

    @property
    def trained(self) -> NDArray[np.bool_]:
        """Which rows are not all zeros."""
        return np.asarray(self.matrix.any(1))

    def nearest(self, tokens: str | Sequence[str], top: int = 10) -> list[list[Neighbor]]:
        """Return the ``top`` tokens of the highest cosine with each of some tokens, nearest first.

        Raises:
            DataError: a token is not there, or was never trained
        """
        top = whole_number("top", top, 1)
        places = self._places(_listed(tokens))
        block = max(1, _AT_ONCE // max(1, len(self.tokens)))
        found = []
        for first in range(0, len(places), block):
            some = places[first : first + block]
            found += self._search(self._units[1][some], some[:, None], top)
        return found

    def most_similar(
        self, positive: str | Sequence[str] = (), negative: str | Sequence[str] = (), top: int = 10
    ) -> list[Neighbor]:
        """Return the tokens nearest to the sum of some unit vectors less that of others.

        The tokens that are given are left out.

        Raises:
            DataError: a token is not there, or was never trained; or the vectors cancel out
        """
        top = whole_number("top", top, 1)
        added, taken = _listed(positive), _listed(negative)
        if not added and not taken:
            raise DataError("no token was given whose neighbours to look for")
        places = self._places([*added, *taken])
        signs = np.repeat(np.array([1, -1], np.float32), [len(added), len(taken)])
        query = signs @ self._units[1][places]
        length = np.linalg.norm(query)
        if length < _NOTHING:
            raise DataError("nothing is left of the vectors that are added and taken away")
        return self._search((query / length)[None], np.unique(places)[None], top)[0]

    def analogy(self, a: str, b: str, c: str, top: int = 10) -> list[Neighbor]:
        """Return what is to ``c`` as ``b`` is to ``a``: the tokens nearest to b - a + c."""
        return self.most_similar([b, c], [a], top)

    def similarity(self, a: str, b: str) -> float:
        """Return the cosine of two tokens' vectors."""
        one, other = self._units[1][self._places([a, b])]
        return float(np.clip(one @ other, -1, 1))

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._row_of

    def __getitem__(self, tokens: str | Sequence[str]) -> NDArray[np.float32]:
        """Return a copy of a token's vector, or of those of some tokens, a row each."""
        rows = np.array([self._row(token) for token in _listed(tokens)], np.int64)
        found: NDArray[np.float32] = self.matrix[rows]
        return found[0] if isinstance(tokens, str) else found

    def save(self, path: Path | str, format: str = "safetensors", *, force: bool = False) -> None:
        """Write a file: "safetensors", "npz", "word2vec-text" or "word2vec-bin".

        A file that exists is replaced with ``force`` only.
        """
        path = Path(path)
        choose("format", format, VECTOR_FORMATS)
        check_target(path, force=force)
        try:
            check_rows(self.tokens, self.matrix)
        except ValueError as error:
            raise DataError(f"cannot write {path}: {error}") from error
        if format in WORD2VEC_FORMATS:
            trained = self.trained
            tokens = [token for token, kept in zip(self.tokens, trained, strict=True) if kept]
            write_word2vec(path, format, tokens, self.matrix[trained])
        else:
            write_arrays(path, format, self.arrays())

    @classmethod
    def load(cls, path: Path | str, field: str | None = None) -> Vectors:
        """Read a file of any of these formats; of several fields one must be named."""
        fields = cls.load_fields(path)
        return fields[choose("field", field, list(fields))]

    @classmethod
    def load_fields(cls, path: Path | str) -> dict[str, Vectors]:
        """Read all fields of a file, by name; word2vec's formats hold one, named as the file."""
        path = Path(path)
        found = read_arrays(path)
        if found is None:
            return {path.stem: cls(*read_word2vec(path), name=path.stem)}
        names = [unquote(name.removesuffix(_SUFFIX)) for name in found if name.endswith(_SUFFIX)]
        try:
            fields = {
                name: cls(
                    read_json(bytes(found[key(name, "tokens")]), list),
                    found[key(name, "vectors")],
                    found.get(key(name, "counts")),
                    name,
                )
                for name in names
            }
            for vectors in fields.values():
                check_rows(vectors.tokens, vectors.matrix)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path} does not hold vectors and their tokens ({error})") from error
        if not fields:
            raise DataError(f"{path} holds no vectors: expected what freqsgd export writes")
        return fields

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what files hold: numbers, and the tokens as JSON in UTF-8."""
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
        """The rows that are not all zeros, and their vectors at length 1."""
        rows = np.flatnonzero(self.trained)
        units = self.matrix[rows]
        # squares of float32 numbers may leave its range, the squares' sum in float64 does not
        squares = np.einsum("ij,ij->i", units, units, dtype=np.float64)
        units /= np.sqrt(squares)[:, None]
        return rows, units

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {token: row for row, token in enumerate(self.tokens)}

    def _row(self, token: str) -> int:
        if not isinstance(token, str):
            raise TypeError(
                f"a token must be text, got {type(token).__name__}; vectors are not looked up"
            )
        row = self._row_of.get(token)
        if row is None:
            lowered = [token.lower()] if token.lower() in self._row_of else []
            close = dict.fromkeys([*lowered, *close_to(token, self.tokens)])
            alike = f"; spelled alike: {', '.join(map(repr, close))}"
            hint = alike if close else f" among {len(self.tokens):,}"
            raise UnknownTokenError(f"there is no token {token!r}{hint}")
        return row

    def _places(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """Return where tokens are among those that were trained."""
        rows, _ = self._units
        wanted = np.array([self._row(token) for token in tokens], np.int64)
        places = np.searchsorted(rows, wanted)
        for token, row, place in zip(tokens, wanted, places, strict=True):
            if place == len(rows) or rows[place] != row:
                raise DataError(
                    f"the token {token!r} of the field {self.name} was not in the training rows: "
                    "it has no vector, and so no neighbours"
                )
        return places

    def _search(
        self, queries: NDArray[np.float32], without: NDArray[np.int64], top: int
    ) -> list[list[Neighbor]]:
        """Return the trained tokens of the highest cosine with each query, highest first.

        Args:
            queries: a line of length 1 each
            without: for each query the places that are left out
            top: how many tokens
        """
        rows, units = self._units
        cosines = queries @ units.T
        np.put_along_axis(cosines, without, -np.inf, 1)
        first = max(len(rows) - top, without.shape[1])  # place of the last one that is told
        best = np.argpartition(cosines, first - 1, 1)[:, first:]
        order = np.argsort(-np.take_along_axis(cosines, best, 1), 1, kind="stable")
        best = np.take_along_axis(best, order, 1)
        values = np.take_along_axis(cosines, best, 1).clip(-1, 1)
        return [
            [self._neighbor(row, cosine) for row, cosine in zip(line, found, strict=True)]
            for line, found in zip(rows[best].tolist(), values.tolist(), strict=True)
        ]

    def _neighbor(self, row: int, cosine: float) -> Neighbor:
        count = -1 if self.counts is None else int(self.counts[row])
        return Neighbor(self.tokens[row], cosine, None if count < 0 else count)


def key(field: str, what: str) -> str:
    """Return the name of a field's array in a file: plain ASCII, whatever the field is called."""
    return f"{quote(field, safe='')}.{what}"


def _listed(tokens: Any) -> list[Any]:
    """Return one token, or several; what is not text is refused where it is looked up."""
    one = isinstance(tokens, str) or not isinstance(tokens, Iterable)
    return [tokens] if one else list(tokens)
