"""The step on the CPU: many tables handed to one kernel call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from freqsgd.kernels import rows, threads
from freqsgd.optim._plain import Update, non_finite
from freqsgd.rates import check_ids

SMALL = 1 << 15  # numbers in a step below which a second thread costs more than it brings

LAW = ("lr", "power", "max_lr", "weight_decay", "weight_decay_power")  # as in RateLaw and TABLE

_PROTOTYPES: dict[torch.dtype, Any] = {
    dtype: torch.empty(0, dtype=dtype).numpy()
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64)
}


def check(updates: Sequence[Update]) -> None:
    """Refuse a step that a kernel must not start, before anything is written."""
    for group in _by_type(u for u in updates if u.grad is not None):
        bad = find_bad(_describe(group), group[0].param)
        if bad is not None:
            update = group[bad]
            if update.ids is not None:
                check_ids(update.ids, update.param.shape[0])
            raise non_finite(update.param)


def apply(updates: Sequence[Update]) -> None:
    """Count and update; equal to :func:`freqsgd.optim._plain.apply` on each."""
    for group in _by_type(updates):
        tables = _describe(group)
        update_tables(tables, group[0].param, group[0].counts, group[0].source)
        increment_version([u.param for u in group if u.grad is not None])


def find_bad(tables: Any, weight: Tensor) -> int | None:
    """The first table with an id out of range or a gradient that is not finite."""
    kind = _PROTOTYPES[weight.dtype]
    found = threads.run(
        lambda rank, workers: rows.check_tables(tables, kind, rank, workers), _workers(tables)
    )
    return min((t for t in found if t >= 0), default=None)


def update_tables(
    tables: Any, weight: Tensor, counts: Tensor | None, source: Tensor | None
) -> None:
    """Run the kernel over tables whose tensors have the types of those given."""
    workers = _workers(tables)
    shards = 1
    while len(tables) * shards < workers:
        shards *= 2
    kinds = [
        _PROTOTYPES[torch.int32 if tensor is None else tensor.dtype]
        for tensor in (weight, counts, source)
    ]
    threads.run(
        lambda rank, workers: rows.update_tables(tables, shards, *kinds, rank, workers), workers
    )


def _workers(tables: Any) -> int:
    return workers_for(int((tables["ids_len"] * tables["dim"]).sum()))


def workers_for(numbers: int) -> int:
    """How many threads so many numbers deserve: torch's own setting at most."""
    return 1 if numbers < SMALL else torch.get_num_threads()


def _by_type(updates: Iterable[Update]) -> Iterable[list[Update]]:
    groups: dict[Any, list[Update]] = defaultdict(list)
    for update in updates:
        tensors = (update.param, update.counts, update.source)
        groups[tuple(x is not None and x.dtype for x in tensors)].append(update)
    return groups.values()


def _describe(group: Sequence[Update]) -> Any:
    """The updates as records of the kernel."""
    tables = np.zeros(len(group), rows.TABLE)
    tables["weight"] = [u.param.data_ptr() for u in group]
    tables["source"] = [_address(u.source) for u in group]
    tables["rows"] = [len(u.param) for u in group]
    tables["dim"] = tables["values_stride"] = [u.param.shape[1] for u in group]
    tables["padding"] = -1
    for table, batch, counts in (
        (t, u.batch, u.counts) for t, u in zip(tables, group, strict=True)
    ):
        if batch is not None:
            table["counts"] = _address(counts)
            table["counted"], table["counted_len"] = batch.ids.data_ptr(), batch.ids.numel()
            table["increments"], table["once"] = _address(batch.increments), batch.once
            table["added"] = batch.added
    tables["ids"] = [_address(u.ids) for u in group]
    tables["ids_len"] = [0 if u.grad is None else len(u.grad) for u in group]
    tables["values"] = [_address(u.grad) for u in group]
    tables["counted_stride"] = tables["ids_stride"] = tables["repeat"] = 1
    for name in LAW:
        tables[name] = [getattr(u.law, name) for u in group]
    tables["sign"] = [-1.0 if u.maximize else 1.0 for u in group]
    tables["n"] = [u.n for u in group]
    tables["floor"] = [u.floor for u in group]
    return tables


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()
