"""Names that a user gave, checked against those that there are."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from freqsgd.data.dataset import DataError

__all__ = [
    "ARRAY_FORMATS",
    "FORMATS",
    "VECTOR_FORMATS",
    "WORD2VEC_FORMATS",
    "UnknownTokenError",
    "choose",
    "close_to",
]

ARRAY_FORMATS = ("safetensors", "npz")
WORD2VEC_FORMATS = ("word2vec-text", "word2vec-bin")
VECTOR_FORMATS = (*ARRAY_FORMATS, *WORD2VEC_FORMATS)
FORMATS = (*VECTOR_FORMATS, "onnx")
"""What a model can be written as."""


class UnknownTokenError(DataError, KeyError):
    """There is no such token."""

    __str__ = Exception.__str__  # a KeyError's puts the message in quotes


def choose(kind: str, name: str | None, known: Sequence[str]) -> str:
    """The name, if it is known; without one, the only one that there is.

    Example:
        >>> choose("field", None, ["word"])
        'word'
    """
    if name is not None and name in known:
        return name
    listed = ", ".join(known)
    if name is not None:
        close = close_to(name, known)[:1]
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise DataError(f"there is no {kind} {name!r}{hint}; known: {listed}")
    if len(known) != 1:
        raise DataError(f"name the {kind}, there are several: {listed}")
    return known[0]


def close_to(name: str, known: Sequence[str]) -> list[str]:
    """Up to three names that are spelled alike, of the first 100,000: more would take seconds."""
    folded = {one.casefold(): one for one in known[:100_000]}
    return [folded[one] for one in get_close_matches(name.casefold(), folded)]
