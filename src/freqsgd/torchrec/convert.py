"""From tables in shards to one file and back, counts included."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from freqsgd.errors import DataError
from freqsgd.files import locked
from freqsgd.optimizers import Rule
from freqsgd.recommender.folder import ENCODER, check_dictionary
from freqsgd.runs import checkpoint
from freqsgd.runs.checkpoint import MODEL
from freqsgd.runs.machine import available_memory, byte_size
from freqsgd.runs.resume import CHECKPOINT, used_for
from freqsgd.tables.encoders.hashing import open_encoder
from freqsgd.torchrec.limits import FLOAT, MAX_STEPS, check_rule
from freqsgd.torchrec.tables import Layout, Rows, load_rows, save_rows, shards_folder

_PIECE = 1 << 28  # bytes of a file that is made of a part of one process's table


def convert(source: Path, out: Path) -> str:
    """Write what a run has left for the other engine; return what was made.

    Tables in shards, of a model or of a checkpoint, become those of one process. The checkpoint of
    one process becomes one that TorchRec goes on from, with any number of ranks.
    """
    _left_in(source)  # before the lock, which makes the folder
    with locked(out):
        used_for(out, resume=False)
        # no run replaces its files meanwhile; where nothing can be written, none does
        with locked(source if os.access(source, os.W_OK) else None):
            used = _left_in(source)
            if "shards" in checkpoint.describe(source / used):
                _join(source / used, out / used)
                return "a model" if used == MODEL else "a checkpoint for one process"
            if used == MODEL:
                raise DataError(
                    f"{source} holds a model of one process, which has no counts to go on with: "
                    f"convert the folder of a run that has not ended ({CHECKPOINT})"
                )
            _split(source / used, out)
            return "a checkpoint for --engine torchrec, with any number of ranks"


def _left_in(folder: Path) -> str:
    """Return the file that a run has left in a folder."""
    used = used_for(folder, resume=True)
    if used is None:
        raise DataError(f"{folder} holds neither {MODEL} nor {CHECKPOINT}")
    return used


def _join(path: Path, target: Path) -> None:
    """Put the tables of shards together."""
    tensors, described = checkpoint.load(path)
    shards, layout = described.pop("shards"), _layout(path, described)
    for key in ("by", "torch_threads"):  # on which it does not depend
        described.pop(key, None)
    for key in ("engine", "ranks", "sharding"):
        described["record"].pop(key, None)
    finished = path.name == MODEL
    part = "" if finished else "model."
    _check_memory(path, layout, sum(layout.sizes) * FLOAT * (layout.dim + 2))
    weight, counts = _joined(path.parent, shards, layout)
    tensors[f"{part}tokens.weight"] = weight
    if finished:
        if described["tokens"]:
            check_dictionary(path.parent, described)
            described[ENCODER] = open_encoder(path.parent).save(target.parent)
    else:
        tensors["optimizer.counts"] = counts
    checkpoint.save(target, tensors, described)


def _joined(folder: Path, shards: dict[str, Any], layout: Layout) -> tuple[Tensor, Tensor]:
    rows = sum(layout.sizes)
    weight, counts = torch.empty(rows, layout.dim + 1), torch.empty(rows, dtype=torch.int32)
    targets = [
        Rows(table, 0, weight[first : first + size], counts[first : first + size])
        for (table, first), size in zip(layout.starts.items(), layout.sizes, strict=True)
    ]
    load_rows(folder / shards["folder"], shards["digests"], targets)
    return weight, counts


def _split(path: Path, out: Path) -> None:
    """Write the tables of one process as shards, each of some rows of a field."""
    described = checkpoint.describe(path)
    layout = _layout(path, described)
    check_rule(Rule(**described["record"]["options"]["rule"]))
    _check_memory(path, layout, path.stat().st_size)
    tensors, described = checkpoint.load(path)
    if not tensors:
        raise DataError(f"{path} is of a run that diverged: there is nothing to go on with")
    weight, counts = tensors.pop("model.tokens.weight"), tensors.pop("optimizer.counts")
    if int(counts.max()) > MAX_STEPS:
        raise DataError(
            f"{path} has counts above {MAX_STEPS:,}, where the counters of TorchRec's kernel end"
        )
    name = shards_folder(described["steps"])
    pieces = list(_pieces(layout))
    digests = [
        save_rows(out / name, number, len(pieces), [_padded(*piece, layout, weight, counts)])
        for number, piece in enumerate(pieces)
    ]
    described["shards"] = {"folder": name, "digests": digests}
    described["torch_threads"] = None
    checkpoint.save(out / CHECKPOINT, tensors, described)


def _pieces(layout: Layout) -> Iterator[tuple[str, int, int]]:
    """Yield tables, first rows and numbers of rows that are written to a file each."""
    most = max(_PIECE // (FLOAT * layout.row), 1)
    for table, size in zip(layout.tables, layout.sizes, strict=True):
        for first in range(0, size, most):
            yield table, first, min(most, size - first)


def _padded(
    table: str, first: int, count: int, layout: Layout, weight: Tensor, counts: Tensor
) -> Rows:
    """Return a piece of a table as TorchRec has it."""
    start = layout.starts[table] + first
    rows = torch.zeros(count, layout.row)
    rows[:, : layout.dim + 1] = weight[start : start + count]
    return Rows(table, first, rows, counts[start : start + count].float())


def _check_memory(path: Path, layout: Layout, needed: int) -> None:
    """Refuse tables that cannot be held as a whole; of the shards there is a piece at a time."""
    available = available_memory()
    if available is not None and needed + 2 * _PIECE > available:
        raise DataError(
            f"{path} does not fit: {sum(layout.sizes):,} rows x {layout.dim + 1} weights and a "
            f"counter are {byte_size(needed)}, {byte_size(max(available - 2 * _PIECE, 0))} are "
            "available: convert it on a machine with more memory"
        )


def _layout(path: Path, described: dict[str, Any]) -> Layout:
    if "shape" not in described:
        raise DataError(f"{path} was written by an earlier version, or not by freqsgd stream train")
    sizes = described["shape"]["sizes"]
    return Layout(tuple(sizes), (1,) * len(sizes), described["shape"]["dim"])
