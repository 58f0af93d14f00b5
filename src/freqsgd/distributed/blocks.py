"""The tensors of a file, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path

from safetensors import safe_open
from torch import Tensor, empty

from freqsgd.data.dataset import DataError
from freqsgd.training import checkpoint

__all__ = ["read_in_blocks"]

_BLOCK = 1 << 24  # bytes that are read at a time


def read_in_blocks(path: Path) -> Iterator[tuple[str, int, Tensor]]:
    """Name, first row and rows of blocks of all tensors, which may be larger than the memory.

    What :func:`freqsgd.training.checkpoint.save` wrote, of floats. That it was not changed is known
    when the last block was taken, and refused then.
    """
    with safe_open(path, framework="pt") as file:
        metadata: dict[str, str] = file.metadata()
        digest = checkpoint._Digest(metadata["freqsgd"])
        for name in sorted(file.keys()):
            tensor = file.get_slice(name)
            shape: list[int] = tensor.get_shape()
            digest.name(name, empty(shape, device="meta"))
            some = max(_BLOCK // (4 * prod(shape[1:])), 1)
            for first in range(0, shape[0], some):
                rows: Tensor = tensor[first : first + some]
                digest.update(rows.view(-1).numpy().view("uint8").data)
                yield name, first, rows
    if metadata["digest"] != digest.text():
        raise DataError(f"{path} was changed after it was written: its checksum does not match")
