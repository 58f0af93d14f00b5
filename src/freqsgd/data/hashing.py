"""A table of tokens, compiled: gives every distinct pair of field and text a code.

Texts are packed into words of 8 bytes. ``arena`` holds a record for each token: its key (length and
field), its code, its words; ``positions`` says by code where they are. ``slots`` is an open hash
table: an entry has bits of the token's hash and the position of its record + 1, or is 0. So a known
token is found with two looks into memory. ``used`` counts codes and words of the arena.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from freqsgd.data.compiled import compiled, inlined

__all__ = [
    "HEADER",
    "UNKNOWN",
    "UNKNOWN_EMPTY",
    "code_rows",
    "count_codes",
    "fill_slots",
    "word_at",
]

# Codes of tokens that are not in the table; -1 is that of an absent one. A missing value is the
# empty text: that it is unknown says nothing about the values.
UNKNOWN, UNKNOWN_EMPTY = -2, -3
HEADER = 2  # words of a record before its text

_SEED, _MIX = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C15)
_HALF, _LAST_BIT = np.uint64(32), np.uint64(63)
_POSITION = np.uint64((1 << 40) - 1)  # the bits of an entry that are a position
_ZERO, _ONE = np.uint64(0), np.uint64(1)


@inlined
def word_at(data: Any, start: Any, stop: Any) -> Any:
    """The bytes from start to stop, 8 at most, as one word; a word must follow theirs."""
    index, shift = start >> 3, np.uint64(8 * (start & 7))
    word = data[index] >> shift
    word |= data[index + 1] << _ONE << (_LAST_BIT - shift)  # a shift by 64 would be undefined
    if stop - start < 8:
        word &= (_ONE << np.uint64(8 * (stop - start))) - _ONE
    return word


@inlined
def _hash(key: Any, data: Any, start: Any, stop: Any) -> Any:
    value = _SEED ^ (key * _MIX)
    for position in range(start, stop, 8):
        value = (value ^ word_at(data, position, stop)) * _MIX
        value ^= value >> _HALF
    value *= _MIX
    return value ^ (value >> _HALF)


@inlined
def _code(
    key: Any,
    value: Any,
    data: Any,
    start: Any,
    stop: Any,
    add: Any,
    slots: Any,
    arena: Any,
    positions: Any,
    used: Any,
) -> Any:
    """The code of a text with this hash; one that is not in the table is added or UNKNOWN."""
    mask = np.uint64(len(slots) - 1)
    slot = value & mask
    code = np.int64(UNKNOWN if stop > start else UNKNOWN_EMPTY)
    while slots[slot] != _ZERO:
        entry = slots[slot]
        if (entry ^ value) <= _POSITION:
            record = np.int64(entry & _POSITION) - 1
            same = arena[record] == key
            text = record + HEADER
            for position in range(start, stop, 8):
                if not same:
                    break
                same = arena[text] == word_at(data, position, stop)
                text += 1
            if same:
                code = np.int64(arena[record + 1])
                break
        slot = (slot + _ONE) & mask
    if code < 0 and add:
        code, record = used[0], used[1]
        arena[record], arena[record + 1] = key, np.uint64(code)
        text = record + HEADER
        for position in range(start, stop, 8):
            arena[text] = word_at(data, position, stop)
            text += 1
        positions[code] = record
        slots[slot] = (value & ~_POSITION) | np.uint64(record + 1)
        used[0], used[1] = code + 1, text
    return code


@compiled
def code_rows(
    data: Any,
    stops: Any,
    begin: Any,
    places: Any,
    add: Any,
    slots: Any,
    arena: Any,
    positions: Any,
    used: Any,
    codes: Any,
) -> Any:
    """Codes of the cells of rows of text, from row ``begin`` on.

    ``data`` is the text in whole words. ``stops`` says of each row where its cells stop; the next
    cell starts one byte later. Cell k of a row is a token of field ``places[0, k]``, whose code is
    put at ``places[1, k]`` in the row of ``codes``; cells whose field is negative are passed over.

    Returns:
        the row that comes next, if the arrays have no room for its tokens; else the number of rows
    """
    rows, cells = stops.shape
    mask = np.uint64(len(slots) - 1)
    starts = np.zeros(cells + 1, np.int64)
    keys, values = np.empty(cells, np.uint64), np.empty(cells, np.uint64)
    touched = np.empty(cells, np.uint64)
    starts[cells] = stops[begin - 1, cells - 1] + 1 if begin else 0
    for row in range(begin, rows):
        starts[0] = starts[cells]
        most = (stops[row, cells - 1] - starts[0]) // 8 + cells * (1 + HEADER)
        if add and (used[0] + cells > len(positions) or used[1] + most > len(arena)):
            return row
        for cell in range(cells):
            start, stop = starts[cell], np.int64(stops[row, cell])
            keys[cell] = (np.uint64(stop - start) << _HALF) | np.uint64(places[0, cell])
            values[cell] = _hash(keys[cell], data, start, stop)
            starts[cell + 1] = stop + 1
        # Touch the memory for all cells before it is needed for any: the waits then overlap.
        for cell in range(cells):
            touched[cell] = slots[values[cell] & mask]
        for cell in range(cells):
            touched[cell] = arena[max(np.int64(touched[cell] & _POSITION) - 1, 0)]
        for cell in range(cells):
            if places[0, cell] >= 0:
                codes[row, places[1, cell]] = _code(
                    keys[cell],
                    values[cell],
                    data,
                    starts[cell],
                    starts[cell + 1] - 1,
                    add,
                    slots,
                    arena,
                    positions,
                    used,
                )
    return rows


@compiled
def fill_slots(slots: Any, arena: Any, positions: Any, used: Any) -> None:
    """Enter all tokens into slots that are all empty."""
    mask = np.uint64(len(slots) - 1)
    for code in range(used[0]):
        key, start = arena[positions[code]], 8 * (positions[code] + HEADER)
        value = _hash(key, arena, start, start + np.int64(key >> _HALF))
        slot = value & mask
        while slots[slot] != _ZERO:
            slot = (slot + _ONE) & mask
        slots[slot] = (value & ~_POSITION) | np.uint64(positions[code] + 1)


@compiled
def count_codes(codes: Any, counts: Any) -> None:
    """Add up how often each code occurs in a matrix."""
    for row in range(codes.shape[0]):
        for column in range(codes.shape[1]):
            code = codes[row, column]
            if code >= len(counts):
                raise IndexError("a code is out of range")
            if code >= 0:
                counts[code] += 1
