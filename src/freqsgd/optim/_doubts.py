"""Warn where a step would go wrong in silence: a table that nobody counts, ids that were merged."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from collections.abc import Iterable, Sequence
from itertools import compress

from torch import Tensor
from torch.nn import Parameter

from freqsgd.optim._parameters import TABLES, Describe
from freqsgd.optim._plain import Update

# A gradient with so few rows that are not zero belongs to a table. Layers with dead units have zero
# rows too, but hardly this many when training starts, which is when they are looked at.
MIN_ROWS, MAX_SHARE = 1000, 0.1
SAMPLE = 4096  # rows that are looked at


class Doubts:
    """A record of what an optimizer has looked at, so that it looks once and warns once."""

    def __init__(self) -> None:
        self._ordinary: set[Tensor] = set()  # taken for ordinary weights
        self._gradients: dict[Tensor, weakref.ref[Tensor]] = {}  # of the latest step
        self._merged = False

    def accept(self, params: Iterable[Tensor]) -> None:
        """Say nothing of these: it is known whether they are tables."""
        self._ordinary.update(params)

    def forget(self, param: Tensor) -> None:
        """Let go of a parameter that has left the optimizer."""
        self._ordinary.discard(param)
        self._gradients.pop(param, None)

    def uncounted_tables(self, updates: Sequence[Update], remedy: str) -> None:
        """Warn of tables among ordinary weights, at the first gradient of each weight."""
        new = [
            u
            for u in updates
            if not u.table
            and type(u.param) in (Tensor, Parameter)  # shards of ranks would need collectives
            and u.law.power > 0  # else frequencies do not matter
            and u.param.dim() == 2
            and u.param not in self._ordinary
            and u.grad is not None
            and u.grad.any()  # a gradient of zero says nothing
        ]
        if not new:
            return
        known = _embedding_weights()
        embeddings = [u for u in new if id(u.param) in known]
        alike = [u for u in new if id(u.param) not in known and _looks_like_table(u)]
        if embeddings:
            _warn(
                "The weight of an nn.Embedding or nn.EmbeddingBag has a dense gradient and is not "
                f"marked as a table: {_names(embeddings)}. It is updated as an ordinary weight, "
                f"whatever the frequency of its rows. {remedy}"
            )
        if alike:
            _warn(
                "Nearly all rows of a dense gradient are zero, so the parameter looks like a "
                f"table: {_names(alike)}. It is updated as an ordinary weight. If it is a table, "
                'put it into a group with "table": True and call optimizer.observe(param, ids) for '
                "each batch"
            )
        self._ordinary.update(u.param for u in new)  # last: a warning may be turned into an error

    def merged_ids(self, param: Tensor, describe: Describe) -> None:
        """Warn of a sparse gradient whose ids are counted although some may be missing."""
        grad = param.grad
        if self._merged or grad is None or grad.is_inference():
            return
        before = self._gradients.get(param)
        if grad.is_coalesced() and grad._nnz() > 1:
            what = "is coalesced, as DDP delivers it"
        elif grad._version and (before is None or before() is not grad):
            # zero_grad(set_to_none=False) changes a gradient in place too, but that of last step.
            what = "was changed after backward() made it, as a second backward() does"
        else:
            self._gradients[param] = weakref.ref(grad)
            return
        _warn(
            f"the sparse gradient of {describe(param)} {what}, which can merge repeated ids: "
            "occurrences may be missing from the counts. Call freqsgd.watch(model, optimizer) "
            "once, or optimizer.observe(param, ids) for each batch"
        )
        self._merged = True
        self._gradients.clear()


def _embedding_weights() -> set[int]:
    """Return the identities of the weights of all embedding modules in the process.

    A parameter does not say whose it is. The garbage collector knows all modules; asking it takes
    some milliseconds and needs no hooks in other people's classes.
    """
    kinds = {id(kind) for base in TABLES for kind in _with_subclasses(base)}
    objects = gc.get_objects()
    modules = compress(objects, map(kinds.__contains__, map(id, map(type, objects))))
    return {id(module.__dict__.get("_parameters", {}).get("weight")) for module in modules}


def _with_subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(_with_subclasses, kind.__subclasses__()))


def _looks_like_table(update: Update) -> bool:
    """Return whether few rows of a gradient are not zero, as far as a sample of them tells."""
    grad = update.grad
    if grad is None or len(grad) < MIN_ROWS:
        return False
    rows = grad[:: -(-len(grad) // SAMPLE)]
    return float((rows != 0).any(1).float().mean()) < MAX_SHARE


def _names(updates: Sequence[Update]) -> str:
    return ", ".join(u.describe(u.param) for u in updates)


def _warn(message: str) -> None:
    """Warn at the line that called ``step()``, past torch's wrappers of it."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(
        ("freqsgd.optim.", "torch.")
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level + 1)
