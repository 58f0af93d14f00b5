"""The table that gives every distinct token a code, in the order of first sight."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.kernels.compiled import called, compiled, inlined

_MOST_TOKENS = 2**31 - 1
_FIRST_ROOM = 1 << 12
_AT_ONCE = 1 << 18


class TokenTable:
    """The distinct tokens of all fields; a token is a pair of a field and a text."""

    def __init__(self) -> None:
        self._used = np.zeros(2, np.int64)  # codes, words of the arena
        self._slots = np.zeros(2 * _FIRST_ROOM, np.uint64)
        self._arena = np.zeros(4 * _FIRST_ROOM, np.uint64)
        self._positions = np.zeros(_FIRST_ROOM, np.int64)

    def __len__(self) -> int:
        return int(self._used[0])

    def code_rows(
        self,
        data: bytes,
        stops: NDArray[np.int32],
        places: NDArray[np.int64],
        codes: NDArray[np.int32],
        *,
        add: bool,
    ) -> None:
        """Fill in codes of the cells of rows, as the compiled ``code_rows`` says."""
        words = whole_words(data)
        rows, cells = stops.shape
        if len(self._slots) == 0:  # a call was cut off while it made room
            self._fill_slots()
        done = 0
        while done < rows:
            if add:
                size = int(stops[done, -1] - (stops[done - 1, -1] if done else 0))
                self._make_room(cells, size // 8 + cells * (1 + HEADER))
            done = code_rows(words, stops, done, places, add, *self._arrays(), codes)

    def code_texts(self, texts: pl.Series, field: int, *, add: bool) -> NDArray[np.int32]:
        """Return codes of tokens of a field, given as text; UNKNOWN for new ones if not added."""
        codes = np.empty((len(texts), 1), np.int32)
        for start in range(0, len(texts), _AT_ONCE):
            some = texts.slice(start, _AT_ONCE)
            data, stops = joined(some)
            place = codes[start : start + _AT_ONCE]
            self.code_rows(
                data, stops.reshape(-1, 1), np.array([[field], [0], [1]]), place, add=add
            )
        return codes[:, 0]

    def fields(self, begin: int = 0) -> NDArray[np.int64]:
        """Return the field of each code from ``begin`` on."""
        keys = self._arena[self._positions[begin : len(self)]]
        return (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)

    def texts(self, codes: NDArray[np.int64]) -> pl.Series:
        """Return the texts of some codes."""
        positions = self._positions[codes]
        starts = 8 * (positions + HEADER)
        stops = starts + (self._arena[positions] >> np.uint64(32)).astype(np.int64)
        data = self._arena.view(np.uint8).data
        texts = pl.Series("text", [], pl.String)
        for start in range(0, len(codes), _AT_ONCE):  # not to hold all of them as Python objects
            some = slice(start, start + _AT_ONCE)
            bounds = zip(starts[some].tolist(), stops[some].tolist(), strict=True)
            texts.append(pl.Series([str(data[begin:end], "utf-8") for begin, end in bounds]))
        return texts

    def _arrays(self) -> tuple[Any, ...]:
        return self._slots, self._arena, self._positions, self._used

    def _make_room(self, codes: int, words: int) -> None:
        """Make room for at least so many more codes, and words of records."""
        codes, words = len(self) + codes, int(self._used[1]) + words
        if codes > _MOST_TOKENS:
            raise DataError(f"there are more than {_MOST_TOKENS:,} distinct tokens")
        if codes > len(self._positions):
            self._positions = _longer(self._positions, max(codes, 2 * len(self._positions)))
        if words > len(self._arena):
            self._arena = _longer(self._arena, max(words, 2 * len(self._arena)))
        if len(self._slots) < 2 * len(self._positions):
            self._slots = np.zeros(0, np.uint64)  # not to hold old and new ones at once
            self._fill_slots()

    def _fill_slots(self) -> None:
        """Make slots for all positions; there are none until they hold all tokens."""
        slots = np.zeros(1 << (2 * len(self._positions) - 1).bit_length(), np.uint64)
        fill_slots(slots, self._arena, self._positions, self._used)
        self._slots = slots


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer


def whole_words(data: bytes) -> NDArray[np.uint64]:
    """Return the bytes as words of 8, and one more, so that any of them may be read with the next.

    Behind them are the texts of booleans, for ``value_text``.
    """
    words = np.empty(len(data) // 8 + 5, np.uint64)
    words[-5:] = [0, 0, *_BOOLEANS, 0]
    words.view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
    return words


def joined(texts: pl.Series) -> tuple[bytes, NDArray[np.int32]]:
    """Return all texts, one byte apart, and where each of them stops."""
    data = str(texts.str.join(" ").item()).encode()
    stops = np.cumsum(texts.str.len_bytes().to_numpy() + np.uint32(1), dtype=np.int32)
    return data, stops - np.int32(1)


# A table of tokens, compiled: gives every distinct pair of field and text a code.
#
# Texts are packed into words of 8 bytes. ``arena`` holds a record for each token: its key (length
# and field), its code, its words; ``positions`` says by code where they are. ``slots`` is an open
# hash table: an entry has bits of the token's hash and the position of its record + 1, or is 0. So
# a known token is found with two looks into memory. ``used`` counts codes and words of the arena.

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
    """Return the bytes from start to stop, 8 at most, as one word; a word must follow theirs."""
    index, shift = start >> 3, np.uint64(8 * (start & 7))
    word = data[index] >> shift
    word |= data[index + 1] << _ONE << (_LAST_BIT - shift)  # a shift by 64 would be undefined
    if stop - start < 8:
        word &= (_ONE << np.uint64(8 * (stop - start))) - _ONE
    return word


_TEN, _LARGEST = np.uint64(10), np.uint64(2**63 - 1)
_MOST_DIGITS = 19  # of an integer of 64 bits
_DIGIT_0, _DIGIT_9, _MINUS, _POINT = map(ord, "09-.")
_BOOLEANS = [int.from_bytes(text, "little") for text in (b"true", b"false")]
_T, _R, _U, _E, _F, _A, _L, _S = map(ord, "TrueFals")


@called
def is_integer(data: Any, start: Any, stop: Any) -> Any:
    """Return whether the bytes are an integer of 64 bits as ``str`` writes it, and which."""
    negative = data[start] == _MINUS if stop > start else False
    first = start + 1 if negative else start
    digits = stop - first
    if digits < 1 or digits > _MOST_DIGITS:
        return False, np.uint64(0)
    if data[first] == _DIGIT_0 and (digits > 1 or negative):
        return False, np.uint64(0)
    value = np.uint64(0)
    for position in range(first, stop):
        byte = data[position]
        if byte < _DIGIT_0 or byte > _DIGIT_9:
            return False, value
        value = value * _TEN + np.uint64(byte - _DIGIT_0)
    if value > _LARGEST and not (negative and value == _LARGEST + np.uint64(1)):
        return False, value
    return True, ~value + np.uint64(1) if negative else value


@inlined
def may_be_respelled(data: Any, start: Any, stop: Any) -> Any:
    """Return whether ``value_text`` may change bytes: of most texts, the last two tell that not."""
    if stop - start < 3:
        return False
    last, before = data[stop - 1], data[stop - 2]
    return last == _E or (last == _DIGIT_0 and before in (_POINT, _DIGIT_0))


@called
def value_text(data: Any, start: Any, stop: Any) -> Any:
    """Find the text of a value, given at least 3 bytes that may be written in another way.

    A whole number of 64 bits is written without point and zeros: 3.0 is 3, and -0.0 is 0. True and
    False are true and false, which stand at the end of ``whole_words``. Anything else is as it is.
    """
    if data[stop - 1] == _DIGIT_0:
        point = stop - 1
        while point > start and data[point] == _DIGIT_0:
            point -= 1
        if data[point] == _POINT:
            if point - start == 2 and data[start] == _MINUS and data[start + 1] == _DIGIT_0:
                return start + 1, point
            if is_integer(data, start, point)[0]:
                return start, point
    elif stop - start == 4 and data[start] == _T:
        if data[start + 1] == _R and data[start + 2] == _U:
            return np.int64(len(data) - 24), np.int64(len(data) - 20)
    elif (
        stop - start == 5
        and data[start] == _F
        and data[start + 1] == _A
        and data[start + 2] == _L
        and data[start + 3] == _S
    ):
        return np.int64(len(data) - 16), np.int64(len(data) - 11)
    return start, stop


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
    """Find the code of a text with this hash; one that is not known is added or UNKNOWN."""
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
    """Return codes of the cells of rows of text, from row ``begin`` on.

    ``data`` is the text in whole words. ``stops`` says of each row where its cells stop; the next
    cell starts one byte later. Cell k of a row is a token of field ``places[0, k]``, whose code is
    put at ``places[1, k]`` in the row of ``codes``; cells whose field is negative are passed over.
    Where ``places[2, k]`` is 1, the cell is a value, whose text is that of ``value_text``.

    Returns:
        the row that comes next, if the arrays have no room for its tokens; else the number of rows
    """
    rows, cells = stops.shape
    mask = np.uint64(len(slots) - 1)
    text = data.view(np.uint8)
    begins, ends = np.empty(cells, np.int64), np.empty(cells, np.int64)
    keys, values = np.empty(cells, np.uint64), np.empty(cells, np.uint64)
    touched = np.empty(cells, np.uint64)
    start = np.int64(stops[begin - 1, cells - 1] + 1 if begin else 0)
    for row in range(begin, rows):
        most = (stops[row, cells - 1] - start) // 8 + cells * (1 + HEADER)
        if add and (used[0] + cells > len(positions) or used[1] + most > len(arena)):
            return row
        for cell in range(cells):
            stop = np.int64(stops[row, cell])
            begins[cell], ends[cell] = start, stop
            if places[2, cell] and may_be_respelled(text, start, stop):
                begins[cell], ends[cell] = value_text(text, start, stop)
            length = np.uint64(ends[cell] - begins[cell])
            keys[cell] = (length << _HALF) | np.uint64(places[0, cell])
            values[cell] = _hash(keys[cell], data, begins[cell], ends[cell])
            start = stop + 1
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
                    begins[cell],
                    ends[cell],
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
