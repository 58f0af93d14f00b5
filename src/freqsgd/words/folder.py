"""A trained model of words as a folder: one file of weights, words and their counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.errors import DataError
from freqsgd.files import make_folder, read_json
from freqsgd.nn.word2vec import CBOW, SkipGram, WordModel
from freqsgd.runs import checkpoint
from freqsgd.runs.checkpoint import MODEL

_KINDS = {"skipgram": SkipGram, "cbow": CBOW}


def save_words(
    folder: Path,
    model: WordModel,
    words: Sequence[str],
    counts: NDArray[np.int64],
    description: dict[str, Any],
) -> None:
    """Write the model; its kind, loss and ``max_norm`` are added to the description."""
    text = bytearray(json.dumps(list(words)).encode())
    tensors = {
        **model.state_dict(),
        "counts": torch.from_numpy(np.ascontiguousarray(counts, np.int64)),
        "words": torch.from_numpy(np.frombuffer(text, np.uint8)),
    }
    shape = {
        "model": "cbow" if isinstance(model, CBOW) else "skipgram",
        "loss": "negative" if model.output.bias is None else "softmax",
        "max_norm": model.max_norm,
    }
    make_folder(folder)
    checkpoint.save(folder / MODEL, tensors, {**description, **shape})


def load_words(folder: Path) -> tuple[WordModel, list[str], NDArray[np.int64], dict[str, Any]]:
    """Return the model of a folder, its words, their counts, and what was saved beside them."""
    path = folder / MODEL
    tensors, description = checkpoint.load(path)
    if description.get("model") not in _KINDS:
        raise DataError(f"{folder} holds a model of another kind than skipgram or cbow")
    try:
        words: list[str] = read_json(tensors.pop("words").numpy().tobytes(), list)
        counts: NDArray[np.int64] = tensors.pop("counts").numpy()
        model = _model(description, tensors)
        if not len(words) == len(counts) == len(model.input.weight):
            raise ValueError(f"{len(words)} words, {len(counts)} counts")
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{path} does not describe a model of words: {error}") from error
    return model.eval(), words, counts, description


def _model(description: dict[str, Any], tensors: dict[str, Tensor]) -> WordModel:
    """Return a model whose weights are these tensors."""
    count, dim = tensors["input.weight"].shape
    kind, bias = _KINDS[description["model"]], "output.bias" in tensors
    with torch.device("meta"):  # weights that would be replaced at once
        model = kind(count, dim, bias=bias, max_norm=description["max_norm"])
    model.load_state_dict(tensors, assign=True)
    return model
