"""Second moments of sharded tables, by which gradients are scaled before a kernel takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torchrec.distributed.batched_embedding_kernel import (
    BaseBatchedEmbedding,
    BaseBatchedEmbeddingBag,
)
from torchrec.distributed.comm_ops import get_gradient_division
from torchrec.distributed.embedding import ShardedEmbeddingCollection
from torchrec.distributed.embeddingbag import ShardedEmbeddingBagCollection
from torchrec.modules.embedding_modules import get_embedding_names_by_table

from freqsgd.errors import DivergedError
from freqsgd.rates import AdamLaw
from torchrec import JaggedTensor, KeyedTensor, PoolingType

_LAW = AdamLaw(lr=0.0)  # its rate is the kernel's


class Moments:
    """The second moments of a sharded collection: one number per table.

    A batch that holds D different rows of a table, in occurrences o of d columns, gives

        s <- beta2 s + (1 - beta2) / D * sum over o of mean_j g_oj^2

    over all ranks, and its gradient goes to the kernel as g / (sqrt(s / (1 - beta2^t)) + eps).
    The sum is that of :class:`~freqsgd.CFAdam`. The kernel's frequency counts a row once for each
    batch, hence the division by D: the sum over rows of p_k s is the same in both.

    Args:
        path: of the collection in its model
        collection: its forward pass is hooked
    """

    def __init__(self, path: str, collection: Any) -> None:
        self.bags = isinstance(collection, ShardedEmbeddingBagCollection)
        self.weighted = self.bags and collection._is_weighted
        configs = collection._embedding_bag_configs if self.bags else collection._embedding_configs
        self.tables = [config.name for config in configs]
        kind = "embedding_bags" if self.bags else "embeddings"
        self.names = [f"{path}.{kind}.{table}.weight".lstrip(".") for table in self.tables]
        self.square = torch.zeros(len(configs), dtype=torch.float64)
        self.steps = torch.zeros_like(self.square)  # batches that held any row
        self._outputs = {  # feature, table and whether its bags are means
            output: (feature, number, getattr(config, "pooling", None) is PoolingType.MEAN)
            for number, config in enumerate(configs)
            for output, feature in zip(
                get_embedding_names_by_table(configs)[number], config.feature_names, strict=True
            )
        }
        self._rows: dict[str, int] = {}  # of the batch, here, by table
        for lookup in collection._lookups:
            for kernel in lookup.modules():
                if isinstance(kernel, BaseBatchedEmbedding | BaseBatchedEmbeddingBag):
                    kernel.register_forward_pre_hook(self._count_rows)
        collection.register_forward_hook(self._watch, with_kwargs=True)

    def state(self) -> dict[str, list[float]]:
        """Return second moment and number of batches by the names of the tables' weights."""
        values = torch.stack([self.square, self.steps], 1).tolist()
        return dict(zip(self.names, values, strict=True))

    def load(self, state: Any) -> None:
        """Go on from what :meth:`state` has returned."""
        values = torch.tensor([state[name] for name in self.names], dtype=torch.float64)
        self.square, self.steps = values.unbind(1)

    def _count_rows(self, kernel: Any, inputs: tuple[Any]) -> None:
        """Count the different rows of each table that a kernel looks up."""
        if not torch.is_grad_enabled():
            return
        ends, ids, first = inputs[0].offset_per_key(), inputs[0].values(), 0
        for table in kernel.config.embedding_tables:
            last = first + table.num_features()
            own = ids[ends[first] : ends[last]].int().sort().values  # of 64 bits: 4 times slower
            self._rows[table.name] = len(own) and int((own.diff() != 0).sum()) + 1
            first = last

    def _watch(self, _: Any, args: tuple[Any, ...], named: dict[str, Any], found: Any) -> None:
        """Have the gradient of what was looked up be scaled."""
        if not torch.is_grad_enabled():
            return
        rows, self._rows = self._rows, {}
        (tokens,) = (*args, *named.values())

        scaled: Any = _Scaled.apply

        def through(found: Any) -> Any:
            outputs = {name: self._outputs[name] for name in list(found.keys())}
            tables = [table for _, table, _ in outputs.values()]
            if not self.bags:
                old = list(found.values())
                new = scaled(
                    lambda gradients: [
                        gradient * factor
                        for gradient, factor in zip(
                            gradients, self._factors(gradients, tables, rows), strict=True
                        )
                    ],
                    *(jagged.values() for jagged in old),
                )
                return {
                    name: JaggedTensor(own, jagged.weights_or_none(), jagged.lengths())
                    for name, jagged, own in zip(outputs, old, new, strict=True)
                }
            widths = found.length_per_key()
            counts = [self._occurrences(tokens[of], mean) for of, _, mean in outputs.values()]

            def scaled_bags(gradients: Sequence[Tensor]) -> list[Tensor]:
                parts = gradients[0].split(widths, 1)
                factors = self._factors(parts, tables, rows, counts)
                return [gradients[0] * factors.repeat_interleave(torch.tensor(widths))]

            (values,) = scaled(scaled_bags, found.values())
            return KeyedTensor(list(outputs), widths, values)

        found.callbacks.append(through)

    def _occurrences(self, bag: JaggedTensor, mean: bool) -> Tensor:
        """Return the sum of the squared weights of occurrences for each bag of a feature."""
        lengths = bag.lengths().float()
        squares: Tensor = lengths
        if self.weighted:
            squares = torch.segment_reduce(
                bag.weights().square(), "sum", lengths=bag.lengths().long()
            )
        return squares / lengths.clamp(min=1).square() if mean else squares

    def _factors(
        self,
        gradients: Sequence[Tensor],
        tables: Sequence[int],
        rows: dict[str, int],
        counts: Sequence[Tensor] | None = None,
    ) -> Tensor:
        """Take the gradients of outputs into the second moments; return what to scale each by.

        Args:
            gradients: of outputs, a row for each bag or occurrence
            tables: number of the table of each output
            rows: how many the batch holds of each table here
            counts: how often each row of the gradients counts; None: once
        """
        told = torch.zeros(2, len(self.tables), dtype=torch.float64)
        for number, (gradient, table) in enumerate(zip(gradients, tables, strict=True)):
            means = gradient.square().mean(1)
            told[0, table] += means.sum() if counts is None else counts[number] @ means
        told[1] = torch.tensor([rows.get(name, 0) for name in self.tables])
        dist.all_reduce(told)
        squares, held = told
        if get_gradient_division():  # by TorchRec, later
            squares = squares / dist.get_world_size() ** 2
        if not squares.isfinite().all():
            name = self.tables[int((~squares.isfinite()).nonzero()[0])]
            raise DivergedError(int(self.steps.max()), f"gives table {name} no finite gradients")
        moments = _LAW.moment(self.square, squares / held.clamp(min=1))
        self.square = torch.where(held > 0, moments, self.square)
        self.steps = self.steps + (held > 0)
        scales: Tensor = _LAW.scale(self.square, self.steps.clamp(min=1)).float()
        return scales[torch.tensor(tables)]


class _Scaled(torch.autograd.Function):
    """Passes values on; their gradients go back as a function changes them, all at once."""

    @staticmethod
    def forward(ctx: Any, change: Any, *values: Tensor) -> tuple[Tensor, ...]:
        ctx.change = change
        return tuple(value.view_as(value) for value in values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.change(gradients)


def moments_of(model: Any) -> list[Moments]:
    """Hook the collections of a sharded model; return their moments."""
    kinds = ShardedEmbeddingBagCollection | ShardedEmbeddingCollection
    return [Moments(*part) for part in model.module.named_modules() if isinstance(part[1], kinds)]
