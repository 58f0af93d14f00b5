"""A TorchRec model whose tables are spread over ranks, each trained by FBGEMM's COUNTER_SGD."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn

from freqsgd.data.dataset import DataError
from freqsgd.distributed.group import agree, join
from freqsgd.distributed.libraries import require_torchrec
from freqsgd.distributed.limits import check_rule_options, law_of
from freqsgd.distributed.placement import Tables, make_plan

if TYPE_CHECKING:
    from torchrec.distributed import DistributedModelParallel

__all__ = ["dense_parameters", "shard"]


def shard(
    model: nn.Module, *, lr: float, sharding: str = "row-wise", **options: Any
) -> DistributedModelParallel:
    """Spread the tables of a model over the ranks; their rows learn in the backward pass.

    The kernel moves row k by lr / sqrt(n_k), n_k batches having held it: with
    :class:`~freqsgd.distributed.TableRates`, which raises the rate by sqrt(batches), that is the
    law of :mod:`freqsgd.rates`, counted by batch. All other weights are replicated, with averaged
    gradients, for an optimizer of their own: ``CFSGD(dense_parameters(model), lr=...)``.

    Args:
        model: holds ``EmbeddingBagCollection`` or ``EmbeddingCollection``, on the device "meta" or
            on the CPU, where the values of its tables are kept
        lr: rate of a row that every batch holds
        sharding: "row-wise": every table over all ranks; "table-wise": whole tables, the largest
            first to the rank that has least; "auto": as TorchRec's planner chooses between the two
        options: further ones of :class:`~freqsgd.CFSGD`; what the kernel has not is refused
    """
    require_torchrec()
    from torchrec.distributed import DistributedModelParallel, ShardingEnv
    from torchrec.distributed.types import ShardedModule

    if any(isinstance(part, ShardedModule) for part in model.modules()):
        raise DataError("the model is sharded already: give shard the one that it was made of")
    join()
    shapes = {f"the shape of {name}": list(p.shape) for name, p in model.named_parameters()}
    agree({"lr": lr, "sharding": sharding} | options | shapes)
    if unknown := options.keys() - signature(check_rule_options).parameters.keys():
        raise DataError(f"shard has no option {', '.join(sorted(unknown))}: leave it out")
    check_rule_options(**options)
    law_of(lr)
    sharders = _sharders(lr)
    tables = _tables(model, sharders)
    sharded: Any = DistributedModelParallel(
        model,
        env=ShardingEnv.from_process_group(dist.group.WORLD),
        device=torch.device("cpu"),
        plan=make_plan(model, tables, sharding, sharders),
        sharders=sharders,
    )
    _keep_values(sharded, tables)
    sharded.table_lr = lr  # for TableRates
    return sharded


def dense_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters of a sharded model that no kernel updates, for an optimizer."""
    require_torchrec()
    from torchrec.optim.optimizers import in_backward_optimizer_filter

    return [parameter for _, parameter in in_backward_optimizer_filter(model.named_parameters())]


def _sharders(lr: float) -> list[Any]:
    """What makes the kernels: COUNTER_SGD is a mode of row-wise Adagrad."""
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        CounterBasedRegularizationDefinition,
        CounterWeightDecayMode,
        LearningRateMode,
        WeightDecayMode,
    )
    from torchrec.distributed.embedding import EmbeddingCollectionSharder
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder

    kernel = {
        "optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
        "learning_rate": lr,
        "eps": 0.0,
        "weight_decay_mode": WeightDecayMode.COUNTER,
        "counter_based_regularization": CounterBasedRegularizationDefinition(
            counter_weight_decay_mode=CounterWeightDecayMode.NONE,
            counter_halflife=-1,
            adjustment_ub=1.0,
            learning_rate_mode=LearningRateMode.COUNTER_SGD,
        ),
    }
    return [
        EmbeddingBagCollectionSharder(fused_params=dict(kernel)),
        EmbeddingCollectionSharder(fused_params=dict(kernel)),
    ]


def _tables(model: nn.Module, sharders: list[Any]) -> Tables:
    kinds = [sharder.module_type for sharder in sharders]
    for path, part in model.named_modules():
        if isinstance(part, tuple(kinds)) and type(part) not in kinds:
            raise DataError(
                f"{path or 'the model'} is a {type(part).__name__}, but TorchRec does not shard "
                f"subclasses: take {type(part).__mro__[1].__name__} itself"
            )
    tables = {
        name: weight
        for path, part in model.named_modules()
        if type(part) in kinds
        for name, weight in part.named_parameters(prefix=path)
    }
    if not tables:
        raise DataError(
            "the model holds no EmbeddingBagCollection or EmbeddingCollection of torchrec: build "
            "its tables with one, or train it in one process with freqsgd.CFSGD"
        )
    for name, weight in tables.items():
        columns = weight.shape[1]
        if columns % 4:
            raise DataError(
                f"{name} has embedding_dim {columns}, but FBGEMM needs a multiple of 4: take "
                f"{columns + -columns % 4}"
            )
        if not weight.requires_grad:
            raise DataError(
                f"{name} is frozen (requires_grad is False), but the kernel would train it: keep "
                "it in a torch.nn.EmbeddingBag, or let it learn"
            )
    return {name: weight.detach() for name, weight in tables.items()}


@torch.no_grad()
def _keep_values(sharded: DistributedModelParallel, tables: Tables) -> None:
    """Copy what the tables held, which TorchRec does for models on a GPU only."""
    state = sharded.state_dict()
    for name, weight in tables.items():
        if not weight.is_meta:
            for part in state[name].local_shards():
                first, rows = part.metadata.shard_offsets[0], part.metadata.shard_sizes[0]
                part.tensor.copy_(weight[first : first + rows])
