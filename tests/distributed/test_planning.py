"""Memory of tables and optimizers, and hosts that hold them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from freqsgd.data.dataset import DataError, Field
from freqsgd.distributed.libraries import require_torchrec
from freqsgd.distributed.planning import (
    COUNTER_SGD,
    KEPT,
    Workload,
    hosts_needed,
    state_of_row,
    tables_fit,
    usable_memory,
)
from freqsgd.distributed.workloads import of_fields
from freqsgd.nn import FM, DeepFM
from freqsgd.training import Rule
from freqsgd.training.engine import Engine

WORK = Workload(tables=(70, 30), columns=2, dim=6, batch_size=8)


def table(work: Workload) -> torch.nn.Embedding:
    """What TorchRec would keep, as one table."""
    return torch.nn.Embedding(work.rows, work.row_width)


@pytest.mark.parametrize("dim", [1, 3, 4, 6, 7, 64])
def test_rows_hold_a_vector_and_a_weight_in_a_multiple_of_four(dim: int) -> None:
    work = replace(WORK, dim=dim)
    assert work.row_width % 4 == 0
    assert dim + 1 <= work.row_width < dim + 5
    assert work.weights == table(work).weight.nbytes


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("sgd", lambda p: torch.optim.SGD(p, lr=0.1)),
        ("adagrad", lambda p: torch.optim.Adagrad(p, lr=0.1)),
        ("adam", lambda p: torch.optim.Adam(p, lr=0.1)),
    ],
)
def test_state_is_what_torch_optimizers_keep(name: str, make) -> None:
    rows = table(WORK)
    optimizer = make(rows.parameters())
    rows(torch.tensor([1, 2])).sum().backward()
    optimizer.step()
    kept = optimizer.state.get(rows.weight, {})
    real = sum(value.nbytes for key, value in kept.items() if key != "step" and value is not None)
    assert state_of_row(name, WORK) * WORK.rows == real


def test_state_of_cfsgd_is_what_the_engine_keeps() -> None:
    model = FM(WORK.tables, WORK.dim)
    for examples in (10, 2**31 - 1, 2**31):
        engine = Engine(model, Rule("cfsgd", 0.1), expected=examples)
        work = replace(WORK, examples=examples)
        assert state_of_row("cfsgd", work) * work.rows == engine.state_bytes
    assert state_of_row("cfsgd", WORK) == 4


def test_bags_can_be_counted_several_times_in_an_example() -> None:
    fields = [Field("a", 70, 3), Field("b", 30, 1)]
    work = of_fields(fields, 6, 8, examples=2**30)
    assert (work.columns, work.widest, work.tables) == (4, 3, (70, 30))
    engine = Engine(FM((70, 30), 6, widths=(3, 1)), Rule("cfsgd", 0.1), expected=2**30)
    assert state_of_row("cfsgd", work) * work.rows == engine.state_bytes == 8 * work.rows


@pytest.mark.parametrize(("name", "mode"), [("rowwise-adagrad", "none"), (COUNTER_SGD, "counter")])
def test_state_is_what_fbgemm_keeps_for_torchrec(name: str, mode: str) -> None:
    require_torchrec()
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice,
        CounterBasedRegularizationDefinition,
        LearningRateMode,
        SplitTableBatchedEmbeddingBagsCodegen,
        WeightDecayMode,
    )

    options = {}
    if mode == "counter":
        options = {
            "weight_decay_mode": WeightDecayMode.COUNTER,
            "counter_based_regularization": CounterBasedRegularizationDefinition(
                learning_rate_mode=LearningRateMode.COUNTER_SGD
            ),
        }
    host = (EmbeddingLocation.HOST, ComputeDevice.CPU)
    tables = SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, WORK.row_width, *host) for rows in WORK.tables],
        optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD,
        **options,
    )
    assert sum(weight.nbytes for weight in tables.split_embedding_weights()) == WORK.weights
    kept = [value for each in tables.split_optimizer_states() for value in each]
    assert state_of_row(name, WORK) * WORK.rows == sum(value.nbytes for value in kept)


def test_other_weights_are_those_of_the_model() -> None:
    hidden = (5, 3)
    deep = DeepFM(WORK.tables, WORK.dim, hidden=hidden)
    real = sum(p.nbytes for name, p in deep.named_parameters() if name != "tokens.weight")
    assert replace(WORK, hidden=hidden).dense == real
    assert WORK.dense == FM(WORK.tables, WORK.dim).bias.nbytes


def test_one_process_takes_what_its_tensors_take() -> None:
    model = FM(WORK.tables, WORK.dim)
    engine = Engine(model, Rule("cfsgd", 0.1), batch_size=WORK.batch_size)
    tensors = sum(p.nbytes for p in model.parameters()) + engine.state_bytes
    plan = WORK.one_process()
    assert plan.weights + plan.state == tensors


@given(
    tables=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    bytes_of_row=st.integers(1, 50),
    usable=st.integers(1, 3000),
)
def test_hosts_are_the_fewest_whose_largest_shard_fits(tables, bytes_of_row, usable) -> None:
    def largest_shard(hosts: int) -> int:
        shards = np.zeros(hosts, int)
        for rows in tables:
            block = -(-rows // hosts)
            shards += np.bincount(np.arange(rows) // block, minlength=hosts)
        return int(shards.max()) * bytes_of_row

    fitting = [hosts for hosts in range(1, 61) if largest_shard(hosts) <= usable]
    if fitting:
        assert hosts_needed(tables, bytes_of_row, usable) == fitting[0]
    else:
        with pytest.raises(DataError, match="do not fit any number of hosts"):
            hosts_needed(tables, bytes_of_row, usable)


def test_whole_tables_must_fit_and_be_as_many_as_hosts() -> None:
    assert tables_fit((5, 4, 3, 3, 3), bytes_of_row=2, usable=20, hosts=2)  # 5 + 3 and 4 + 3 + 3
    assert not tables_fit((5, 4, 3, 3, 3), bytes_of_row=2, usable=19, hosts=2)
    assert not tables_fit((5, 4, 3, 3, 3), bytes_of_row=2, usable=9, hosts=5)
    assert not tables_fit((5, 4), bytes_of_row=2, usable=100, hosts=3)


def test_memory_for_tables_is_what_a_batch_and_the_reserve_leave() -> None:
    work = replace(WORK, batch_size=1000)
    of_batch = torch.empty(1000, work.columns, work.row_width)
    assert usable_memory(10**7, work) == 9 * 10**6 - 3 * of_batch.nbytes
    with pytest.raises(DataError, match=r"0\.0 GB is too small.*smaller batches"):
        usable_memory(3 * of_batch.nbytes, work)


def test_every_optimizer_has_a_state() -> None:
    sizes = {name: state_of_row(name, WORK) for name in KEPT}
    assert sizes == {
        "adam": 64,
        "adagrad": 32,
        "rowwise-adagrad": 4,
        COUNTER_SGD: 12,
        "cfsgd": 4,
        "sgd": 0,
    }
