"""Hashing in plain Python, one token at a time."""

from __future__ import annotations

MASK = 2**64 - 1


def mixed(value):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ (value >> 33)) * factor & MASK
    return value ^ (value >> 33)


def is_integer(text):
    """Whether ``str`` would write an integer of 64 bits like this."""
    try:
        return text == str(int(text)) and -(2**63) <= int(text) < 2**63
    except ValueError:
        return False


def slow_row(field, value, rows):
    """The row of a token: an int, a text or None."""
    key = mixed((field + 1) * 0x9E3779B97F4A7C15 & MASK)
    text = "" if value is None else str(value)
    if is_integer(text):
        return mixed((int(text) & MASK) ^ key) * rows >> 64
    data = text.encode()
    found = mixed(key ^ (len(data) * 0xD1B54A32D192ED03 & MASK))
    for start in range(0, len(data), 8):
        found = mixed(found ^ int.from_bytes(data[start : start + 8], "little"))
    return mixed(found ^ 0xD1B54A32D192ED03) * rows >> 64
