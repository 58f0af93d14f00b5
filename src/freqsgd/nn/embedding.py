"""An embedding that updates itself in the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.autograd.graph import increment_version
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from freqsgd.kernels import lookup, rows
from freqsgd.optim import _fused
from freqsgd.optim._counting import State, begin_batch, check_state, new_state
from freqsgd.optim._parameters import describe, why_not_fused
from freqsgd.optim._plain import non_finite
from freqsgd.rates import AdamLaw, RateLaw, check_counting, check_integers, number

__all__ = ["CFEmbedding"]


class CFEmbedding(nn.Module):
    r"""Embedding tables that apply CF-SGD or CFAdam to themselves during ``backward()``.

    The forward pass gathers rows; the backward pass counts the tokens and updates their rows at
    once. There is no gradient tensor, no optimizer call and no state but one counter per row (and,
    with ``rule="adam"``, one number per column). The result equals ``nn.Embedding(sparse=True)``
    trained by :class:`freqsgd.CFSGD` or :class:`freqsgd.CFAdam`.

    Args:
        num_embeddings: rows of the table; or rows of each field, for one table per field
        embedding_dim: size of a row
        lr: learning rate, as for the optimizer; :meth:`follow` takes it from an optimizer
        rule: ``"sgd"`` for CF-SGD, ``"adam"`` for CFAdam
        pooling: None gives a row per id; ``"sum"`` adds the rows of a sample, i.e. along the last
            axis of the ids
        padding_idx: an id (of a single table) that is not counted, updated or summed
        tokens_per_sample: as for :class:`freqsgd.CFSGD`; fields have one id per sample each
        weight_decay, weight_decay_power: as for the optimizer
        power, max_lr, count: as for :class:`freqsgd.CFSGD`
        beta2, eps, clip: as for :class:`freqsgd.CFAdam`
        dtype: float32 or float64

    Shape:
        - ids: (..., F) for F fields, with ids of field f in [0, ``num_embeddings[f]``); any shape
          for one table, (..., L) if pooled
        - output: ids' shape + (d,); with ``pooling="sum"`` ids' shape without its last axis + (d,)

    Attributes:
        weight: the rows of all fields, one field after another; a buffer, not a parameter
        counts: how often each row occurred
        square_avg: second moments per field and column, and ``steps`` their number of steps; with
            ``rule="adam"`` only

    Example:
        >>> emb = CFEmbedding([1000, 500], 16, lr=0.5)
        >>> out = emb(torch.tensor([[3, 0], [3, 499]]))
        >>> out.shape
        torch.Size([2, 2, 16])
        >>> out.pow(2).mean().backward()
        >>> emb.counts[3]
        tensor(2, dtype=torch.int32)

    Note:
        Every backward pass through a lookup is one step: there is no gradient accumulation and
        nothing to clip. DDP averages gradients that do not exist here and is refused. Do not use a
        ``GradScaler``: gradients are applied while they are scaled, before it can unscale them. A
        backward pass does not show that its loss was scaled, so this is not detected until a
        gradient overflows, which raises an error. For both, use ``nn.Embedding`` with
        :class:`freqsgd.CFSGD`; bfloat16 autocast needs no scaler. In evaluation mode, or with
        gradients disabled, rows do not change.
    """

    weight: Tensor
    counts: Tensor
    seen: Tensor
    square_avg: Tensor
    steps: Tensor

    def __init__(
        self,
        num_embeddings: int | Sequence[int],
        embedding_dim: int,
        lr: float,
        *,
        rule: str = "sgd",
        pooling: str | None = None,
        padding_idx: int | None = None,
        power: float = 0.5,
        max_lr: float | None = None,
        count: str = "occurrence",
        tokens_per_sample: int = 1,
        weight_decay: float = 0.0,
        weight_decay_power: float = 1.0,
        beta2: float = 0.999,
        eps: float = 1e-8,
        clip: float | None = 3.0,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if rule not in ("sgd", "adam"):
            raise ValueError(f"rule must be 'sgd' or 'adam', got {rule!r}")
        if rule == "adam":
            _refuse_options(
                "adam",
                power=(power, 0.5),
                max_lr=(max_lr, None),
                count=(count, "occurrence"),
                tokens_per_sample=(tokens_per_sample, 1),
            )
        else:
            _refuse_options("sgd", beta2=(beta2, 0.999), eps=(eps, 1e-8), clip=(clip, 3.0))
        self.fields = np.ndim(num_embeddings) > 0
        sizes = [int(size) for size in np.atleast_1d(num_embeddings)]
        if not sizes or min(sizes) < 1 or embedding_dim < 1:
            raise ValueError(
                f"num_embeddings and embedding_dim must be >= 1, got {num_embeddings} and "
                f"{embedding_dim}"
            )
        if pooling not in (None, "sum"):
            raise ValueError(f"pooling must be None or 'sum', got {pooling!r}")
        check_counting(count=count, tokens_per_sample=tokens_per_sample)
        if padding_idx is not None:
            if self.fields:
                raise ValueError("padding_idx needs a single table: fields have one id each")
            if not -sizes[0] <= padding_idx < sizes[0]:
                raise ValueError(f"padding_idx {padding_idx} is out of range for {sizes[0]} rows")
            padding_idx %= sizes[0]
        if tokens_per_sample != 1 and self.fields:
            raise ValueError("tokens_per_sample is for a single table: fields have one id each")
        self.num_embeddings = sizes
        self.embedding_dim = embedding_dim
        self.pooling = pooling
        self.padding_idx = padding_idx
        self.count = count
        self.tokens_per_sample = len(sizes) if self.fields else tokens_per_sample
        self._leader: tuple[Optimizer, int] | None = None
        self.lr = lr
        self.power = power
        self.max_lr = max_lr
        self.weight_decay = weight_decay
        self.weight_decay_power = weight_decay_power
        self.rule = rule
        self.beta2, self.eps, self.clip = beta2, eps, clip
        self._law()  # refuses what is out of range

        total = sum(sizes)
        self.register_buffer("weight", torch.empty(total, embedding_dim, dtype=dtype))
        self.register_buffer("counts", new_state(total, self.weight.device, None)["counts"])
        self.register_buffer("seen", torch.zeros(2, dtype=torch.int64))  # indices, units
        if rule == "adam":
            moments = torch.zeros(len(sizes), embedding_dim, dtype=torch.float64)
            self.register_buffer("square_avg", moments)
            self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self._padding = -1 if padding_idx is None else padding_idx
        self._sizes = np.array(sizes, np.int64)
        self._starts = np.cumsum([0, *sizes[:-1]])
        self._anchor = torch.empty(0, requires_grad=True)  # makes autograd call backward
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw rows from N(0, 1) as ``nn.Embedding`` does, and forget all counts."""
        self.weight.normal_()
        if self.padding_idx is not None:
            self.weight[self.padding_idx].zero_()
        for name, buffer in self.named_buffers():
            if name != "weight":
                buffer.zero_()

    def follow(self, optimizer: Optimizer, group: int = 0) -> CFEmbedding:
        """Take the learning rate from a parameter group, as it is at each backward pass.

        So a scheduler that drives the optimizer of a model's other weights drives this table too.
        """
        optimizer.param_groups[group]["lr"]  # raises now rather than in backward
        self._leader = (optimizer, group)
        return self

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, ids: Tensor) -> Tensor:
        """Look up the rows of ``ids``."""
        if reason := why_not_fused(self.weight):
            raise RuntimeError(f"CFEmbedding runs on the CPU in float32 or float64: {reason}")
        if self.weight.shape != (self._sizes.sum(), self.embedding_dim) or not (
            self.counts.is_contiguous() and self.counts.shape == self.weight.shape[:1]
        ):
            raise RuntimeError(
                f"weight and counts must keep their {self._sizes.sum()} rows: copy into them in "
                "place, or make a new CFEmbedding"
            )
        check_integers("ids", ids)
        if self.fields and (ids.dim() == 0 or ids.shape[-1] != len(self.num_embeddings)):
            raise ValueError(
                f"ids must end in an axis of {len(self.num_embeddings)} fields, got shape "
                f"{tuple(ids.shape)}"
            )
        if self.pooling and ids.dim() == 0:
            raise ValueError("pooling needs ids with at least one axis")
        shape = (*(ids.shape[:-1] if self.pooling else ids.shape), self.embedding_dim)
        learns = self.training and torch.is_grad_enabled()
        matrix = self._as_matrix(ids, copy=learns)  # the caller may fill its tensor anew
        if not learns:
            return self._gather(matrix).view(shape)
        if DistributedDataParallel._active_ddp_module is not None:
            raise RuntimeError(
                "CFEmbedding updates itself on each rank and would drift apart under "
                "DistributedDataParallel: use nn.Embedding with CFSGD and freqsgd.watch"
            )
        out: Tensor = _Lookup.apply(self._anchor, matrix, self)  # type: ignore[no-untyped-call]
        return out.view(shape)

    def extra_repr(self) -> str:
        """Return what ``repr`` shows."""
        sizes = self.num_embeddings if self.fields else self.num_embeddings[0]
        return f"{sizes}, {self.embedding_dim}, lr={self._law().lr}, pooling={self.pooling!r}"

    def _law(self) -> RateLaw:
        lr = self.lr
        if self._leader is not None:
            optimizer, group = self._leader
            lr = optimizer.param_groups[group]["lr"]
        decay = {"weight_decay": self.weight_decay, "weight_decay_power": self.weight_decay_power}
        if self.rule == "adam":
            return AdamLaw(
                lr=number("lr", lr), **decay, beta2=self.beta2, eps=self.eps, clip=self.clip
            )
        return RateLaw(lr=number("lr", lr), power=self.power, max_lr=self.max_lr, **decay)

    def _as_matrix(self, ids: Tensor, copy: bool) -> Tensor:
        """Return ids as (samples, fields), (samples, ids of a sum) or (ids, 1)."""
        if self.fields or self.pooling:
            ids = ids.flatten(0, -2) if ids.dim() > 1 else ids.unsqueeze(0)
        else:
            ids = ids.reshape(-1, 1)
        return ids.to(torch.int64, copy=copy, memory_format=torch.contiguous_format).contiguous()

    def _gather(self, matrix: Tensor) -> Tensor:
        samples, width = matrix.shape
        repeats = 1 if self.fields else width
        starts, sizes = np.tile(self._starts, repeats), np.tile(self._sizes, repeats)
        out = self.weight.new_empty(samples if self.pooling else matrix.numel(), self.embedding_dim)
        bad = lookup.gather(
            self.weight.numpy(),
            matrix.numpy(),
            starts,
            sizes,
            self._padding,
            self.pooling is not None,
            out.numpy(),
            _fused.workers_for(matrix.numel() * self.embedding_dim),
        )
        if bad is not None:
            field = f" of field {bad % width}" if self.fields else ""
            raise IndexError(
                f"id {int(matrix.view(-1)[bad])}{field} is out of range for "
                f"{sizes[bad % width]} rows"
            )
        return out

    def _update(self, matrix: Tensor, grad: Tensor) -> None:
        grad = grad.resolve_neg().contiguous()
        tables = self._describe(matrix, grad)
        kind = _fused.NUMPY[self.weight.dtype]
        workers = _fused.workers_for(grad.numel())
        whole = tables[:1].copy()
        whole["ids"], whole["dim"] = 0, self._columns
        whole["ids_len"] = grad.numel() // self._columns
        squares = np.zeros((rows.parts_of(whole), self._columns))
        if self.rule == "adam":
            whole["squares"], whole["squares_stride"] = squares.ctypes.data, self._columns
        if rows.find_bad(whole, kind, workers) is not None:
            raise ValueError(
                f"{non_finite(describe(self.weight))}. CFEmbedding cannot be used with a "
                "GradScaler: use bfloat16 autocast without one, or nn.Embedding with CFSGD"
            )

        state: State = {
            "counts": self.counts,
            "indices": int(self.seen[0]),
            "units": int(self.seen[1]),
        }
        counted = matrix.numel()
        if self.padding_idx is not None:
            counted -= int((matrix == self.padding_idx).sum())
        batch = begin_batch(
            state,
            [(matrix.view(-1), counted)],
            count=self.count,
            tokens_per_sample=self.tokens_per_sample,
            halflife=None,
        )
        self.counts = state["counts"]
        self.seen[0], self.seen[1] = state["indices"], state["units"]
        tables["counts"] = tables["source"] = (
            self.counts.data_ptr() + self._starts * self.counts.element_size()
        )
        tables["n"], tables["added"], tables["unseen"] = batch.n, batch.added, batch.unseen
        if self.rule == "adam":
            law = self._law()
            assert isinstance(law, AdamLaw)
            total = self._occurrence_squares(matrix, grad, squares.sum(0))
            scale = self._scale(law, total, kind)
            tables["scale"] = scale.ctypes.data + np.arange(len(tables)) * scale.strides[0]
            _fused.describe_adam(tables, [law] * len(tables))
        count = _fused.NUMPY[self.counts.dtype]
        rows.update(tables, kind, count, count, workers)
        increment_version([self.weight, self.counts])

    @property
    def _columns(self) -> int:
        """Columns of the gradient as a matrix whose rows are samples or ids."""
        fields = len(self._sizes) if self.pooling is None else 1
        return fields * self.embedding_dim

    def _occurrence_squares(self, ids: Tensor, grad: Tensor, squares: Any) -> Any:
        """Return the squares of the occurrences from those of the gradient's rows."""
        if self.padding_idx is not None:
            counted = (ids != self.padding_idx).sum(1).double()
            squares = (counted @ grad.view(-1, self._columns).double().square()).numpy()
        elif not self.fields:
            squares = squares * ids.shape[1]
        return squares.reshape(-1, self.embedding_dim)

    def _scale(self, law: AdamLaw, squares: Any, kind: Any) -> Any:
        """Take the squares into the second moments; return what multiplies each column."""
        moments = self.square_avg.numpy()
        self.steps += 1
        moments[:] = law.moment(moments, squares)
        return law.scale(moments, int(self.steps)).astype(kind)

    def _describe(self, ids: Tensor, grad: Tensor) -> Any:
        """Return the update as records of the kernel, one per field."""
        fields, dim = len(self._sizes), self.embedding_dim
        field = np.arange(fields)
        tables = np.zeros(fields, rows.TABLE)
        tables["weight"] = self.weight.data_ptr() + self._starts * dim * self.weight.element_size()
        tables["rows"], tables["dim"], tables["padding"] = self._sizes, dim, self._padding
        tables["ids"] = tables["counted"] = ids.data_ptr() + field * ids.element_size()
        tables["ids_stride"] = tables["counted_stride"] = fields
        tables["ids_len"] = tables["counted_len"] = ids.numel() // fields
        tables["once"] = self.count == "batch"
        tables["values"], tables["values_stride"], tables["repeat"] = grad.data_ptr(), dim, 1
        if self.pooling is None:
            tables["values"] += field * dim * grad.element_size()
            tables["values_stride"] *= fields
        elif not self.fields:
            tables["repeat"] = ids.shape[1]
        law = self._law()
        for name in _fused.LAW:
            tables[name] = getattr(law, name)
        tables["sign"] = 1.0
        return tables

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        counts, seen = (state_dict.get(prefix + name) for name in ("counts", "seen"))
        if counts is not None and seen is not None:
            indices, units = seen.tolist()
            check_state({"counts": counts, "indices": indices, "units": units}, len(self.counts))
            self.counts = self.counts.to(counts.dtype)  # int64 once many indices were counted
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_leader": None}  # a copy follows nobody


def _refuse_options(rule: str, **options: tuple[Any, Any]) -> None:
    """Refuse options, given with their defaults, that a rule does not have."""
    for name, (value, default) in options.items():
        if value != default:
            raise ValueError(f"rule={rule!r} has no option {name!r}, got {name}={value!r}")


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, ids: Tensor, module: CFEmbedding) -> Tensor:
        out = module._gather(ids)
        ctx.save_for_backward(ids)
        ctx.module = module
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, None]:
        (ids,) = ctx.saved_tensors
        if ctx.module is None:
            raise RuntimeError(
                "a second backward through one lookup: CFEmbedding has applied its gradient already"
            )
        ctx.module._update(ids, grad)
        ctx.module = None
        return None, None, None
