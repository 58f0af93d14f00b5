"""Workloads of what is there: a trained model, or the fields of some data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from freqsgd.data.dataset import DataError
from freqsgd.data.fields import Field
from freqsgd.distributed.planning import Workload

__all__ = ["of_fields", "of_model"]


def of_fields(
    fields: Sequence[Field],
    dim: int,
    batch_size: int,
    hidden: tuple[int, ...] | None = None,
    examples: int | None = None,
) -> Workload:
    """Training on data with these fields."""
    widths = [field.width for field in fields]
    return Workload(
        tables=tuple(field.size for field in fields),
        columns=sum(widths),
        widest=max(widths),
        dim=dim,
        batch_size=batch_size,
        hidden=hidden,
        examples=examples,
    )


def of_model(folder: Path, batch_size: int | None = None, examples: int | None = None) -> Workload:
    """Training the model of a folder again, in batches of the same size unless another is given."""
    from freqsgd.training import checkpoint  # loads torch
    from freqsgd.training.checkpoint import MODEL

    description = checkpoint.describe(folder / MODEL)
    try:
        shape = description["shape"]
        fields = [
            Field(name, int(size), int(width))
            for name, size, width in zip(
                description["fields"], shape["sizes"], shape["widths"], strict=True
            )
        ]
        hidden = tuple(shape["hidden"]) if description["model"] == "deepfm" else None
        batch_size = batch_size or int(description["record"]["batch_size"])
        return of_fields(fields, int(shape["dim"]), batch_size, hidden, examples)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{folder} holds no FM or DeepFM that freqsgd train wrote") from error
