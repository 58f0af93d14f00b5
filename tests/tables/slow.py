"""An encoder in plain Python, to compare with."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np


def number(columns: Sequence[Sequence[object]], min_count: int = 1) -> list[dict[object, int]]:
    """Ids of the tokens of each column: by falling frequency, then by text."""
    numbered = []
    for column in columns:
        counts = Counter(
            token for cell in column for token in (cell if isinstance(cell, list) else [cell])
        )
        kept = [token for token in counts if counts[token] >= min_count]
        kept.sort(key=lambda token: (-counts[token], str(token).encode()))
        numbered.append({token: place for place, token in enumerate(kept, start=1)})
    return numbered


def encode(columns: Sequence[Sequence[object]], min_count: int = 1) -> np.ndarray:
    """Ids of columns of tokens; a token that is a list is a bag."""
    parts = []
    for column, ids in zip(columns, number(columns, min_count), strict=True):
        bags = [cell if isinstance(cell, list) else [cell] for cell in column]
        width = max(1, *(len(bag) for bag in bags))
        part = np.full((len(column), width), -1)
        for row, bag in enumerate(bags):
            part[row, : len(bag)] = [ids.get(token, 0) for token in bag]
        parts.append(part)
    return np.concatenate(parts, axis=1)


def log_bin(text: str) -> str:
    """The token of a number under the log rule."""
    if text == "":
        return ""
    value = float(text)
    if value > 2:
        return str(math.floor(math.log(value) ** 2))
    return str(math.floor(value) - 2)
