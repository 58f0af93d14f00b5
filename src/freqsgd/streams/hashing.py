"""Rows of tables by hashing, compiled.

A token is a pair of a field and a value. An integer is hashed as that number, and so is a text that
writes an integer of 64 bits, as ``3`` or as the floats ``3.0`` and ``3.00``: so it makes no
difference whether a file holds text or numbers, nor whether pandas made floats of integers beside a
missing value. Any other text (``3.``, ``3.5``, ``3e0``, ``03``) is hashed by its bytes; a missing
value is the empty text. The upper bits of hash times rows are the row.

Saved models depend on every number here: ``VERSION`` must rise when one changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from freqsgd.data.compiled import called, compiled, inlined
from freqsgd.data.hashing import word_at

__all__ = ["VERSION", "hash_integers", "hash_rows"]

VERSION = 2  # 1: 3.0 was hashed by its bytes

_FIELDS, _TEXTS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_MIX_1, _MIX_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_33, _32, _LOW = np.uint64(33), np.uint64(32), np.uint64(0xFFFFFFFF)
_TEN, _LARGEST = np.uint64(10), np.uint64(2**63 - 1)
_MOST_DIGITS = 19  # of an integer of 64 bits
_ZERO, _NINE, _MINUS, _POINT = ord("0"), ord("9"), ord("-"), ord(".")


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
    """The upper 64 bits of the product of a hash of 64 bits and a number below 2^32."""
    return np.int32(((value >> _32) * rows + (((value & _LOW) * rows) >> _32)) >> _32)


@inlined
def _text_hash(key: Any, words: Any, start: Any, stop: Any) -> Any:
    value = _mixed(key ^ (np.uint64(stop - start) * _TEXTS))
    for position in range(start, stop, 8):
        value = _mixed(value ^ word_at(words, position, stop))
    return _mixed(value ^ _TEXTS)


@called
def _is_integer(data: Any, start: Any, stop: Any) -> Any:
    """Whether the bytes are an integer of 64 bits as ``str`` writes it, and which."""
    negative = data[start] == _MINUS if stop > start else False
    first = start + 1 if negative else start
    digits = stop - first
    if digits < 1 or digits > _MOST_DIGITS:
        return False, np.uint64(0)
    if data[first] == _ZERO and (digits > 1 or negative):
        return False, np.uint64(0)
    value = np.uint64(0)
    for position in range(first, stop):
        byte = data[position]
        if byte < _ZERO or byte > _NINE:
            return False, value
        value = value * _TEN + np.uint64(byte - _ZERO)
    if value > _LARGEST and not (negative and value == _LARGEST + np.uint64(1)):
        return False, value
    return True, ~value + np.uint64(1) if negative else value


@inlined
def _ends_as_float(data: Any, start: Any, stop: Any) -> Any:
    """Whether the bytes may be a whole number as a float: most texts are told by two bytes."""
    if stop - start < 3 or data[stop - 1] != _ZERO:
        return False
    return data[stop - 2] == _POINT or data[stop - 2] == _ZERO


@called
def _is_whole_float(data: Any, start: Any, stop: Any) -> Any:
    """Whether bytes with a zero at the end are an integer or -0, a point and zeros; and which."""
    point = stop - 1
    while point > start and data[point] == _ZERO:
        point -= 1
    if data[point] != _POINT:
        return False, np.uint64(0)
    if point - start == 2 and data[start] == _MINUS and data[start + 1] == _ZERO:
        return True, np.uint64(0)
    return _is_integer(data, start, point)


@compiled
def hash_integers(values: Any, missing: Any, field: Any, rows: Any, out: Any) -> None:
    """Rows of integers of a field.

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
    """Rows of the cells of rows of text.

    ``words`` and ``stops`` hold the text as ``data.packing`` lays it out. Cell k of a row is a
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
                integer, value = _is_integer(data, start, stop)
                if not integer and _ends_as_float(data, start, stop):
                    integer, value = _is_whole_float(data, start, stop)
                if integer:
                    value = _mixed(value ^ keys[cell])
                else:
                    value = _text_hash(keys[cell], words, start, stop)
                out[row, places[1, cell]] = _row(value, np.uint64(rows[field]))
            start = stop + np.int64(1)
