"""A model that was saved, field by field."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.columns import Column
from freqsgd.data.dataset import DataError
from freqsgd.training.model_folder import MODEL, load_encoder, load_model

__all__ = ["FILES", "SavedModel"]

FILES = (MODEL, "encoder.json", "tokens.parquet")


class SavedModel:
    """The model of a folder that ``freqsgd train`` wrote.

    Attributes:
        model: its weights
        fields: the names of its fields
        columns: how raw columns become tokens; a model of generated data has no dictionaries, and
            its tokens are their own ids
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / MODEL).is_file():
            models = sorted(path.parent.name for path in folder.glob(f"models/*/{MODEL}"))
            hint = f"; it is a comparison, whose models are {', '.join(models)} in models/"
            raise DataError(
                f"{folder} is not a model: there is no {MODEL} in it, as freqsgd train writes it"
                + (hint if models else "")
            )
        self.model, description = load_model(folder)
        self.fields: list[str] = description["fields"]
        self.known = (folder / "encoder.json").exists()
        if self.known:
            encoder = load_encoder(folder, self.model)
            self.columns, self._table = encoder.columns, encoder._tokens
        else:
            self.columns = tuple(
                Column(name, "bag" if width > 1 else "category", width=width)
                for name, width in zip(self.fields, self.model.widths, strict=True)
            )

    def rows(self, field: int) -> NDArray[np.float32]:
        """A field's part of the table: a vector and, last, the linear weight of each token."""
        first, size = sum(self.model.sizes[:field]), self.model.sizes[field]
        table: NDArray[np.float32] = self.model.tokens.weight.detach().numpy()
        return table[first : first + size]

    def texts(self, field: int) -> list[str]:
        """The texts of a field's tokens by id, from 1 on; that of a missing value is empty."""
        return self._part(field, "token").to_list()

    def tokens(self, field: int) -> list[str]:
        """What a field's tokens are called, by id."""
        if not self.known:
            return [str(number) for number in range(self.model.sizes[field])]
        return ["<rare>", *(text or "<missing>" for text in self.texts(field))]

    def counts(self, field: int) -> NDArray[np.int64] | None:
        """How often the tokens were seen in the training file; -1 for rare ones, not counted."""
        if not self.known:
            return None
        return np.concatenate([[-1], self._part(field, "count").to_numpy()])

    def _part(self, field: int, what: str) -> pl.Series:
        return self._table.filter(pl.col("field") == field)[what]
