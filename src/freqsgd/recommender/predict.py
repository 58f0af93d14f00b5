"""Probabilities for the rows of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.files import check_target, writing
from freqsgd.recommender.folder import load_encoder, load_model, part_files
from freqsgd.recommender.predictor import predictor_for
from freqsgd.runs.checkpoint import holds_words
from freqsgd.tables.dialect import BY_NAME, Dialect

__all__ = ["predict_file", "probabilities"]


def probabilities(
    folder: Path, file: str, dialect: Dialect = BY_NAME
) -> Iterator[NDArray[np.float32]]:
    """Probabilities of the rows of a file, some thousand at a time; refuses malformed rows."""
    if holds_words(folder):
        raise DataError(f"{folder} holds word vectors, which predict no label: see neighbors")
    model, description = load_model(folder)
    encoder = load_encoder(folder, model, description)
    predictor = predictor_for(model)
    for ids in encoder.encode_file(file, dialect=dialect):
        logits = predictor.predict(np.ascontiguousarray(ids))
        yield np.exp(-np.logaddexp(np.float32(0), -logits))


def predict_file(
    folder: Path, file: str, out: Path | None, dialect: Dialect = BY_NAME, *, force: bool = False
) -> int:
    """Write a header and one probability per row, to a file that is whole or not there.

    Args:
        folder: of the model
        file: the rows, or a folder of files of them
        out: the file to write; None prints
        dialect: how text files are laid out; by default as those that the model was trained on
        force: replace a file that exists

    Returns:
        The number of rows.
    """
    if file == "":
        raise DataError("the file of rows has no name: name a file or folder")
    if out is not None:
        check_target(out, force=force, inputs=[Path(file), *part_files(folder)])
    rows = 0

    def lines() -> Iterator[str]:
        nonlocal rows
        yield "probability\n"
        for part in chain([first], parts):
            rows += len(part)
            yield from (f"{p:.6g}\n" for p in part.tolist())

    parts = probabilities(folder, file, dialect)
    first = next(parts, np.empty(0, np.float32))  # what can be refused is refused before writing
    if out is None:
        try:
            sys.stdout.writelines(lines())
            sys.stdout.flush()
        except BrokenPipeError:  # head has read enough, which is nobody's error
            raise
        except OSError as error:
            raise DataError(f"cannot write the predictions: {error.strerror}") from error
    else:
        with writing(out) as temporary, temporary.open("w") as target:
            target.writelines(lines())
    return rows
