"""FM and DeepFM over tables that are spread over ranks, for batches of which each has a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from freqsgd.nn.fm import deep_network
from freqsgd.torchrec.tables import Layout
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor


class Part(NamedTuple):
    """A rank's part of a batch, filled up with empty samples to be as long as the others'."""

    tokens: KeyedJaggedTensor
    first: int  # its first sample among those of the batch
    size: int  # samples that are not empty
    whole: int  # samples of the batch


def part_of_batch(ids: NDArray[np.int32], layout: Layout, rank: int, ranks: int) -> Part:
    """Return the samples of a batch that a rank learns from."""
    whole = len(ids)
    length = -(-whole // ranks)
    first = min(rank * length, whole)
    own = ids[first : first + length]
    columns = np.full((ids.shape[1], length), -1, np.int64)
    columns[:, : len(own)] = own.T
    held = columns >= 0
    tokens = KeyedJaggedTensor(
        keys=layout.columns,
        values=torch.from_numpy(columns[held]),
        lengths=torch.from_numpy(held.reshape(-1).astype(np.int32)),
    )
    return Part(tokens, first, len(own), whole)


class ShardedFM(nn.Module):
    """The parts of FM, or of DeepFM, of which the tables have no memory yet.

    Args:
        layout: of the tables
        hidden: sizes of DeepFM's hidden layers; None for FM
        dropout: chance that a hidden value is dropped in training
    """

    field_of: Tensor

    def __init__(
        self, layout: Layout, hidden: Sequence[int] | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.layout = layout
        names = iter(layout.columns)
        self.tables = EmbeddingBagCollection(
            device=torch.device("meta"),
            tables=[
                EmbeddingBagConfig(
                    name=table,
                    embedding_dim=layout.row,
                    num_embeddings=size,
                    feature_names=[next(names) for _ in range(width)],
                )
                for table, size, width in zip(
                    layout.tables, layout.sizes, layout.widths, strict=True
                )
            ],
        )
        self.bias = nn.Parameter(torch.zeros(()))
        fields = len(layout.sizes)
        self.network = None
        if hidden is not None:
            self.network = deep_network(fields * layout.dim, hidden, dropout)
        of_columns = torch.arange(fields).repeat_interleave(torch.tensor(layout.widths))
        self.register_buffer("field_of", of_columns, persistent=False)

    def forward(self, part: Part, seed: int | None = None) -> tuple[Tensor, Tensor]:
        """Return log odds to learn from, and those that the model would predict.

        Args:
            part: of the batch
            seed: of this step's dropout; None to predict only
        """
        found = self.tables(part.tokens)
        rows = found.values().view(len(found.values()), -1, self.layout.row)
        pairs: Any = _Pairs.apply
        shallow: Tensor = self.bias + pairs(rows, self.layout.dim)
        if self.network is None:
            return shallow, shallow.detach()
        vectors = self._vectors(rows, list(found.keys()))
        with torch.no_grad():
            shown = shallow + self.network.eval()(vectors).squeeze(1)
        if seed is None:
            return shown, shown
        return shallow + self._deep(vectors, part, seed), shown

    def _vectors(self, rows: Tensor, names: list[str]) -> Tensor:
        """Return the vectors of all fields side by side, in their order; a bag's are summed."""
        layout = self.layout
        vectors = rows[..., : layout.dim]
        if names != layout.columns:
            vectors = vectors[:, [names.index(name) for name in layout.columns]]
        if max(layout.widths) > 1:
            fields = vectors.new_zeros(len(rows), len(layout.sizes), layout.dim)
            vectors = fields.index_add(1, self.field_of, vectors)
        return vectors.flatten(1)

    def _deep(self, values: Tensor, part: Part, seed: int) -> Tensor:
        """Return what the network adds in training, as if one process had the whole batch."""
        assert self.network is not None
        if part.whole == 1:  # batch norm has no variance of one sample
            single: Tensor = self.network.eval()(values).squeeze(1)
            return single
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for layer in self.network:
                if isinstance(layer, nn.BatchNorm1d):
                    values = batch_norm(values, layer, part.size, part.whole)
                elif isinstance(layer, nn.Dropout):
                    values = values * _kept(layer.p, part, len(values), values.shape[1])
                else:
                    values = layer(values)
        return values.squeeze(1)


def _kept(chance: float, part: Part, length: int, width: int) -> Tensor:
    """Return the rank's part of what dropout would multiply the whole batch with."""
    if chance in (0.0, 1.0):
        return torch.full((length, width), 1.0 - chance)
    whole = torch.empty(part.whole, width).bernoulli_(1 - chance).div_(1 - chance)
    own = torch.zeros(length, width)
    own[: part.size] = whole[part.first : part.first + part.size]
    return own


class _Pairs(torch.autograd.Function):
    """Linear weights and products of all pairs of vectors, added up for each sample."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, dim: int) -> Tensor:
        sums = rows.sum(1)
        vectors = rows[..., :dim]
        squares = (vectors * vectors).sum((1, 2))
        ctx.save_for_backward(rows, sums)
        ctx.dim = dim
        return sums[:, dim] + (sums[:, :dim].square().sum(1) - squares) / 2

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        rows, sums = ctx.saved_tensors
        gradient = sums.unsqueeze(1) - rows
        gradient[..., ctx.dim] = 1
        gradient[..., ctx.dim + 1 :] = 0
        return gradient.mul_(slope[:, None, None]), None


def batch_norm(values: Tensor, layer: nn.BatchNorm1d, size: int, whole: int) -> Tensor:
    """Normalize a rank's samples in training, by mean and variance of the whole batch.

    Args:
        values: of the rank's samples
        layer: whose running mean and variance are moved too
        size: samples that are not there to fill up
        whole: samples of all ranks
    """
    real = (torch.arange(len(values)) < size).unsqueeze(1)
    mean = _over_ranks((values * real).sum(0)) / whole
    centered = values - mean
    variance = _over_ranks((centered.square() * real).sum(0)) / whole
    assert layer.running_mean is not None
    assert layer.running_var is not None
    assert layer.num_batches_tracked is not None
    assert layer.momentum is not None
    with torch.no_grad():
        layer.num_batches_tracked += 1
        layer.running_mean.lerp_(mean, layer.momentum)
        layer.running_var.lerp_(variance * (whole / (whole - 1)), layer.momentum)
    return centered * (variance + layer.eps).rsqrt() * layer.weight + layer.bias


def _over_ranks(values: Tensor) -> Tensor:
    total: Tensor = _Sum.apply(values)  # type: ignore[no-untyped-call]
    return total


class _Sum(torch.autograd.Function):
    """The sum of what all ranks have; on each, the gradient is that of the sum of their losses."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        return _over_ranks(slope)
