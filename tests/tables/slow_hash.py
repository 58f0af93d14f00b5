"""Hashing in plain Python, one token at a time."""

from __future__ import annotations

import re

MASK = 2**64 - 1


def mixed(value):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ (value >> 33)) * factor & MASK
    return value ^ (value >> 33)


def integer_of(text):
    """The integer of 64 bits that a text writes, maybe as a float; None if it writes none."""
    if not re.fullmatch(r"(0|-?[1-9][0-9]*)(\.0+)?|-0\.0+", text):
        return None
    number = int(text.partition(".")[0])
    return number if -(2**63) <= number < 2**63 else None


def slow_row(field, value, rows):
    """The row of a token: a number, a text or None."""
    key = mixed((field + 1) * 0x9E3779B97F4A7C15 & MASK)
    text = "" if value is None else str(value)
    text = {"True": "true", "False": "false"}.get(text, text)
    number = integer_of(text)
    if number is not None:
        return mixed((number & MASK) ^ key) * rows >> 64
    data = text.encode()
    found = mixed(key ^ (len(data) * 0xD1B54A32D192ED03 & MASK))
    for start in range(0, len(data), 8):
        found = mixed(found ^ int.from_bytes(data[start : start + 8], "little"))
    return mixed(found ^ 0xD1B54A32D192ED03) * rows >> 64
