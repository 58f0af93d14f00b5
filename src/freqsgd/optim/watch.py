"""Count tokens in the forward pass, on one process or on many."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from freqsgd.optim._counting import Observation, State
from freqsgd.optim._moments import MomentsHook, probe_of
from freqsgd.optim._parameters import FORWARDS, TABLES
from freqsgd.optim._plain import wide

__all__ = ["Watch", "watch"]


class Observer(Protocol):
    """What a watch asks of an optimizer."""

    param_groups: list[dict[str, Any]]
    state: Any
    _watches: list[Any]
    _own_watch: Any
    _sums_squares: bool

    def observe(self, param: Tensor, ids: Tensor) -> None:
        """Take in the ids of a forward pass."""

    def _learn_names(self, model: nn.Module) -> None: ...

    def _mark_table(self, param: Tensor) -> None: ...

    def _add_moments(self, param: Tensor, moments: Tensor) -> None: ...


def watch(model: nn.Module, optimizer: Observer, process_group: Any = None) -> Watch:
    """Have every forward pass of a model's tables tell the optimizer which tokens it looked up.

    Needed where gradients do not say how often a token occurred: dense gradients, gradient
    accumulation, DDP. Each ``nn.Embedding`` and ``nn.EmbeddingBag`` whose weight is in the
    optimizer calls ``optimizer.observe`` while it is in training mode and gradients are enabled;
    padding is left out. These weights are tables from now on. Call it before ``torch.compile``.

    Model and optimizer that are copied together (``copy.deepcopy((model, optimizer))``) go on
    counting, into the copied optimizer. A model that is copied alone is not watched, nor is any
    copy where ranks are gathered from: call ``watch`` for the copy.

    Args:
        model: the model; a ``DistributedDataParallel`` one brings its process group
        optimizer: a :class:`freqsgd.CFAdam`, :class:`freqsgd.CFSGD` or :class:`freqsgd.FASGD`
        process_group: gather what these ranks observe at every step, so that all of them count
            the whole batch. Every rank must call ``step()`` equally often

    Returns:
        A handle with ``remove()``, which is a context manager too.

    Example:
        >>> emb = torch.nn.Embedding(10, 4)  # dense gradients
        >>> opt = CFSGD(emb.parameters(), lr=0.1)
        >>> handle = watch(emb, opt)
        >>> emb(torch.tensor([3, 3, 7])).sum().backward()
        >>> opt.step()
        >>> opt.counts(emb.weight)
        tensor([0, 0, 0, 2, 0, 0, 0, 1, 0, 0])
        >>> handle.remove()
    """
    if not hasattr(optimizer, "_watches"):
        raise TypeError(f"watch needs a CFAdam, CFSGD or FASGD, got {type(optimizer).__name__}")
    if optimizer._own_watch is not None:
        optimizer._own_watch.remove()
        optimizer._own_watch = None
    return Watch(model, optimizer, process_group, optimizer.param_groups)


class Watch:
    """What :func:`watch` returns: call ``remove()`` in the end, or use it in a ``with`` block.

    The hooks of the modules and the optimizer share it. If both are copied together, by deepcopy
    or pickle, so are their copies joined; the hooks of a model that is copied alone do nothing.
    """

    # What a copy starts with.
    _reference: weakref.ref[Observer] | None = None
    _process_group: Any = None
    _modules: Sequence[Any] = ()
    _handles: Sequence[Any] = ()

    def __init__(
        self,
        model: nn.Module,
        optimizer: Observer,
        process_group: Any,
        groups: Sequence[dict[str, Any]],
    ) -> None:
        if process_group is None and isinstance(model, DistributedDataParallel):
            process_group = model.process_group
        known = {id(p) for group in groups for p in group["params"]}
        self._modules = [
            m for m in model.modules() if isinstance(m, TABLES) and id(m.weight) in known
        ]
        if not self._modules:
            raise ValueError("no nn.Embedding or nn.EmbeddingBag of the model is in the optimizer")
        others = [hook for m in self._modules for hook in _hooks(m, optimizer)]
        if any(hook.watch._handles for hook in others):
            raise ValueError("the model is being watched already: remove() that watch first")
        for hook in others:  # of a watch that was copied, which nobody can remove()
            hook.watch = Watch.__new__(Watch)
        self._process_group = process_group
        self._handles = [
            m.register_forward_hook(_Hook(self), with_kwargs=True) for m in self._modules
        ]
        self.attach(optimizer)
        optimizer._watches.append(self)
        whole: Any = model.module if isinstance(model, DistributedDataParallel) else model
        optimizer._learn_names(whole)
        for module in self._modules:
            optimizer._mark_table(module.weight)

    def __getstate__(self) -> None:
        """Copy nothing: modules and optimizer are copied only where the caller copies them."""

    @property
    def gathers(self) -> bool:
        """Return whether other ranks take part."""
        return self._process_group is not None

    def attach(self, optimizer: Observer) -> None:
        """Tell this optimizer from now on, as long as somebody else holds it."""
        self._reference = weakref.ref(optimizer)

    @property
    def _optimizer(self) -> Observer | None:
        return None if self._reference is None else self._reference()

    def watches(self, param: Tensor) -> bool:
        """Return whether ``param`` is a table whose forward passes are counted."""
        return any(param is module.weight for module in self._modules)

    def observe(self, module: Any, args: Any, kwargs: Any, output: Tensor) -> None:
        """Tell the optimizer what a forward pass looked up."""
        if self._optimizer is None:
            return
        if not (module.training and torch.is_grad_enabled() and module.weight.requires_grad):
            return
        if torch._C._current_graph_task_id() != -1:
            return  # activation checkpointing runs a forward pass again within backward
        if not self.gathers and _inside_ddp():
            raise RuntimeError(
                "the model was wrapped in DistributedDataParallel after the optimizer began to "
                "watch it, so every rank would count its own part of the batch: call "
                "freqsgd.watch(model, optimizer) with the wrapped model"
            )
        call = dict(zip(("input", "offsets", "per_sample_weights"), args, strict=False)) | kwargs
        ids: Tensor = call["input"]
        counted = ids if module.padding_idx is None else ids[ids != module.padding_idx]
        self._optimizer.observe(module.weight, counted)
        # A sparse gradient that nothing merges holds every occurrence itself.
        state = self._optimizer.state[module.weight]
        merged = self.gathers or "merged" in state
        known = type(module).forward in FORWARDS  # else the output may be anything
        if self._optimizer._sums_squares and known and (merged or not module.sparse):
            output.register_hook(MomentsHook(self._tell_moments, state, module, call))

    def _tell_moments(self, param: Tensor, moments: Tensor) -> None:
        if self._optimizer is not None:
            self._optimizer._add_moments(param, moments)

    def gather(self) -> dict[Tensor, list[Observation]]:
        """Return what all ranks have observed since the last step, by ``observe`` too.

        Every rank takes part in every step, with or without observations.
        """
        if self._optimizer is None or not self.gathers:
            return {}
        if dist.get_world_size(self._process_group) == 1:
            return {}
        state = self._optimizer.state
        if self._optimizer._sums_squares:
            self._gather_moments(state)
        groups = self._optimizer.param_groups
        params = [p for group in groups for p in group["params"] if p.dim() == 2]
        observed: list[list[Observation]] = [state[p].get("observed", []) for p in params]
        # One row per table: the number of observations, of their ids and of their units.
        header = torch.tensor(
            [[len(o), sum(i.numel() for i, _ in o), sum(u for _, u in o)] for o in observed],
            device=params[0].device,
        )
        headers = self._all_gather(header)
        lengths = [h[:, 1].tolist() for h in headers]
        own = torch.cat(
            [header.new_empty(0), *(i.to(header.device) for o in observed for i, _ in o)]
        )
        ids = nn.functional.pad(own, (0, max(map(sum, lengths)) - own.numel()))
        chunks = [
            rank_ids[: sum(length)].split(length)
            for rank_ids, length in zip(self._all_gather(ids), lengths, strict=True)
        ]
        return {
            param: [
                (chunk[k].to(param.device), int(h[k, 2]))
                for chunk, h in zip(chunks, headers, strict=True)
            ]
            for k, param in enumerate(params)
            if any(h[k, 0] > 0 for h in headers)
        }

    def _gather_moments(self, state: Any) -> None:
        """Sum over all ranks what was told of each table, nothing where no rank was told."""
        params = list({id(module.weight): module.weight for module in self._modules}.values())
        own = [state[p].get("moments", _no_moments(state[p], p)) for p in params]
        total = torch.cat([moments.reshape(-1) for moments in own])
        dist.all_reduce(total, group=self._process_group)
        parts = total.split([moments.numel() for moments in own])
        for param, part in zip(params, parts, strict=True):
            state[param]["moments"] = part.view(-1, param.shape[1])

    def _all_gather(self, tensor: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(self._process_group))]
        dist.all_gather(parts, tensor, group=self._process_group)
        return parts

    def remove(self) -> None:
        """Stop counting in the forward pass."""
        for handle in self._handles:
            handle.remove()
        if self._optimizer is not None:
            self._optimizer._watches.remove(self)
            self._reference = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


class _Hook:
    """The forward hook of a watched module."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        # It runs in Python even where the model is compiled.
        self._observe = torch.compiler.disable(self._tell)

    def _tell(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        self.watch.observe(module, args, kwargs, output)

    def __call__(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        self._observe(module, args, kwargs, output)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Hook, (self.watch,)


def _no_moments(state: State, param: Tensor) -> Tensor:
    return wide(param.new_zeros(1 + len(probe_of(state, param)), param.shape[1]))


def _inside_ddp() -> bool:
    """Return whether this is the forward pass of a DistributedDataParallel model of many ranks."""
    active: Any = getattr(DistributedDataParallel, "_active_ddp_module", None)
    return active is not None and dist.get_world_size(active.process_group) > 1


def _hooks(module: nn.Module, optimizer: Observer) -> list[_Hook]:
    """Return the hooks of a module that tell this optimizer."""
    hooks = module._forward_hooks.values()
    return [h for h in hooks if isinstance(h, _Hook) and h.watch._optimizer is optimizer]
