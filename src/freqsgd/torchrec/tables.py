"""Rows of tables: how they lie, which of them a rank holds, and how they are kept on disk."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import safe_open
from torch import Tensor
from torch.distributed._shard.sharded_tensor.api import ShardedTensor

from freqsgd.errors import DataError
from freqsgd.files import make_folder
from freqsgd.runs import checkpoint
from freqsgd.torchrec.limits import row_width

_KINDS = ("weight", "counts")
_FILE = re.compile(r"\.?\d{5}-of-\d{5}\.safetensors(\.tmp)?")


@dataclass(frozen=True)
class Layout:
    """How the rows of an :class:`~freqsgd.nn.FM` lie in tables, one per field.

    Args:
        sizes, widths: of the fields, as of the model
        dim: of the vectors
    """

    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    dim: int

    @property
    def row(self) -> int:
        """Numbers of a row."""
        return row_width(self.dim)

    @property
    def tables(self) -> list[str]:
        """Names of the tables."""
        return [f"field{number}" for number in range(len(self.sizes))]

    @property
    def columns(self) -> list[str]:
        """Names of the columns of ids; a bag has several, which share its table."""
        return [f"{t}.{k}" for t, w in zip(self.tables, self.widths, strict=True) for k in range(w)]

    @property
    def starts(self) -> dict[str, int]:
        """The model's row where each table begins."""
        return dict(zip(self.tables, accumulate(self.sizes, initial=0), strict=False))


class Rows(NamedTuple):
    """Consecutive rows of a table, and how often each was counted."""

    table: str
    first: int
    weight: Tensor
    counts: Tensor

    @property
    def last(self) -> int:
        """The row after them."""
        return self.first + len(self.weight)


def rows_by_weight(model: Any) -> dict[str, Rows]:
    """Return what a rank holds of a sharded model's tables, by the names of their weights.

    These are the names in the state of the model; the tensors are the kernel's own memory.
    """
    state = model.fused_optimizer.state_dict()["state"]
    held = {}
    for name, weight in model.state_dict().items():
        if isinstance(weight, ShardedTensor) and name in state:
            table = name.split(".")[-2]
            counters = state[name][f"{table}.row_counter"].local_shards()
            for shard, counter in zip(weight.local_shards(), counters, strict=True):
                first = shard.metadata.shard_offsets[0]
                held[name] = Rows(table, first, shard.tensor.detach(), counter.tensor)
    return held


# ---- files: one of each rank; any number of ranks reads them -------------------------------------


def shards_folder(steps: int) -> str:
    """Return the folder of the tables as they were after some steps."""
    return f"shards-{steps}"


def save_rows(folder: Path, number: int, files: int, rows: Iterable[Rows]) -> str:
    """Write one of the files, from where the rows are; return its digest."""
    make_folder(folder)
    tensors = {}
    for each in rows:
        for what, tensor in zip(_KINDS, (each.weight, each.counts), strict=True):
            tensors[f"{each.table}.{each.first}.{what}"] = tensor
    path = _path(folder, number, files)
    digest = checkpoint.save(path, tensors, {})
    _sync(folder)
    return digest


def check_all_there(folder: Path, digests: Sequence[str]) -> None:
    """Refuse to go on where the files of some ranks are not in the folder."""
    for number, digest in enumerate(digests):
        path = _path(folder, number, len(digests))
        if not path.exists() or checkpoint.digest(path) != digest:
            raise DataError(
                f"what rank {number} has written to {folder} is not there on rank 0: all ranks "
                "need one folder, on a file system that they share"
            )


def load_rows(folder: Path, digests: Sequence[str], targets: Sequence[Rows]) -> None:
    """Read rows into where they shall be; refuses files that do not hold all of them.

    Targets may have fewer columns than the files: those are the first. Of a file only a block at a
    time is in memory.

    Args:
        folder: of the files
        digests: of all files, in their order
        targets: take the rows
    """
    own = {f"{t.table}.{t.first}": t for t in targets}
    missing = {(name, what): len(own[name].weight) for name in own for what in _KINDS}
    for number, digest in enumerate(digests):
        path = _path(folder, number, len(digests))
        if checkpoint.digest(path) != digest:
            raise DataError(f"{path} is not the file that was saved: restore the whole folder")
        parts = _parts(path)
        if not any(_shared(target, *part) for part in parts for target in targets):
            continue
        for tensor, begin, rows in checkpoint.read_in_blocks(path):
            table, first, what = tensor.rsplit(".", 2)
            start = int(first) + begin
            for name, target in own.items():
                shared = _shared(target, table, start, len(rows))
                if shared:
                    place = target.weight if what == "weight" else target.counts
                    _copy(rows, start, place, target.first, shared)
                    missing[name, what] -= len(shared)
    for (name, _), count in missing.items():
        if count:
            target = own[name]
            raise DataError(
                f"{folder} does not hold {count:,} of the rows of {target.table} from "
                f"{target.first:,} on: it is of tables of another size"
            )


def remove_others(folder: Path, kept: str | None) -> None:
    """Remove the tables of earlier checkpoints."""
    for path in folder.glob("shards-*"):
        ours = path.is_dir() and all(_FILE.fullmatch(file.name) for file in path.iterdir())
        if ours and path.name != kept:
            shutil.rmtree(path, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Have the names of files on the disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _path(folder: Path, number: int, files: int) -> Path:
    return folder / f"{number:05d}-of-{files:05d}.safetensors"


def _parts(path: Path) -> list[tuple[str, int, int]]:
    """Return table, first row and number of rows of what a file holds."""
    parts = []
    with safe_open(path, framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 - it is no dict
            table, first, what = name.rsplit(".", 2)
            if what == "weight":
                parts.append((table, int(first), int(file.get_slice(name).get_shape()[0])))
    return parts


def _shared(target: Rows, table: str, first: int, count: int) -> range:
    """Return the rows of a target that are among some of a file."""
    if target.table != table:
        return range(0)
    return range(max(first, target.first), min(first + count, target.last))


def _copy(source: Tensor, first: int, target: Tensor, target_first: int, rows: range) -> None:
    some = source[rows.start - first : rows.stop - first]
    place = target[rows.start - target_first : rows.stop - target_first]
    place.copy_(some[:, : place.shape[1]] if some.dim() == 2 else some)
