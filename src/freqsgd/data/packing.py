"""Texts laid out for compiled code: one after another, in whole words of memory."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["joined", "whole_words"]


def whole_words(data: bytes) -> NDArray[np.uint64]:
    """The bytes as words of 8, and one more, so that any of them may be read with the next."""
    words = np.empty(len(data) // 8 + 2, np.uint64)
    words[-2:] = 0
    words.view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
    return words


def joined(texts: pl.Series) -> tuple[bytes, NDArray[np.int32]]:
    """All texts, one byte apart, and where each of them stops."""
    data = str(texts.str.join(" ").item()).encode()
    stops = np.cumsum(texts.str.len_bytes().to_numpy() + np.uint32(1), dtype=np.int32)
    return data, stops - np.int32(1)
