"""Probabilities for the rows of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.data.files import replacing
from freqsgd.training.model_folder import load_encoder, load_model
from freqsgd.training.predictor import predictor_for
from freqsgd.training.word_folder import holds_words

__all__ = ["predict_file", "probabilities"]


def probabilities(folder: Path, file: str) -> Iterator[NDArray[np.float32]]:
    """Probabilities of the rows of a file, some thousand at a time; refuses malformed rows."""
    if holds_words(folder):
        raise DataError(f"{folder} holds word vectors, which predict no label: see neighbors")
    model, _ = load_model(folder)
    encoder = load_encoder(folder, model)
    predictor = predictor_for(model)
    for ids in encoder.encode_file(file):
        logits = predictor.predict(np.ascontiguousarray(ids))
        yield np.exp(-np.logaddexp(np.float32(0), -logits))


def predict_file(folder: Path, file: str, out: Path | None) -> None:
    """Write a header and one probability per row, to a file that is whole or not there."""
    parts = probabilities(folder, file)
    first = next(parts, np.empty(0, np.float32))  # what can be refused is refused before writing
    lines = chain(
        ["probability\n"], (f"{p:.6g}\n" for part in chain([first], parts) for p in part.tolist())
    )
    try:
        if out is None:
            sys.stdout.writelines(lines)
            sys.stdout.flush()
        else:
            with replacing(out) as temporary, temporary.open("w") as target:
                target.writelines(lines)
    except OSError as error:
        raise DataError(f"cannot write {out or 'the predictions'}: {error.strerror}") from error
