"""Load samples of files, encoding them first unless that was done before."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.cache import cached
from freqsgd.data.dataset import Dataset, DataWarning
from freqsgd.data.encoder import Encoder
from freqsgd.data.encoding import IDS, LABELS, ORDER, SUMMARY, Progress, encode
from freqsgd.data.fields import ABSENT, Field
from freqsgd.data.files import read_json
from freqsgd.data.sources import Request
from freqsgd.data.splits import Splits, split_at_random, split_by_part, split_by_time, split_column

if TYPE_CHECKING:
    from freqsgd.data.options import DataOptions

__all__ = ["encoded_folder", "load_files"]

_PARTS = ("train", "validation", "test")
_AT_ONCE = 1 << 20  # rows that are looked at


def load_files(options: DataOptions, progress: Progress | None = None) -> Dataset:
    """Load what the options name."""
    request = Request.of(options)
    folder = encoded_folder(request, progress)
    summary = read_json((folder / SUMMARY).read_bytes(), dict)
    if summary["dropped"]:
        warnings.warn(summary["dropped"], DataWarning, stacklevel=3)
    for message in summary["unknown"]:
        warnings.warn(message, DataWarning, stacklevel=3)
    encoder = Encoder.load(folder)
    ids, labels = _mapped(folder, encoder.fields)
    return Dataset(
        request.name,
        encoder.fields,
        ids,
        labels,
        _splits(request, folder, summary["rows"]),
        encoder,
    )


def encoded_folder(request: Request, progress: Progress | None = None) -> Path:
    """The folder of the encoded samples."""
    return cached(
        request.name,
        request.key(),
        lambda folder: encode(request.source(), folder, progress),
        check_samples,
    )


def check_samples(folder: Path) -> None:
    """Raise ValueError if there are ids or labels that training cannot use."""
    fields = Encoder.load(folder).fields
    ids, labels = _mapped(folder, fields)
    rows = sum(read_json((folder / SUMMARY).read_bytes(), dict)["rows"])
    if not len(ids) == len(labels) == rows:
        raise ValueError(f"{len(ids)} rows of ids, {len(labels)} labels, {rows} rows")
    if labels.max(initial=0) > 1:
        raise ValueError(f"{LABELS} has a label of {labels.max()}")
    widths = [field.width for field in fields]
    lowest = np.repeat([0 if width == 1 else ABSENT for width in widths], widths)
    sizes = np.repeat([field.size for field in fields], widths)
    for start in range(0, rows, _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        if (some.min(0) < lowest).any() or (some.max(0) >= sizes).any():
            raise ValueError(f"{IDS} has an id that is out of range")


def _mapped(folder: Path, fields: Sequence[Field]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    ids = np.memmap(folder / IDS, np.int32, "r")
    width = sum(field.width for field in fields)
    return ids.reshape(-1, width), np.memmap(folder / LABELS, np.uint8, "r")


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

    def check(folder: Path) -> None:
        for part in _load_splits(folder):
            if len(part) and not 0 <= part.min() <= part.max() < sum(rows):
                raise ValueError("its splits name a row that is not there")

    key = {"samples": samples.name, "seed": seed}
    return Splits(*_load_splits(cached(f"{request.name}-split", key, build, check)))


def _load_splits(folder: Path) -> list[NDArray[np.int64]]:
    return [np.load(folder / f"{part}.npy", mmap_mode="r") for part in _PARTS]
