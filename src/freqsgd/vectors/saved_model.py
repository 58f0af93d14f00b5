"""A model that was saved, field by field."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.nn.fm import FM
from freqsgd.recommender.folder import has_tokens, load_dictionary, load_model
from freqsgd.runs.checkpoint import MODEL
from freqsgd.tables.columns import Column

__all__ = ["SavedModel", "check_folder", "field_rows"]


class SavedModel:
    """The model of a folder that ``freqsgd train`` wrote.

    Attributes:
        model: its weights
        fields: the names of its fields
        encoder: its token dictionaries; a model of generated data has none, and its tokens are
            called by their ids
        columns: how raw columns become tokens
    """

    def __init__(self, folder: Path) -> None:
        check_folder(folder)
        self.model, description = load_model(folder)
        self.fields: list[str] = description["fields"]
        expected = has_tokens(folder) or description.get("tokens")
        self.encoder = load_dictionary(folder, self.model, description) if expected else None
        self.columns = self.encoder.columns if self.encoder else _columns(self.fields, self.model)

    def rows(self, field: int) -> NDArray[np.float32]:
        """A field's part of the table: a vector and, last, the linear weight of each token."""
        return field_rows(self.model, field)


def check_folder(folder: Path) -> None:
    """Refuse what is not the folder of a model."""
    if (folder / MODEL).is_file():
        return
    models = sorted(path.parent.name for path in folder.glob(f"models/*/{MODEL}"))
    hint = f"; it is a comparison, whose models are {', '.join(models)} in models/"
    raise DataError(
        f"{folder} is not a model: there is no {MODEL} in it, as freqsgd train writes it"
        + (hint if models else "")
    )


def field_rows(model: FM, field: int) -> NDArray[np.float32]:
    """A field's part of a model's table."""
    first, size = sum(model.sizes[:field]), model.sizes[field]
    table: NDArray[np.float32] = model.tokens.weight.detach().numpy()
    return table[first : first + size]


def _columns(names: Sequence[str], model: FM) -> tuple[Column, ...]:
    return tuple(
        Column(name, "bag" if width > 1 else "category", width=width)
        for name, width in zip(names, model.widths, strict=True)
    )
