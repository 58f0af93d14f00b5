"""How well cosines of word vectors agree with what people say of pairs of words."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.runs.metrics import spearman
from freqsgd.tables.catalog import find_file

_FILES = {
    "wordsim353": "word-similarity/wordsim353.tsv",
    "simlex999": "word-similarity/simlex999.txt",
}


def word_similarity(words: Sequence[str], matrix: NDArray[Any]) -> dict[str, dict[str, Any]]:
    """Return the Spearman correlation with WordSim-353 and SimLex-999, those whose files are there.

    A pair is covered if both words are in the vocabulary, as written or in lower case.

    Args:
        words: the vocabulary
        matrix: the vector of each word

    Returns:
        By name of the file, ``spearman`` over the pairs that are covered (None where that means
        nothing), ``pairs`` of the file, and how many are ``covered``.
    """
    row_of = {word: row for row, word in enumerate(words)}
    found = {}
    for name, relative in _FILES.items():
        path = find_file(relative)
        if path is None:
            continue
        try:
            found[name] = _agreement(read_pairs(path), row_of, matrix)
        except DataError as error:  # not worth losing a model for
            warnings.warn(f"{error}; left out", DataWarning, stacklevel=2)
    return found


def read_pairs(path: Path) -> list[tuple[str, str, float]]:
    """Return the pairs of a file: two words and how alike people find them, separated by tabs."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    pairs = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            first, second, score = line.split("\t")
            pairs.append((first, second, float(score)))
        except ValueError:
            expected = "two words and a number, separated by tabs"
            raise DataError(f"{path}, line {number}: expected {expected}") from None
    return pairs


def _agreement(
    pairs: list[tuple[str, str, float]], row_of: Mapping[str, int], matrix: NDArray[Any]
) -> dict[str, Any]:
    def row(word: str) -> int | None:
        return row_of.get(word, row_of.get(word.lower()))

    rows = [(row(first), row(second), score) for first, second, score in pairs]
    covered = [(a, b, score) for a, b, score in rows if a is not None and b is not None]
    scores = np.array([score for *_, score in covered])
    cosines = _cosines(matrix, [a for a, *_ in covered], [b for _, b, _ in covered])
    return {"spearman": spearman(cosines, scores), "pairs": len(pairs), "covered": len(covered)}


def _cosines(matrix: NDArray[Any], a: list[int], b: list[int]) -> NDArray[np.float64]:
    """Return cosines of pairs of rows; 0 with a vector of zeros."""
    x = matrix[np.array(a, np.int64)].astype(np.float64)
    y = matrix[np.array(b, np.int64)].astype(np.float64)
    lengths = np.sqrt((x * x).sum(1) * (y * y).sum(1))
    return np.asarray((x * y).sum(1) / np.where(lengths == 0, 1, lengths))
