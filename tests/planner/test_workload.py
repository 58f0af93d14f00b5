"""Memory of tables and optimizers, and hosts that hold them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from freqsgd.nn import FM, DeepFM
from freqsgd.optimizers import COUNTER_SGD, Rule
from freqsgd.planner.workload import (
    PLANNED,
    ROW_WISE,
    ROWS_SENT,
    TABLE_WISE,
    Workload,
    held,
    hosts_needed,
    of_fields,
    state_of_row,
    usable_memory,
)
from freqsgd.recommender.engine import Engine
from freqsgd.tables.fields import Field
from freqsgd.torchrec.limits import require_torchrec

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


def largest_shard(work: Workload, hosts: int) -> int:
    """Rows of the fullest host, row by row."""
    shards = np.zeros(hosts, int)
    for rows in work.tables:
        block = -(-rows // hosts)
        shards += np.bincount(np.arange(rows) // block, minlength=hosts)
    return int(shards.max())


def fullest(work: Workload, hosts: int) -> int:
    """Rows of the fullest host that has whole tables."""
    shards = [0] * hosts
    for rows in sorted(work.tables, reverse=True):
        shards[shards.index(min(shards))] += rows
    return max(shards)


@given(
    tables=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    bytes_of_row=st.integers(1, 50),
    usable=st.integers(1, 3000),
    hidden=st.sampled_from([None, (3,)]),
)
def test_hosts_are_the_fewest_whose_largest_shard_fits(
    tables, bytes_of_row, usable, hidden
) -> None:
    work = Workload(tuple(tables), len(tables), dim=1, batch_size=5, hidden=hidden)
    fitting = [
        hosts
        for hosts in range(1, 61)
        if largest_shard(work, hosts) * bytes_of_row + work.workspace(ROW_WISE, hosts) <= usable
    ]
    assert hosts_needed(ROW_WISE, work, bytes_of_row, usable) == (fitting or [None])[0]


@given(
    tables=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    bytes_of_row=st.integers(1, 50),
    usable=st.integers(1, 3000),
)
def test_hosts_of_whole_tables_are_judged_by_their_own_memory(tables, bytes_of_row, usable) -> None:
    work = Workload(tuple(tables), len(tables), dim=1, batch_size=5)

    def fit(hosts: int) -> bool:
        mine = fullest(work, hosts) * bytes_of_row + work.workspace(TABLE_WISE, hosts)
        return mine <= usable

    found = hosts_needed(TABLE_WISE, work, bytes_of_row, usable)
    if found is None:
        assert not fit(len(tables))
    else:
        assert fit(found)
        assert found == 1 or not fit(found - 1)


def test_tables_larger_than_any_index_are_reckoned() -> None:
    work = Workload((10**20,) * 800, columns=800, dim=64, batch_size=65_536)
    hosts = hosts_needed(ROW_WISE, work, 284, 9 * 10**11)
    assert hosts is not None
    assert held(ROW_WISE, work, 284, hosts) <= 9 * 10**11 < held(ROW_WISE, work, 284, hosts - 1)


def test_workspace_holds_the_batch_and_the_numbers_of_the_network() -> None:
    work = replace(WORK, batch_size=1000)
    of_batch = torch.empty(1000, work.columns, work.row_width).nbytes
    bias = 2 * work.dense
    assert work.workspace(ROW_WISE, 1) == work.workspace(ROW_WISE, 5) == 3 * of_batch + bias
    assert work.workspace(TABLE_WISE, 5) == 4 * of_batch // 5 + bias
    assert replace(work, tokens=1).workspace(ROWS_SENT, 5) == 2 * of_batch // 5 + bias
    deep = replace(work, hidden=(5, 3))
    inputs = torch.empty(1000, len(work.tables), work.dim).nbytes
    more = deep.workspace(ROW_WISE, 2) - 3 * of_batch - 2 * deep.dense
    assert more == (4 * inputs + 16 * 1000 * (5 + 3)) // 2


@given(
    tables=st.lists(st.integers(1, 10**6), min_size=1, max_size=5),
    dim=st.integers(1, 70),
    batch_size=st.integers(1, 10**6),
    hidden=st.sampled_from([None, (16,), (300, 7)]),
)
def test_what_one_host_of_torchrec_holds_one_process_holds(tables, dim, batch_size, hidden) -> None:
    work = Workload(tuple(tables), len(tables), dim, batch_size, hidden=hidden)
    of_row = work.row_bytes + state_of_row(COUNTER_SGD, work)
    for how in (ROW_WISE, TABLE_WISE):
        assert work.one_process().total <= held(how, work, of_row, 1)


def test_a_part_of_memory_is_left_to_everything_else() -> None:
    assert usable_memory(10**7) == 9 * 10**6


def test_every_optimizer_has_a_state() -> None:
    sizes = {name: state_of_row(name, WORK) for name in PLANNED}
    assert sizes == {
        "adam": 64,
        "adagrad": 32,
        "rowwise-adagrad": 4,
        COUNTER_SGD: 12,
        "cfsgd": 4,
        "sgd": 0,
    }
