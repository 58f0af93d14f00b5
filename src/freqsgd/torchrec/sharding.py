"""A TorchRec model whose tables are spread over ranks, each trained by FBGEMM's COUNTER_SGD."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from freqsgd.errors import DataError
from freqsgd.torchrec.group import agree, gather_texts, join
from freqsgd.torchrec.limits import check_options, law_of, require_torchrec

if TYPE_CHECKING:
    from torchrec.distributed import DistributedModelParallel
    from torchrec.distributed.types import ShardingPlan


def shard(
    model: nn.Module, *, lr: float, sharding: str = "row-wise", **options: Any
) -> DistributedModelParallel:
    """Spread the tables of a model over the ranks; their rows learn in the backward pass.

    The kernel moves row k by lr / sqrt(n_k), n_k batches having held it: with
    :class:`~freqsgd.torchrec.TableRates`, which raises the rate by sqrt(batches), that is the
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
    check_options(options)
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
    """Return the parameters of a sharded model that no kernel updates, for an optimizer."""
    require_torchrec()
    from torchrec.optim.optimizers import in_backward_optimizer_filter

    return [parameter for _, parameter in in_backward_optimizer_filter(model.named_parameters())]


def _sharders(lr: float) -> list[Any]:
    """Return sharders, which make the kernels: COUNTER_SGD is a mode of row-wise Adagrad."""
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


SHARDINGS = ("row-wise", "table-wise", "auto")
Tables = Mapping[str, Tensor]  # by their names in the state of the model


def make_plan(model: nn.Module, tables: Tables, sharding: str, sharders: list[Any]) -> ShardingPlan:
    """Assign the tables of a model to the ranks."""
    if sharding not in SHARDINGS:
        raise DataError(f"unknown sharding {sharding!r}; known: {', '.join(SHARDINGS)}")
    ranks = dist.get_world_size()
    if sharding == "auto":
        return _planned(model, tables, sharders)
    whole = tables
    if sharding == "row-wise":
        whole = {name: table for name, table in tables.items() if not _divides(table, ranks)}
    if len(tables) == len(whole) < ranks:
        instead = "take" if sharding == "row-wise" else "take row-wise, or"
        raise DataError(
            f"{sharding} sharding of {len(tables)} tables over {ranks} ranks leaves some idle: "
            f"{instead} at most {len(tables)} ranks"
        )
    plan = _placed(model, sharders, owners(whole, ranks))
    _check_means(model, plan)
    return plan


def _check_means(model: nn.Module, plan: ShardingPlan) -> None:
    """Refuse what TorchRec averages wrongly.

    Where ranks hold parts of a table of means, TorchRec divides the results of its whole
    collection by the lengths of bags, save those of the sums that it knows to be row-wise.
    """
    for path, ways in plan.plan.items():
        configs = _bags(model.get_submodule(path))
        by_rows = {c.name for c in configs if ways[c.name].sharding_type == "row_wise"}
        means = [c.name for c in configs if c.pooling.value == "MEAN" and c.name in by_rows]
        if not means:
            continue
        features = [feature for config in configs for feature in config.feature_names]
        whole = [c.name for c in configs if c.name not in by_rows]
        reason = ""
        if whole:
            reason = f"{whole[0]} of the same collection has too few rows for it"
        elif len(set(features)) < len(features):
            shared = next(feature for feature in features if features.count(feature) > 1)
            reason = f"several tables of its collection have the feature {shared}"
        if reason:
            raise DataError(
                f"row-wise sharding of {means[0]}, which averages (PoolingType.MEAN), gives wrong "
                f"results in TorchRec where {reason}: take table-wise, or a collection of its own"
            )


def _bags(collection: Any) -> list[Any]:
    """Return the tables of an EmbeddingBagCollection; others do not add up rows."""
    return getattr(collection, "embedding_bag_configs", list)()


def _divides(table: Tensor, ranks: int) -> bool:
    """Return whether TorchRec, dividing a table by rows, leaves some to the last rank.

    FBGEMM's kernel for CPUs reads beyond its sizes where the last of its tables has no rows.
    """
    each = -(-len(table) // ranks)
    return each * (ranks - 1) < len(table)


def owners(tables: Tables, ranks: int) -> dict[str, int]:
    """Return the rank of each table: the largest first, to the rank that has least."""
    load = [0] * ranks
    chosen = {}
    for name in sorted(tables, key=lambda name: (-tables[name].numel(), name)):
        chosen[name] = load.index(min(load))
        load[chosen[name]] += tables[name].numel()
    return chosen


def _placed(model: nn.Module, sharders: list[Any], ranks_of: Mapping[str, int]) -> ShardingPlan:
    """Put each table on its rank; those that have none by rows on all."""
    from torchrec.distributed.sharding_plan import (
        construct_module_sharding_plan,
        row_wise,
        table_wise,
    )
    from torchrec.distributed.types import ShardingPlan

    by_kind = {sharder.module_type: sharder for sharder in sharders}
    plan = {}
    for path, part in model.named_modules():
        if sharder := by_kind.get(type(part)):
            ways = {
                _table(weight): table_wise(rank=ranks_of[weight], compute_kernel="fused")
                if weight in ranks_of
                else row_wise(compute_kernel="fused")
                for weight, _ in part.named_parameters(prefix=path)
            }
            plan[path] = construct_module_sharding_plan(
                part,
                ways,
                sharder=sharder,
                world_size=dist.get_world_size(),
                local_size=local_ranks(),
                device_type="cpu",
            )
    return ShardingPlan(plan=plan)


def _planned(model: nn.Module, tables: Tables, sharders: list[Any]) -> ShardingPlan:
    """Let TorchRec's planner choose, on each rank for itself: it would send plans as pickles."""
    from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints
    from torchrec.distributed.planner.storage_reservations import (
        FixedPercentageStorageReservation,
    )
    from torchrec.distributed.planner.types import (
        KernelConfig,
        PlannerError,
        TopologyFactory,
        TrainerConfig,
    )

    ranks = dist.get_world_size()
    topology = TopologyFactory.create_topology(
        TrainerConfig(world_size=ranks, local_world_size=local_ranks()),
        kernel_config=KernelConfig(compute_device="cpu"),
    )
    means = {  # whole, since the planner may keep others of their collection so (_check_means)
        config.name
        for part in model.modules()
        for config in _bags(part)
        if config.pooling.value == "MEAN"
    }
    allowed = {
        _table(weight): ParameterConstraints(
            sharding_types=[
                "table_wise",
                *["row_wise"] * (_divides(table, ranks) and _table(weight) not in means),
            ],
            compute_kernels=["fused"],
        )
        for weight, table in tables.items()
    }
    planner = EmbeddingShardingPlanner(
        topology=topology,
        constraints=allowed,
        storage_reservation=FixedPercentageStorageReservation(percentage=0.15),
        stats=[],
    )
    try:
        plan = planner.plan(model, sharders)
    except PlannerError as error:
        first = str(error).strip().splitlines()[0]
        raise DataError(f"TorchRec's planner finds no plan ({first}): take row-wise") from error
    texts = gather_texts(str(plan))
    for rank, text in enumerate(texts):
        if text != texts[0]:
            raise DataError(
                f"TorchRec's planner chose another plan on rank {rank} than on rank 0: take "
                "row-wise or table-wise"
            )
    return plan


def local_ranks() -> int:
    """Return the number of ranks on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", dist.get_world_size()))


def _table(weight: str) -> str:
    """Return the table of a weight ``path.embedding_bags.table.weight``."""
    return weight.split(".")[-2]
