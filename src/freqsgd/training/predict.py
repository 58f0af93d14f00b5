"""Probabilities for the rows of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.training.engine import predictor_for
from freqsgd.training.model_folder import load_encoder, load_model

__all__ = ["predict_file", "probabilities"]


def probabilities(
    folder: Path, file: str, *, max_bad_rows: int = 0
) -> Iterator[NDArray[np.float32]]:
    """Probabilities of the rows of a file, some thousand at a time."""
    model, _ = load_model(folder)
    encoder = load_encoder(folder, model)
    predictor = predictor_for(model)
    for ids in encoder.encode_file(file, max_bad_rows=max_bad_rows):
        logits = predictor.predict(np.ascontiguousarray(ids))
        yield np.exp(-np.logaddexp(np.float32(0), -logits))


def predict_file(folder: Path, file: str, out: Path | None, *, max_bad_rows: int = 0) -> None:
    """Write a header and one probability per row, to a file that is whole or not there."""
    parts = probabilities(folder, file, max_bad_rows=max_bad_rows)
    if out is None:
        _write(parts, sys.stdout)
        return
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w") as target:
            _write(parts, target)
            target.flush()
            os.fsync(target.fileno())
        temporary.replace(out)
    except OSError as error:
        raise DataError(f"cannot write {out}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _write(parts: Iterator[NDArray[np.float32]], target: IO[str]) -> None:
    target.write("probability\n")
    for part in parts:
        target.writelines(f"{p:.6g}\n" for p in part.tolist())
