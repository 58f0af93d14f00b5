"""The step on the CPU: many tables handed to one kernel call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from freqsgd.kernels import rows
from freqsgd.optim._parameters import check_rows
from freqsgd.optim._plain import Update, non_finite
from freqsgd.rates import AdamLaw

SMALL = 1 << 15  # numbers in a step below which a second thread costs more than it brings

LAW = ("lr", "power", "cap", "weight_decay", "weight_decay_power")  # as in RateLaw and TABLE

NUMPY: dict[torch.dtype, Any] = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.int32: np.int32,
    torch.int64: np.int64,
}


def check(updates: Iterable[Update]) -> None:
    """Refuse a step that a kernel must not start, before anything is written.

    Sum the squares of each gradient that needs them.
    """
    for kind, group in _grouped(updates, lambda u: u.param.dtype if u.grad is not None else None):
        tables = _describe_gradients(group)
        widths = tables["dim"].tolist() if group[0].sums_squares else []  # of all tables or none
        sums = torch.zeros(rows.parts_of(tables), sum(widths), dtype=torch.float64)
        if widths:
            tables["squares"] = sums.data_ptr() + 8 * (np.cumsum(widths) - widths)
            tables["squares_stride"] = sum(widths)
        bad = rows.find_bad(tables, NUMPY[kind], _workers(tables))
        if bad is not None:
            update = group[bad]
            if update.ids is not None:
                check_rows(update.param, update.ids, update.describe)
            raise non_finite(update.describe(update.param))
        if widths:
            for update, squares in zip(group, sums.sum(0).split(widths), strict=True):
                update.squares = squares


def apply(updates: Iterable[Update]) -> None:
    """Count and update; equal to :func:`freqsgd.optim._plain.apply` on each."""
    for (weight, count, source), group in _grouped(updates, _types):
        tables = _describe(group)
        rows.update(tables, weight, count, source, _workers(tables))
        increment_version([u.param for u in group if u.grad is not None])


def workers_for(numbers: int) -> int:
    """Return how many threads to use for so many numbers: torch's own setting at most."""
    return 1 if numbers < SMALL else torch.get_num_threads()


def _workers(tables: Any) -> int:
    return workers_for(int((tables["ids_len"] * tables["dim"]).sum()))


def _types(update: Update) -> tuple[Any, Any, Any]:
    """Return the types of weights, counters (any if there is none) and source."""
    assert update.source is not None
    counts = update.source if update.counts is None else update.counts
    return NUMPY[update.param.dtype], NUMPY[counts.dtype], NUMPY[update.source.dtype]


def _grouped(
    updates: Iterable[Update], key: Callable[[Update], Any]
) -> Iterable[tuple[Any, list[Update]]]:
    """Group updates by their kind; leave out those of kind None."""
    groups: dict[Any, list[Update]] = defaultdict(list)
    for update in updates:
        kind = key(update)
        if kind is not None:
            groups[kind].append(update)
    return groups.items()


def _describe_gradients(group: Sequence[Update]) -> Any:
    """Return the kernel's records, with the rows of the gradients."""
    tables = np.zeros(len(group), rows.TABLE)
    tables["rows"], tables["dim"] = zip(*[u.param.shape for u in group], strict=True)
    tables["values_stride"] = tables["dim"]
    tables["ids"] = [_address(u.ids) for u in group]
    tables["ids_len"] = [0 if u.grad is None else u.grad.shape[0] for u in group]
    tables["values"] = [_address(u.grad) for u in group]
    tables["ids_stride"] = tables["repeat"] = 1
    return tables


def _describe(group: Sequence[Update]) -> Any:
    """Return the kernel's records, with all of the update."""
    tables = _describe_gradients(group)
    tables["weight"] = [u.param.data_ptr() for u in group]
    tables["source"] = [_address(u.source) for u in group]
    tables["padding"] = -1
    batches = [u.batch for u in group]
    tables["counts"] = [_address(u.counts) for u in group]
    tables["counted"] = [0 if b is None else b.ids.data_ptr() for b in batches]
    tables["counted_len"] = [0 if b is None else b.ids.numel() for b in batches]
    tables["counted_stride"] = 1
    tables["increments"] = [0 if b is None else _address(b.increments) for b in batches]
    tables["once"] = [b is not None and b.once for b in batches]
    tables["added"] = [0.0 if b is None else b.added for b in batches]
    for name in LAW:
        tables[name] = [getattr(u.law, name) for u in group]
    tables["weight_decay"] *= [u.grad is not None for u in group]
    tables["sign"] = [-1.0 if u.maximize else 1.0 for u in group]
    tables["n"] = [u.n for u in group]
    tables["unseen"] = [u.unseen for u in group]
    tables["scale"] = [_address(u.scale) for u in group]
    describe_adam(tables, [u.law for u in group if isinstance(u.law, AdamLaw)])
    return tables


def describe_adam(tables: Any, laws: Sequence[AdamLaw]) -> None:
    """Add CFAdam's part of the law, which all tables have or none."""
    if laws:
        pairs = list(zip(laws, tables["added"].tolist(), strict=True))
        tables["least"] = [law.least(tokens) for law, tokens in pairs]
        tables["rare"] = [law.rare(tokens) for law, tokens in pairs]
        tables["largest"] = [law.largest for law in laws]
        tables["decoupled"] = 1


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()
