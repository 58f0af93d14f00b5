"""What turns raw values into the ids that an ONNX graph takes, as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from freqsgd.data.columns import Column
from freqsgd.data.encoder import Encoder
from freqsgd.export.onnx_graph import INPUT, OUTPUT
from freqsgd.export.saved_model import SavedModel

__all__ = ["dictionary_bytes"]

FORMAT = 1


def dictionary_bytes(saved: SavedModel) -> bytes:
    """The fields in the order of their columns, and the id of every token's text."""
    firsts = np.cumsum([0, *saved.model.widths]).tolist()
    fields = [
        {
            "name": column.name,
            "kind": column.kind,
            **_bins(column),
            "first_column": firsts[number],
            "columns": column.width,
            "size": saved.model.sizes[number],
            "ids": _ids(saved.encoder, number) if saved.encoder else None,
        }
        for number, column in enumerate(saved.columns)
    ]
    whole = {"format": FORMAT, "input": INPUT, "output": OUTPUT, "fields": fields}
    return json.dumps(whole, indent=1, ensure_ascii=False).encode()


def _bins(column: Column) -> dict[str, Any]:
    """How a number becomes a token."""
    if not column.is_number:
        return {}
    return {"bins": {"edges": column.edges} if column.edges else "log"}


def _ids(encoder: Encoder, field: int) -> dict[str, int]:
    return {text: number for number, text in enumerate(encoder.texts()[field], start=1)}
