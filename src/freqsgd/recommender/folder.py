"""A trained model as a folder: weights, token dictionaries, options and results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from freqsgd.errors import DataError
from freqsgd.nn.fm import FM
from freqsgd.recommender.models import MODELS, model_of
from freqsgd.runs import checkpoint
from freqsgd.runs.checkpoint import MODEL
from freqsgd.tables.encoders.encoder import DESCRIPTION, TOKENS, Description, Encoder
from freqsgd.tables.encoders.hashing import HashEncoder, open_encoder
from freqsgd.tables.fields import Field

OPTIMIZER = "optimizer.safetensors"  # from which an estimator continues training
ENCODER = "encoder"  # the checksum of the token dictionaries, in the model's description


class Encoded(Protocol):
    """Data that a model is trained on, as far as its folder describes it."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of an example."""

    @property
    def encoder(self) -> Encoder | HashEncoder | None:
        """Turns raw columns into ids; None: there are no raw columns."""


def save_model(folder: Path, model: FM, data: Encoded, description: dict[str, Any]) -> None:
    """Write the dictionaries, then the weights: a folder with weights is complete."""
    kind = model_of(model)
    write_folder(folder, model.state_dict(), kind.name, kind.shape(model), data, description)


def write_folder(
    folder: Path,
    tensors: Mapping[str, Tensor],
    model: str,
    shape: dict[str, Any],
    data: Encoded,
    description: dict[str, Any],
) -> None:
    """Do the same for the tensors of a model of some name and shape."""
    checksum = None
    if data.encoder is not None:
        try:
            checksum = data.encoder.save(folder)
        except OSError as error:
            raise DataError(f"cannot write the token dictionaries to {folder}: {error}") from error
    whole = {
        "model": model,
        "shape": shape,
        "fields": [field.name for field in data.fields],
        "tokens": data.encoder is not None,
        ENCODER: checksum,
        **description,
    }
    checkpoint.save(folder / MODEL, tensors, whole)


def load_model(folder: Path) -> tuple[FM, dict[str, Any]]:
    """Return the model of a folder, and what was saved beside its weights."""
    path = folder / MODEL
    try:
        described = checkpoint.describe(path)
        check_whole(path, described)
        model = _build(described)
        tensors, description = checkpoint.load(path, model.state_dict())
        model.load_state_dict(tensors)
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{path} does not describe a model: {error}") from error
    return model.eval(), description


def check_whole(path: Path, description: dict[str, Any]) -> None:
    """Refuse a file whose tables are in shards."""
    if "shards" in description:
        files = len(description["shards"]["digests"])
        raise DataError(
            f"{path}: its tables are in {files} shards; make one file of them: freqsgd convert "
            f"{path.parent} --out DIR"
        )


def _build(description: dict[str, Any]) -> FM:
    shape = dict(description["shape"])
    sizes, dim = shape.pop("sizes"), shape.pop("dim")
    model: FM = MODELS[description["model"]].load("module")(sizes, dim, **shape)
    return model


def part_files(folder: Path) -> list[Path]:
    """List the files that a model is loaded from, whether or not they are there."""
    return [folder / name for name in (MODEL, DESCRIPTION, TOKENS, OPTIMIZER)]


def has_tokens(folder: Path) -> bool:
    """Tell whether there are token dictionaries in a folder, or a part of them."""
    return any((folder / name).exists() for name in (DESCRIPTION, TOKENS))


def load_dictionary(folder: Path, model: FM, description: dict[str, Any]) -> Encoder:
    """Return the token dictionaries of a folder; refuse a model whose tokens were hashed."""
    encoder = load_encoder(folder, model, description)
    if not isinstance(encoder, Encoder):
        raise DataError(
            f"{folder}: its tokens were hashed, so what they are called is not known; it can only "
            "be used to predict"
        )
    return encoder


def load_encoder(folder: Path, model: FM, description: dict[str, Any]) -> Encoder | HashEncoder:
    """Return the encoder of raw columns into a model's ids.

    Raises:
        DataError: it is not there, is damaged, or belongs to another model
    """
    if not has_tokens(folder):
        raise DataError(
            f"{folder} has no token dictionaries ({DESCRIPTION}, {TOKENS}): a model of generated "
            "data has none, for it knows no raw tokens; any other must be trained again"
        )
    check_dictionary(folder, description)
    encoder = open_encoder(folder)
    shape = [(field.size, field.width) for field in encoder.fields]
    if shape != list(zip(model.sizes, model.widths, strict=True)):
        raise _of_another_model(folder)
    return encoder


def check_dictionary(folder: Path, description: dict[str, Any]) -> None:
    """Refuse token dictionaries that are not those with which a model was saved."""
    if description.get(ENCODER) != Description.read(folder).checksum:
        raise _of_another_model(folder)


def _of_another_model(folder: Path) -> DataError:
    return DataError(
        f"the token dictionaries in {folder} belong to another model, or were changed: restore the "
        "whole folder, or train again"
    )
