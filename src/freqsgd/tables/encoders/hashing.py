"""The hashed encoder: rows of tables by hashing, without a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.kernels.compiled import compiled, inlined
from freqsgd.tables.encoders.columns import Column, bag_lists, number_bins, tokens
from freqsgd.tables.encoders.encoder import (
    DESCRIPTION,
    Description,
    Encoder,
    FileEncoder,
    refusing_damage,
)
from freqsgd.tables.encoders.samples import Coder
from freqsgd.tables.encoders.tokens import (
    is_integer,
    joined,
    may_be_respelled,
    value_text,
    whole_words,
    word_at,
)
from freqsgd.tables.readers.reader import RawText

VERSION = 3  # 1: 3.0 was hashed by its bytes; 2: True was

_FIELDS, _TEXTS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_MIX_1, _MIX_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_33, _32, _LOW = np.uint64(33), np.uint64(32), np.uint64(0xFFFFFFFF)


@inlined
def _mixed(value: Any) -> Any:
    """Murmur3's finalizer: a permutation of 64 bits in which each depends on all."""
    value = (value ^ (value >> _33)) * _MIX_1
    value = (value ^ (value >> _33)) * _MIX_2
    return value ^ (value >> _33)


@inlined
def _key(field: Any) -> Any:
    return _mixed((np.uint64(field) + np.uint64(1)) * _FIELDS)


@inlined
def _row(value: Any, rows: Any) -> Any:
    """Return the upper 64 bits of the product of a hash of 64 bits and a number below 2^32."""
    return np.int32(((value >> _32) * rows + (((value & _LOW) * rows) >> _32)) >> _32)


@inlined
def _text_hash(key: Any, words: Any, start: Any, stop: Any) -> Any:
    value = _mixed(key ^ (np.uint64(stop - start) * _TEXTS))
    for position in range(start, stop, 8):
        value = _mixed(value ^ word_at(words, position, stop))
    return _mixed(value ^ _TEXTS)


@compiled
def hash_integers(values: Any, missing: Any, field: Any, rows: Any, out: Any) -> None:
    """Find the rows of integers of a field.

    ``missing`` says of each value whether it is missing; it is empty where none is.
    """
    key, size = _key(field), np.uint64(rows)
    nothing = _row(_text_hash(key, np.zeros(1, np.uint64), 0, 0), size)
    for n in range(len(values)):
        out[n] = _row(_mixed(np.uint64(np.int64(values[n])) ^ key), size)
    for n in range(len(missing)):
        if missing[n]:
            out[n] = nothing


@compiled
def hash_rows(words: Any, stops: Any, places: Any, rows: Any, out: Any) -> None:
    """Find the rows of the cells of rows of text.

    ``words`` and ``stops`` hold the text as ``whole_words`` and ``joined`` do. Cell k of a row is a
    token of field ``places[0, k]``, one of ``rows[places[0, k]]`` rows, which is put at
    ``places[1, k]`` in the row of ``out``; cells whose field is negative are passed over.
    """
    data = words.view(np.uint8)
    cells = stops.shape[1]
    keys = np.empty(cells, np.uint64)
    for cell in range(cells):
        keys[cell] = _key(max(places[0, cell], 0))
    start = np.int64(0)
    for row in range(stops.shape[0]):
        for cell in range(cells):
            stop = np.int64(stops[row, cell])
            field = places[0, cell]
            if field >= 0:
                begin, end = start, stop
                if may_be_respelled(data, start, stop):
                    begin, end = value_text(data, start, stop)
                integer, value = is_integer(data, begin, end)
                if integer:
                    value = _mixed(value ^ keys[cell])
                else:
                    value = _text_hash(keys[cell], words, begin, end)
                out[row, places[1, cell]] = _row(value, np.uint64(rows[field]))
            start = stop + np.int64(1)


_TILE = 1 << 15  # rows whose ids stay in the cache while all columns are hashed


class HashCoder(Coder):
    """Hashes the tokens of each field to rows of its table.

    Args:
        columns: the fields of a sample
        rows: of the table of each field
    """

    def __init__(self, columns: Sequence[Column], rows: Sequence[int]) -> None:
        super().__init__(columns, "category", tile=_TILE)
        self.rows = np.array(rows, np.int64)
        self._longest: dict[str, int] = {}  # lists of bags that are cut off

    def messages(self) -> list[str]:
        """Return what to warn of, once all rows are read: lists that were cut off."""
        return [
            f"column {column.name!r} has a list of {self._longest[column.name]:,} tokens; those "
            f"beyond the first {column.width} of a list, the most at the start of the data, are "
            "cut off"
            for column in self.columns
            if column.name in self._longest
        ]

    def _code_text(
        self, text: RawText, places: NDArray[np.int64], codes: NDArray[np.int32]
    ) -> None:
        hash_rows(whole_words(text.data), text.stops, places, self.rows, codes)

    def _values(self, column: Column, frame: pl.DataFrame) -> pl.Expr:
        """Return what is hashed: numbers as they are, anything else as text."""
        dtype = frame.schema[column.name]
        if column.is_number:
            return number_bins(column).cast(pl.Int64)
        if column.kind == "bag":
            self._note_long_lists(frame[column.name], column)
            return bag_lists(column, dtype)
        return pl.col(column.name) if dtype.is_numeric() else tokens(column, dtype)

    def _code(self, values: pl.Series, field: int) -> NDArray[np.int32]:
        ids = np.empty((len(values), 1), np.int32)
        if integers := _integers(values):
            hash_integers(*integers, field, self.rows[field], ids[:, 0])
        elif len(values):
            data, stops = joined(values.cast(pl.String).fill_null(""))
            place = np.array([[field], [0]])
            hash_rows(whole_words(data), stops.reshape(-1, 1), place, self.rows, ids)
        return ids[:, 0]

    def _note_long_lists(self, lists: pl.Series, column: Column) -> None:
        longest = lists.list.len().max() if isinstance(lists.dtype, pl.List) else None
        if isinstance(longest, int) and longest > column.width:
            self._longest[column.name] = max(longest, self._longest.get(column.name, 0))


def _integers(values: pl.Series) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
    """Return integers, and which are missing; None unless all are integers of 64 bits.

    The arrays are read-only, so that they are of one type.
    """
    if not values.dtype.is_integer():
        return None
    missing = values.is_null().to_numpy() if values.null_count() else np.empty(0, np.bool_)
    if values.dtype != pl.Int32:
        try:
            values = values.cast(pl.Int64)
        except pl.exceptions.InvalidOperationError:  # a value is too large
            return None
    numbers = (values.fill_null(0) if len(missing) else values).to_numpy()
    for array in (numbers, missing):
        array.setflags(write=False)
    return numbers, missing


class HashEncoder(FileEncoder):
    """Hashes the tokens of each field to a number of rows; what they were called is not kept."""

    def coder(self, place: str = "") -> HashCoder:
        """Return what turns the columns of a block into ids; no token is unknown."""
        return HashCoder(self.columns, [field.size for field in self.fields])

    @property
    def fingerprint(self) -> str:
        """Tells it from others."""
        return repr(("hash", VERSION, self.kind, self.columns, self.fields))

    def save(self, folder: Path) -> str:
        """Write ``encoder.json`` into the folder; return its checksum."""
        rows = [field.size for field in self.fields]
        more = {"encoding": "hash", "version": VERSION, "rows": rows}
        return self.write_description(folder, more)

    @classmethod
    def load(cls, folder: Path) -> HashEncoder:
        """Read what ``save`` wrote.

        Raises:
            DataError: it is not there, is damaged, or tokens were hashed in another way
        """
        found = Description.read(folder)
        with refusing_damage(folder / DESCRIPTION):
            if found.values["version"] != VERSION:
                raise DataError(
                    f"{folder / DESCRIPTION}: tokens were hashed by version "
                    f"{found.values['version']!r}, this version of freqsgd hashes by {VERSION}; "
                    "use the version that wrote it, or train again"
                )
            return cls(found.columns, found.values["rows"], found.kind, found.dialect)


def open_encoder(folder: Path) -> Encoder | HashEncoder:
    """Load what turns raw columns into the ids of a model, of either kind."""
    hashed = Description.read(folder).values.get("encoding") == "hash"
    return HashEncoder.load(folder) if hashed else Encoder.load(folder)
