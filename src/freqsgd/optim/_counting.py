"""How a table's counters take in the tokens of a step.

A table's state is

- ``counts``: one number per row; int32 until the table has counted 2^31 - 1 indices, then int64,
  so it never saturates; float64 with ``halflife``
- ``indices``: indices counted so far, which bounds every count
- ``units``: samples seen so far times ``tokens_per_sample``; equal to ``indices`` unless the
  caller said otherwise. An integer: it is divided only where it is used
- ``mass`` and ``origin``, with ``halflife`` only: the sample with number t weighs
  2^((t - origin) / halflife), and ``mass`` is the weight of all units so far

With ``count="batch"`` the step takes the sample's place: a row counts once per step that holds it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from freqsgd.rates import check_ids, check_integers

INT32_MAX = 2**31 - 1
MAX_EXPONENT = 500.0  # halflives between origin and the latest sample; 2^500 is far from overflow

COUNTER_KEYS = frozenset({"counts", "indices", "units", "mass", "origin", "observed"})

State = dict[str, Any]
Observation = tuple[Tensor, int]  # ids, and the units (see above) they stand for


@dataclass(slots=True)
class Batch:
    """What one step counts on one table, and the number of samples it then has seen."""

    ids: Tensor  # int64, one per occurrence
    increments: Tensor | None  # what each occurrence adds (None: 1)
    once: bool  # a row counts once, however often it occurs
    n: float  # samples seen, this step's included
    added: float  # what this step added to n
    unseen: float  # what a row that was never counted is taken to count: one sample


def new_state(rows: int, device: torch.device, halflife: float | None) -> State:
    """Return the counters of a table that has seen nothing."""
    if halflife is None:
        counts = torch.zeros(rows, dtype=torch.int32, device=device)
        return {"counts": counts, "indices": 0, "units": 0}
    counts = torch.zeros(rows, dtype=torch.float64, device=device)
    return {"counts": counts, "indices": 0, "units": 0, "mass": 0.0, "origin": 0}


def begin_batch(
    state: State,
    observed: Sequence[Observation],
    *,
    count: str,
    tokens_per_sample: int,
    halflife: float | None,
) -> Batch:
    """Account for a step's observations; the caller then adds their increments to ``counts``."""
    once = count == "batch"
    per_sample = 1 if once else tokens_per_sample
    ids = observed[0][0] if len(observed) == 1 else torch.cat([ids for ids, _ in observed])
    units = _units(observed, once)
    first = state["units"]
    if halflife is not None:
        _move_origin(state, first // per_sample, (first + units - 1) // per_sample, halflife)
    state["units"] += units
    state["indices"] += 1 if once else ids.numel()
    if halflife is None:
        if state["indices"] > INT32_MAX and state["counts"].dtype == torch.int32:
            state["counts"] = state["counts"].long()
        n = samples_seen(state, per_sample)
        return Batch(ids, None, once, n, units / per_sample, 1.0)

    def weigh(position: Tensor) -> Tensor:
        return torch.exp2((position // per_sample - state["origin"]).double() / halflife)

    if once:
        positions = torch.full(ids.shape, first, device=ids.device)
    else:  # the i-th of m ids belongs to the unit that lies at i/m of the observation's units
        chunks = []
        start = first
        for chunk, length in observed:
            rank = torch.arange(chunk.numel(), device=ids.device)
            chunks.append(start + rank * length // max(chunk.numel(), 1))
            start += length
        positions = torch.cat(chunks)
    added = float(weigh(torch.arange(first, first + units)).sum())
    state["mass"] += added
    n, one = samples_seen(state, per_sample), present_weight(state, per_sample, halflife)
    return Batch(ids, weigh(positions), once, n, added / per_sample, one)


def check_span(
    observed: Sequence[Observation], *, count: str, tokens_per_sample: int, halflife: float
) -> None:
    """Refuse a step over so many halflives that its first samples would weigh nothing."""
    samples = _units(observed, once=count == "batch") / tokens_per_sample
    if samples / halflife > MAX_EXPONENT:
        raise ValueError(
            f"halflife={halflife} is too short for a step of {samples:.0f} samples: a step may "
            f"span at most {MAX_EXPONENT:.0f} halflives"
        )


def _units(observed: Sequence[Observation], once: bool) -> int:
    return 1 if once else sum([units for _, units in observed])


def _move_origin(state: State, first: int, last: int, halflife: float) -> None:
    """Rescale the counts before the weight of sample ``last`` could overflow."""
    if (last - state["origin"]) / halflife > MAX_EXPONENT:
        factor = 2.0 ** ((state["origin"] - first) / halflife)
        state["counts"].mul_(factor)
        state["mass"] *= factor
        state["origin"] = first


def samples_seen(state: State, per_sample: int) -> float:
    """Return the n of p = c / n, on the scale of ``counts``; 1 before the first sample."""
    return float(state["mass"] if "mass" in state else state["units"]) / per_sample or 1.0


def present_weight(state: State, per_sample: int, halflife: float | None) -> float:
    """Return what the latest sample weighs in ``counts``: 1 without ``halflife``."""
    if halflife is None:
        return 1.0
    latest = max(state["units"] - 1, 0) // per_sample
    return float(2.0 ** ((latest - state["origin"]) / halflife))


def state_from_counts(
    table: Tensor, counts: Tensor, samples: int, per_sample: int, halflife: float | None
) -> State:
    """Return counters that take over counts made elsewhere, as if all were of the latest sample."""
    check_integers("counts", counts)
    if counts.shape != table.shape[:1]:
        raise ValueError(f"counts must have shape ({len(table)},), got {tuple(counts.shape)}")
    if counts.numel() and counts.min() < 0:
        raise ValueError(f"counts must be >= 0, got {int(counts.min())}")
    total = int(counts.sum(dtype=torch.int64))
    if not isinstance(samples, int | np.integer) or samples < (1 if total else 0):
        raise ValueError(
            f"samples must be an integer, at least 1 for counts that sum to {total}, got {samples}"
        )
    units = int(samples) * per_sample
    if halflife is None:
        dtype = torch.int64 if total > INT32_MAX else torch.int32
        fading = {}
    else:
        dtype = torch.float64
        fading = {"mass": float(units), "origin": max(units - 1, 0) // per_sample}
    counts = counts.detach().to(table.device, dtype, copy=True)
    return {"counts": counts, "indices": total, "units": units, **fading}


def check_state(state: State, rows: int) -> None:
    """Refuse saved state that no run can have written, or that belongs to another table."""
    for ids, units in state.get("observed", ()):
        check_ids(ids, rows)
        if ids.dtype != torch.int64 or ids.dim() != 1:
            raise ValueError(f"saved observations must be a list of int64 ids, got {ids.dtype}")
        if not isinstance(units, int) or units < 0:
            raise ValueError(f"saved observations stand for {units} units: the file is damaged")
    counts = state.get("counts")
    numbers = ["indices", "units", "mass", "origin"]
    if counts is None:
        if any(name in state for name in numbers):
            raise ValueError("saved counters have no 'counts': the file is damaged")
        return
    if counts.dtype not in (torch.int32, torch.int64, torch.float64):
        raise ValueError(f"saved counts must be int32, int64 or float64, got {counts.dtype}")
    if counts.shape != (rows,):
        raise ValueError(
            f"saved counts of shape {tuple(counts.shape)} do not fit a table of {rows} rows"
        )
    for name in numbers if counts.dtype == torch.float64 else numbers[:2]:
        if not isinstance(state.get(name), int | float) or not 0 <= state[name] < math.inf:
            raise ValueError(f"saved counts come without a sensible {name!r}: the file is damaged")
    largest = math.inf if counts.dtype == torch.float64 else state["indices"]
    if not ((counts >= 0) & (counts <= largest) & counts.isfinite()).all():
        raise ValueError("saved counts hold impossible numbers: the file is damaged")
