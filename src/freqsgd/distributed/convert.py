"""From tables in shards to one file and back, counts included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from freqsgd.data.dataset import DataError
from freqsgd.data.lock import locked
from freqsgd.distributed.layout import Layout
from freqsgd.distributed.limits import check_rule
from freqsgd.distributed.shards import load_rows, save_rows, shards_folder
from freqsgd.distributed.table_rates import MAX_STEPS
from freqsgd.distributed.tables import Rows
from freqsgd.streams.hash_encoder import open_encoder
from freqsgd.training import checkpoint
from freqsgd.training.model_folder import MODEL
from freqsgd.training.resuming import CHECKPOINT, used_for
from freqsgd.training.rules import Rule

__all__ = ["convert"]


def convert(source: Path, out: Path) -> str:
    """Write what a run has left for the other engine; return what was made.

    Tables in shards, of a model or of a checkpoint, become those of one process. The checkpoint of
    one process becomes one that TorchRec goes on from, with any number of ranks.
    """
    used = used_for(source, resume=True)
    if used is None:
        raise DataError(f"{source} holds neither {MODEL} nor {CHECKPOINT}")
    whole = "shards" not in checkpoint.describe(source / used)
    if whole and used == MODEL:
        raise DataError(
            f"{source} holds a model of one process, which has no counts to go on with: convert "
            f"the folder of a run that has not ended ({CHECKPOINT})"
        )
    with locked(out):
        used_for(out, resume=False)
        if whole:
            _split(source / CHECKPOINT, out)
            return "a checkpoint for --engine torchrec, with any number of ranks"
        _join(source / used, out / used)
    return "a model" if used == MODEL else "a checkpoint for one process"


def _join(path: Path, target: Path) -> None:
    """Put the tables of shards together."""
    tensors, described = checkpoint.load(path)
    shards = described.pop("shards")
    described.pop("torch_threads", None)  # of which it does not depend
    finished = path.name == MODEL
    part = "" if finished else "model."
    weight, counts = _joined(path.parent, shards, _layout(path, described))
    tensors[f"{part}tokens.weight"] = weight
    if finished:
        if described["tokens"]:
            open_encoder(path.parent).save(target.parent)
    else:
        tensors["optimizer.counts"] = counts
        for key in ("engine", "ranks", "sharding"):
            described["record"].pop(key, None)
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
    """Write the tables of one process as shards, one for each field."""
    described = checkpoint.describe(path)
    layout = _layout(path, described)
    check_rule(Rule(**described["record"]["options"]["rule"]))
    tensors, described = checkpoint.load(path)
    if not tensors:
        raise DataError(f"{path} is of a run that diverged: there is nothing to go on with")
    weight, counts = tensors.pop("model.tokens.weight"), tensors.pop("optimizer.counts")
    if int(counts.max()) > MAX_STEPS:
        raise DataError(
            f"{path} has counts above {MAX_STEPS:,}, where the counters of TorchRec's kernel end"
        )
    name, digests = shards_folder(described["steps"]), []
    for number, (table, first) in enumerate(layout.starts.items()):
        last = first + layout.sizes[number]
        rows = torch.zeros(last - first, layout.row)
        rows[:, : layout.dim + 1] = weight[first:last]
        part = Rows(table, 0, rows, counts[first:last].float())
        digests.append(save_rows(out / name, number, len(layout.sizes), [part]))
    described["shards"] = {"folder": name, "digests": digests}
    described["torch_threads"] = None
    checkpoint.save(out / CHECKPOINT, tensors, described)


def _layout(path: Path, described: dict[str, Any]) -> Layout:
    if "shape" not in described:
        raise DataError(f"{path} was written by an earlier version, or not with --one-pass")
    sizes = described["shape"]["sizes"]
    return Layout(tuple(sizes), (1,) * len(sizes), described["shape"]["dim"])
