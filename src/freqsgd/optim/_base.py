"""What all optimizers share: observations, counters, the order of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor, nn

from freqsgd.optim import _plain
from freqsgd.optim._counting import (
    Batch,
    Observation,
    State,
    begin_batch,
    check_span,
    new_state,
)
from freqsgd.optim._doubts import Doubts
from freqsgd.optim._options import CheckedOptimizer, Group, counting_options
from freqsgd.optim._parameters import (
    check_fused,
    check_rows,
    check_table,
    describe,
    rows_of,
    why_not_fused,
)
from freqsgd.optim._plain import Update
from freqsgd.optim.groups import groups_of, tables_of
from freqsgd.optim.watch import Watch
from freqsgd.rates import RateLaw

_PER_ROW = {"counts", "exp_avg", "exp_avg_sq"}  # state with an entry for every row of a table


class FrequencyOptimizer(CheckedOptimizer):
    """An optimizer in which every row of a table has a rate that follows its frequency.

    The subclasses say where frequencies come from, and how ordinary weights are updated.
    """

    _remedy: str  # what to do about a table that is taken for an ordinary weight
    _sums_squares = False  # whether a watch reports the gradients of occurrences
    _own_watch: Watch | None = None  # of an optimizer that was given a model

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self._watches: list[Any] = []
        self._doubts = Doubts()
        self._tasks: dict[Tensor, int] = {}  # the backward pass that moments were last added in
        self._names: dict[Tensor, str] = {}  # of parameters, where torch's groups have none
        model = params if isinstance(params, nn.Module) else None
        if model is not None:
            self._names.update((param, name) for name, param in model.named_parameters())
        super().__init__(
            params if model is None else groups_of(model), {**defaults, "table": False}
        )
        if model is not None:
            self._doubts.accept(tables_of(model))  # those that output layers share, too
            if tables := [group for group in self.param_groups if group["table"]]:
                self._own_watch = Watch(model, self, None, tables)

    # ---- what the subclasses say -----------------------------------------------------------

    def _is_table(self, update: Update, group: Group, observed: bool) -> bool:
        """Return whether the parameter's rows are tokens; raise where that cannot be served."""
        raise NotImplementedError  # pragma: no cover

    def _set_frequencies(self, update: Update, group: Group, batch: Batch | None) -> None:
        """Give ``update`` the source of its frequencies, the batch being counted."""
        raise NotImplementedError  # pragma: no cover

    def _counts_rows(self, group: Group) -> bool:
        """Return whether the rule needs to know what the batch holds."""
        raise NotImplementedError  # pragma: no cover

    def _scale_columns(self, updates: Sequence[Update]) -> None:
        """Set what multiplies each column of the tables' gradients, where the rule has that."""

    def _step_ordinary(self, updates: Sequence[tuple[Update, Group]]) -> None:
        """Update the weights that are not tables."""
        for update, _ in updates:
            _plain.apply(update)

    def resize(self, param: Tensor, new: Tensor | None = None) -> None:
        """Go on with a table that has grown: rows were added at its end, the old ones keep counts.

        Args:
            param: the parameter as the optimizer knows it
            new: the parameter that takes its place, where that is another object

        Example:
            >>> emb = torch.nn.Embedding(10, 4, sparse=True)
            >>> opt = CFSGD(emb.parameters(), lr=0.1)
            >>> old = emb.weight
            >>> emb.weight = torch.nn.Parameter(torch.cat([old.detach(), torch.zeros(5, 4)]))
            >>> opt.resize(old, emb.weight)
        """
        group = self._group_of(param)
        new = param if new is None else new
        check_table(new, describe)
        if new.shape[1:] != param.shape[1:]:
            raise ValueError(
                f"{self._describe(param)} cannot change its columns: {param.shape[1]} before, "
                f"{new.shape[1]} now"
            )
        state = self.state.pop(param, {})
        self._doubts.forget(param)
        for name in _PER_ROW & state.keys():
            grown = len(new) - len(state[name])
            if grown < 0:
                self.state[param] = state
                raise ValueError(
                    f"{self._describe(param)} cannot shrink: {len(state[name])} rows counted, "
                    f"{len(new)} left"
                )
            state[name] = torch.cat(
                [state[name], state[name].new_zeros(grown, *state[name].shape[1:])]
            )
        for name in ("probe", "moments"):  # they may be of fewer rows than are compared now
            state.pop(name, None)
        group["params"] = [new if p is param else p for p in group["params"]]
        if param in self._names:
            self._names[new] = self._names.pop(param)
        if state:
            self.state[new] = state

    def _mark_table(self, param: Tensor) -> None:
        """Take a parameter for a table from now on."""
        group = self._group_of(param)
        if self._counts_rows(group):
            self._counters(param, group)

    def _is_marked(self, param: Tensor, group: Group) -> bool:
        """Return whether a parameter is known to be a table, whatever its gradient."""
        return bool(
            group["table"]
            or "counts" in self.state.get(param, {})
            or any(watch.watches(param) for watch in self._watches)
        )

    # ---- observations ----------------------------------------------------------------------

    @torch.no_grad()
    def observe(self, param: Tensor, ids: Tensor, samples: int | None = None) -> None:
        """Say which tokens the batch holds, where the gradient cannot.

        That is so for dense gradients, for gradients that DDP or a second ``backward()`` has
        merged, and for the output table of a softmax. The ids wait for the next :meth:`step`,
        which counts them in place of the gradient's own. :func:`freqsgd.watch` calls this for
        every ``nn.Embedding`` and ``nn.EmbeddingBag`` of a model.

        Args:
            param: the table
            ids: one entry per occurrence, in any shape; leave padding out
            samples: how many samples the ids come from (default: the number of ids divided by
                ``tokens_per_sample``). With ``count="batch"`` steps are counted instead
        """
        group = self._group_of(param)
        check_table(param, self._describe)
        check_rows(param, ids, self._describe)
        units = ids.numel()
        if samples is not None:
            least = min(ids.numel(), 1)
            if not isinstance(samples, int | np.integer) or samples < least:
                raise ValueError(f"samples must be an integer >= {least}, got {samples!r}")
            units = int(samples) * group.get("tokens_per_sample", 1)
        flat = ids.detach().reshape(-1).to(param.device, torch.int64, copy=True)
        self.state[param].setdefault("observed", []).append((flat, units))

    def _add_moments(self, param: Tensor, moments: Tensor) -> None:
        """Add the moments of a pass; those of gradients that were discarded since are dropped."""
        state, task = self.state[param], torch._C._current_graph_task_id()
        if param.grad is None and self._tasks.get(param) != task:
            state.pop("moments", None)
        self._tasks[param] = task
        state["moments"] = state["moments"] + moments if "moments" in state else moments

    # ---- the step --------------------------------------------------------------------------

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Count the tokens of the batch, then update the weights.

        Nothing is written if a gradient holds NaN or infinity.

        Args:
            closure: re-evaluates the model and returns the loss
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        observed = self._observations()
        plain: list[Update] = []
        fused: list[Update] = []
        plans = list(self._plan(observed))
        for update, _, use_kernel in plans:
            (fused if use_kernel else plain).append(update)
        _plain.check(plain)
        if fused:
            from freqsgd.optim import _fused

            _fused.check(fused)
        self._doubts.uncounted_tables(plain, self._remedy)
        counted = [(u, g, self._observed(u, g, observed)) for u, g, _ in plans]
        for update, group, batch in counted:
            self._count(update, group, batch)
        self._scale_columns([u for u, _, _ in plans if u.table])
        self._step_ordinary([(u, g) for u, g, _ in plans if not u.table])
        for update in plain:
            if update.table:
                _plain.apply(update)
        if fused:
            _fused.apply(fused)
        return loss

    def _observations(self) -> dict[Tensor, list[Observation]]:
        """Return the observations since the last step, of all ranks where a watch gathers them."""
        observed = {p: state["observed"] for p, state in self.state.items() if "observed" in state}
        for watch in self._watches:
            observed.update(watch.gather())
        return observed

    def _plan(
        self, observed: dict[Tensor, list[Observation]]
    ) -> Iterator[tuple[Update, Group, bool]]:
        """Return what the step will do, and whether a kernel does it; nothing is counted yet."""
        name = self._describe
        for group in self.param_groups:
            law = self._check_group(group)
            for param in group["params"]:
                if param.grad is None and param not in observed:
                    continue
                update = Update(name, param, law, group["maximize"], *rows_of(param, name))
                update.table = self._is_table(update, group, param in observed)
                if not update.table:
                    yield update, group, False
                    continue
                self._check_counts(param, group)
                use_kernel = group["fused"] is not False and not why_not_fused(param)
                if group["fused"] and not use_kernel:
                    check_fused(param, name)  # raises
                yield update, group, use_kernel

    def _observed(
        self, update: Update, group: Group, observed: dict[Tensor, list[Observation]]
    ) -> list[Observation]:
        """Return the observations of a table, or else its gradient's own ids."""
        found = observed.get(update.param, [])
        if not found and update.ids is not None:
            found = [(update.ids, update.ids.numel())]
            if self._counts_rows(group) and group.get("count") != "batch":
                self._doubts.merged_ids(update.param, update.describe)
        if group.get("halflife") is not None:
            check_span(found, **counting_options(group))
        return found

    def _count(self, update: Update, group: Group, observed: list[Observation]) -> None:
        """Take in the observations of a table."""
        if not update.table:
            return
        state = self.state[update.param]
        state.pop("observed", None)
        batch = None
        if observed and self._counts_rows(group):
            state = self._counters(update.param, group)
            batch = begin_batch(state, observed, **counting_options(group))
            update.counts, update.batch = state["counts"], batch
        self._set_frequencies(update, group, batch)

    def _check_counts(self, param: Tensor, group: Group) -> None:
        """Follow a table to another device; refuse counters that do not fit it."""
        state = self.state[param]
        if "counts" not in state:
            return
        counts = state["counts"]
        if counts.shape[0] != param.shape[0]:
            raise RuntimeError(
                f"{self._describe(param)} has counts for {len(counts)} rows: call "
                "optimizer.resize(param) after adding rows to a table"
            )
        if ("mass" in state) != (group.get("halflife") is not None):
            raise RuntimeError(
                f"halflife was switched on or off after {self._describe(param)} was counted: make "
                "a new optimizer and hand the counts over with set_counts"
            )
        if counts.device != param.device:
            for name in ("counts", "square_avg"):
                if name in state:
                    state[name] = state[name].to(param.device)

    def _counters(self, param: Tensor, group: Group) -> State:
        """Return the state of a table, with counters."""
        state: State = self.state[param]
        if "counts" not in state:
            state.update(new_state(len(param), param.device, group.get("halflife")))
        return state

    # ---- copies ----------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        # A watch that gathers from other ranks is not copied: they may not copy theirs.
        watches = [watch for watch in self._watches if not watch.gathers]
        return {**super().__getstate__(), "_watches": watches}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("_watches", [])
        self.__dict__.setdefault("_doubts", Doubts())
        self.__dict__.setdefault("_tasks", {})
        for watch in self._watches:
            watch.attach(self)


def rates_at(law: RateLaw, frequencies: Tensor) -> Tensor:
    """Return the rates of tokens of these frequencies, in the widest floats of their device."""
    rates: Tensor = law.rate(_plain.wide(frequencies))
    return rates
