"""Vectors as commands name them: a model or a file, a field where there are several, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from freqsgd.data.dataset import DataError
from freqsgd.export.choosing import choose
from freqsgd.export.saved_model import check_folder
from freqsgd.export.vectors import Vectors
from freqsgd.training.word_folder import holds_words

__all__ = ["open_vectors"]


def open_vectors(source: Path, names: Sequence[str]) -> tuple[Vectors, list[str]]:
    """The vectors that are meant, and the names that are tokens.

    Args:
        source: a model's folder, or a file of vectors
        names: tokens; before them the name of a field, for a recommender or a file of several
    """
    if source.is_file():
        fields = Vectors.load_fields(source)
        if len(fields) == 1:
            return next(iter(fields.values())), list(names)
        field, tokens = _field_and_tokens(names)
        return fields[choose("field", field, list(fields))], tokens
    if source.is_dir():
        check_folder(source)
    if holds_words(source):
        return Vectors.of_model(source), list(names)
    field, tokens = _field_and_tokens(names)
    return Vectors.of_model(source, field), tokens


def _field_and_tokens(names: Sequence[str]) -> tuple[str, list[str]]:
    if len(names) < 2:
        raise DataError(f"only {' '.join(names)!r} was named: name a field, then tokens of it")
    return names[0], list(names[1:])
