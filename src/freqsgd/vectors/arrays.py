"""Named arrays in one file that others can read, safetensors or npz."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.files import writing
from freqsgd.runs import checkpoint
from freqsgd.vectors.names import ARRAY_FORMATS, choose

__all__ = ["read", "write"]

_LONGEST_HEADER = 1 << 32  # of a safetensors file, whose first 8 bytes are the header's length


def write(path: Path, format: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Write the arrays under their names."""
    if choose("format", format, ARRAY_FORMATS) == "safetensors":
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        checkpoint.save(path, tensors, {})
    else:
        with writing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)


def read(path: Path) -> dict[str, NDArray[Any]] | None:
    """The arrays of a file, by name; None if it is of another format."""
    try:
        with path.open("rb") as file:
            start = file.read(9)
        if start[8:] == b"{" and int.from_bytes(start[:8], "little") < _LONGEST_HEADER:
            tensors, _ = checkpoint.load(path)
            return {name: tensor.numpy() for name, tensor in tensors.items()}
        if not start.startswith(b"PK"):
            return None
        with np.load(path, allow_pickle=False) as packed:
            return dict(packed)
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"cannot read {path}: {error}") from error
    except Exception as error:  # a damaged zip file may raise anything
        raise DataError(f"{path} is damaged or not a file of vectors ({error})") from error
