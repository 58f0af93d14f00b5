"""Count tokens in the forward pass, on one process or on many."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from freqsgd.optim._base import FrequencySGD
from freqsgd.optim._counting import Observation

__all__ = ["Watch", "watch"]

_TABLES = (nn.Embedding, nn.EmbeddingBag)


def watch(model: nn.Module, optimizer: FrequencySGD, process_group: Any = None) -> Watch:
    """Have every forward pass of a model's tables tell the optimizer which tokens it looked up.

    Needed where gradients do not say how often a token occurred: dense gradients, gradient
    accumulation, DDP. Each ``nn.Embedding`` and ``nn.EmbeddingBag`` whose weight is in the
    optimizer calls ``optimizer.observe`` while it is in training mode and gradients are enabled;
    padding is left out. Call it before ``torch.compile``.

    Args:
        model: the model; a ``DistributedDataParallel`` one brings its process group
        optimizer: a :class:`freqsgd.CFSGD` or :class:`freqsgd.FASGD`
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
    if not isinstance(optimizer, FrequencySGD):
        raise TypeError(f"watch needs a CFSGD or FASGD, got {type(optimizer).__name__}")
    if process_group is None and isinstance(model, DistributedDataParallel):
        process_group = model.process_group
    return Watch(model, optimizer, process_group)


class Watch:
    """What :func:`watch` returns: call ``remove()`` in the end, or use it in a ``with`` block."""

    def __init__(self, model: nn.Module, optimizer: FrequencySGD, process_group: Any) -> None:
        known = {id(p) for group in optimizer.param_groups for p in group["params"]}
        watched = {id(m) for other in optimizer._watches for m in other._modules}
        self._modules = [
            m for m in model.modules() if isinstance(m, _TABLES) and id(m.weight) in known
        ]
        if not self._modules:
            raise ValueError("no nn.Embedding or nn.EmbeddingBag of the model is in the optimizer")
        if any(id(m) in watched for m in self._modules):
            raise ValueError("the model is being watched already: remove() that watch first")
        self._optimizer = optimizer
        self._process_group = process_group
        hook = _Hook(self)
        self._handles = [m.register_forward_hook(hook, with_kwargs=True) for m in self._modules]
        optimizer._watches.append(self)

    def watches(self, param: Tensor) -> bool:
        """Whether ``param`` is a table whose forward passes are counted."""
        return any(param is module.weight for module in self._modules)

    def observe(self, module: Any, args: Any, kwargs: Any) -> None:
        """Tell the optimizer what a forward pass looked up."""
        if not (module.training and torch.is_grad_enabled() and module.weight.requires_grad):
            return
        if torch._C._current_graph_task_id() != -1:
            return  # activation checkpointing runs a forward pass again within backward
        ids: Tensor = args[0] if args else kwargs["input"]
        if module.padding_idx is not None:
            ids = ids[ids != module.padding_idx]
        self._optimizer.observe(module.weight, ids)

    def gather(self) -> dict[Tensor, list[Observation]]:
        """What all ranks have observed since the last step, by ``observe`` too.

        Every rank takes part in every step, with or without observations.
        """
        if self._process_group is None or dist.get_world_size(self._process_group) == 1:
            return {}
        state = self._optimizer.state
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

    def _all_gather(self, tensor: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(self._process_group))]
        dist.all_gather(parts, tensor, group=self._process_group)
        return parts

    def remove(self) -> None:
        """Stop counting in the forward pass."""
        for handle in self._handles:
            handle.remove()
        if self in self._optimizer._watches:
            self._optimizer._watches.remove(self)

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
    """The forward hook of a watch. A copy of the module, by deepcopy or pickle, is not watched."""

    def __init__(self, watch: Watch) -> None:
        # It runs in Python even where the model is compiled.
        self._observe = torch.compiler.disable(watch.observe)

    def __call__(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        self._observe(module, args, kwargs)

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return _idle_hook, ()


def _idle_hook() -> Any:
    return _idle


def _idle(module: Any, args: Any, kwargs: Any, output: Any) -> None:
    pass
