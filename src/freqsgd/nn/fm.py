"""Factorization machines, plain and deep."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from freqsgd.rates import check_integers

__all__ = ["FM", "DeepFM", "deep_network", "draw_rows", "is_huge", "start_bound"]

_HUGE = 1 << 28  # numbers of a table
_BLOCK = 1 << 20  # rows of a huge table that are drawn together


class FM(nn.Module):
    r"""A factorization machine over categorical fields.

    The log odds of a sample with tokens k are

        bias + sum_k w_k + sum_{k < l} <v_k, v_l>

    Row k of ``tokens.weight`` holds the vector v_k and, last, the linear weight w_k.

    Args:
        sizes: number of tokens of each field
        dim: size of the vectors
        widths: columns of each field (default 1 each); a field of more is a bag, whose empty
            columns hold -1 and each of whose tokens is a feature of its own
        init_scale: times the xavier-uniform start of the vectors; linear weights start at 0
        sparse: give sparse gradients; torch's Adam and weight decay want dense ones

    Shape:
        - ids: (samples, columns); ids of each field start at 0
        - output: (samples,), log odds

    Example:
        >>> model = FM([1000, 500], dim=8)
        >>> model(torch.tensor([[3, 0], [999, 499]])).shape
        torch.Size([2])
    """

    columns_start: Tensor
    columns_size: Tensor
    columns_field: Tensor

    def __init__(
        self,
        sizes: Sequence[int],
        dim: int = 64,
        *,
        widths: Sequence[int] | None = None,
        init_scale: float = 1.0,
        sparse: bool = True,
    ) -> None:
        super().__init__()
        self.sizes = [int(size) for size in sizes]
        self.widths = [1] * len(self.sizes) if widths is None else [int(w) for w in widths]
        if not self.sizes or min(self.sizes) < 1 or dim < 1:
            raise ValueError(f"sizes and dim must be at least 1, got {self.sizes} and {dim}")
        if len(self.widths) != len(self.sizes) or min(self.widths) < 1:
            raise ValueError(f"widths must be one number >= 1 per field, got {widths}")
        self.dim = dim
        self.init_scale = init_scale
        shape = (sum(self.sizes), dim + 1)
        # An Embedding without weights draws normals first, which takes half a minute for 10^8 rows.
        # Smaller tables go on doing so, since otherwise their seeds would give other models.
        drawn = torch.empty(shape) if is_huge(shape) else None
        self.tokens = nn.Embedding(*shape, sparse=sparse, _weight=drawn)
        self.bias = nn.Parameter(torch.empty(()))
        field = torch.arange(len(self.sizes)).repeat_interleave(torch.tensor(self.widths))
        starts = torch.from_numpy(np.cumsum([0, *self.sizes[:-1]]))
        for name, values in (
            ("columns_start", starts[field]),
            ("columns_size", torch.tensor(self.sizes)[field]),
            ("columns_field", field),
        ):
            self.register_buffer(name, values, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the vectors anew; linear weights and bias become 0."""
        weight, bound = self.tokens.weight, start_bound(self.sizes, self.dim, self.init_scale)
        with torch.no_grad():
            if is_huge(weight.shape):
                draw_rows(weight, bound)
            else:
                weight.uniform_(-bound, bound)
            weight[:, self.dim] = 0
            self.bias.zero_()

    def forward(self, ids: Tensor) -> Tensor:
        """The log odds of each sample."""
        return self._look_up(ids)[0]

    def _look_up(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Log odds of the factorization machine, and a vector per field (samples, fields, dim)."""
        self._check(ids)
        samples, fields = len(ids), len(self.sizes)
        rows_of = ids + self.columns_start
        if max(self.widths) == 1:
            rows = self.tokens(rows_of)
            squares = rows[..., : self.dim].square().sum((1, 2))
        else:
            sample, column = (ids >= 0).nonzero(as_tuple=True)
            found = self.tokens(rows_of[sample, column])
            place = sample * fields + self.columns_field[column]
            rows = found.new_zeros(samples * fields, self.dim + 1).index_add(0, place, found)
            rows = rows.view(samples, fields, self.dim + 1)
            of_rows = found[:, : self.dim].square().sum(1)
            squares = of_rows.new_zeros(samples).index_add(0, sample, of_rows)
        vectors = rows[..., : self.dim]
        pairs = vectors.sum(1).square().sum(1) - squares
        return self.bias + rows[..., self.dim].sum(1) + pairs / 2, vectors

    def _check(self, ids: Tensor) -> None:
        check_integers("ids", ids)
        if ids.dim() != 2 or ids.shape[1] != len(self.columns_start):
            raise ValueError(
                f"ids must have shape (samples, {len(self.columns_start)}), got {tuple(ids.shape)}"
            )
        lowest = -1 if max(self.widths) > 1 else 0
        wrong = (ids < lowest) | (ids >= self.columns_size)
        if wrong.any():
            row, column = wrong.nonzero()[0].tolist()
            raise IndexError(
                f"id {int(ids[row, column])} of sample {row} is out of range for field "
                f"{int(self.columns_field[column])} of {int(self.columns_size[column])} tokens"
            )

    def extra_repr(self) -> str:
        """What ``repr`` shows."""
        return f"fields={len(self.sizes)}, dim={self.dim}"


class DeepFM(FM):
    r"""A factorization machine plus a network over the same vectors.

    The network takes the vectors of all fields side by side (a bag's are summed); each hidden layer
    is linear, batch norm, ReLU and dropout.

    Args:
        sizes, widths, init_scale, sparse: as for :class:`FM`
        dim: size of the vectors
        hidden: sizes of the hidden layers
        dropout: chance that a hidden value is dropped in training

    Example:
        >>> model = DeepFM([1000, 500], dim=8, hidden=(4,))
        >>> model(torch.tensor([[3, 0], [999, 499]])).shape
        torch.Size([2])
    """

    def __init__(
        self,
        sizes: Sequence[int],
        dim: int = 16,
        *,
        hidden: Sequence[int] = (16, 16),
        dropout: float = 0.2,
        widths: Sequence[int] | None = None,
        init_scale: float = 1.0,
        sparse: bool = True,
    ) -> None:
        super().__init__(sizes, dim, widths=widths, init_scale=init_scale, sparse=sparse)
        if any(size < 1 for size in hidden):
            raise ValueError(f"hidden must be numbers >= 1, got {list(hidden)}")
        self.hidden = [int(size) for size in hidden]
        self.dropout = dropout
        self.network = deep_network(len(self.sizes) * dim, self.hidden, dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """The log odds of each sample."""
        logits, vectors = self._look_up(ids)
        deep: Tensor = self.network(vectors.flatten(1)).squeeze(1)
        return logits + deep


def deep_network(inputs: int, hidden: Sequence[int], dropout: float) -> nn.Sequential:
    """The network of :class:`DeepFM`."""
    layers: list[nn.Module] = []
    for outputs in hidden:
        layers += [
            nn.Linear(inputs, outputs),
            nn.BatchNorm1d(outputs),
            nn.ReLU(),
            nn.Dropout(dropout),
        ]
        inputs = outputs
    return nn.Sequential(*layers, nn.Linear(inputs, 1))


def start_bound(sizes: Sequence[int], dim: int, init_scale: float) -> float:
    """Vectors start uniform between minus this and this."""
    return float(init_scale * (6 / (sum(sizes) + dim)) ** 0.5)


def is_huge(shape: Sequence[int]) -> bool:
    """Whether a table is drawn by :func:`draw_rows`."""
    return math.prod(shape) > _HUGE


def draw_rows(weight: Tensor, bound: float, first: int = 0, seed: int | None = None) -> int:
    """Draw rows of a huge table, whatever the others: each block of rows has its own generator.

    Args:
        weight: takes the rows
        bound: of the values
        first: the number of the first row, in the whole table
        seed: what this returned for other rows of the table; None draws one
    """
    if seed is None:
        seed = int(torch.randint(2**62, ()))
    last = first + len(weight)
    for block in range(first // _BLOCK, -(-last // _BLOCK)):
        generator = torch.Generator().manual_seed((seed + block * 0x9E3779B97F4A7C15) % 2**63)
        begin, end = block * _BLOCK, min((block + 1) * _BLOCK, last)
        if begin < first:
            torch.empty(first - begin, weight.shape[1]).uniform_(-bound, bound, generator=generator)
            begin = first
        weight[begin - first : end - first].uniform_(-bound, bound, generator=generator)
    return seed
