"""Load samples of files, encoding them first unless that was done before."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from freqsgd.data.cache import cached
from freqsgd.data.dataset import Dataset, DataWarning, Splits
from freqsgd.data.encoder import Encoder
from freqsgd.data.encoding import IDS, LABELS, ORDER, SUMMARY, Progress, encode
from freqsgd.data.sources import Request
from freqsgd.data.splits import split_at_random, split_by_part, split_by_time, split_column

if TYPE_CHECKING:
    from freqsgd.data.options import DataOptions

__all__ = ["encoded_folder", "load_files"]

_PARTS = ("train", "validation", "test")


def load_files(options: DataOptions, progress: Progress | None = None) -> Dataset:
    """Load what the options name."""
    request = Request.of(options)
    folder = encoded_folder(request, progress)
    summary = json.loads((folder / SUMMARY).read_bytes())
    if summary["dropped"]:
        warnings.warn(summary["dropped"], DataWarning, stacklevel=3)
    encoder = Encoder.load(folder)
    shape = (sum(summary["rows"]), sum(field.width for field in encoder.fields))
    return Dataset(
        request.name,
        encoder.fields,
        np.memmap(folder / IDS, np.int32, "r", shape=shape),
        np.memmap(folder / LABELS, np.uint8, "r"),
        _splits(request, folder, summary["rows"]),
        encoder,
    )


def encoded_folder(request: Request, progress: Progress | None = None) -> Path:
    """The folder of the encoded samples."""
    return cached(
        request.name, request.key(), lambda folder: encode(request.source(), folder, progress)
    )


def _splits(request: Request, samples: Path, rows: list[int]) -> Splits:
    seed = request.options.split_seed

    def build(folder: Path) -> None:
        by, _ = split_column(request.options.split)
        if by == "random":
            splits = split_at_random(rows[0], seed, own=(rows[1], rows[2]))
        else:
            order = np.fromfile(samples / ORDER)
            splits = split_by_time(order) if by == "time" else split_by_part(order)
        for part in _PARTS:
            np.save(folder / f"{part}.npy", getattr(splits, part))

    folder = cached(f"{request.name}-split", {"samples": samples.name, "seed": seed}, build)
    return Splits(*(np.load(folder / f"{part}.npy", mmap_mode="r") for part in _PARTS))
