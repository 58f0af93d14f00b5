"""Bytes that hosts send, against what really goes through the sockets of two ranks."""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch

from freqsgd.optimizers import Rule
from freqsgd.planner.speed import row_wise_rows, row_wise_sums, table_wise
from freqsgd.planner.workload import Workload, of_fields
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.tables.fields import Field
from tests.integration.ranks import Ranks
from tests.recommender.streams import MemoryStream

SIZES, BATCH, STEPS = (400, 300, 200, 100), 4096, 3
BYTES_SENT = 200  # where the kernel's tcp_info has them


def sent() -> int:
    """Bytes that the TCP connections of this process have sent so far."""
    total = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            if not stat.S_ISSOCK(os.fstat(int(number)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(number))) as connection:
                if connection.type != socket.SOCK_STREAM or connection.family == socket.AF_UNIX:
                    continue
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                total += struct.unpack_from("Q", info, BYTES_SENT)[0]
        except OSError:
            continue
    return total


def uniform_stream() -> MemoryStream:
    stream = MemoryStream(SIZES, rows=(STEPS * BATCH, 10))
    rng = np.random.default_rng(0)
    ids = np.stack([rng.integers(0, size, STEPS * BATCH) for size in SIZES], 1).astype(np.int32)
    stream.ids, stream.labels = ids, rng.integers(0, 2, len(ids)).astype(np.uint8)
    return stream


def train(rank: int, sharding: str, hidden: list[int]) -> list[int]:
    """Bytes sent in each step, the first of which sets connections up."""
    from freqsgd.torchrec.trainer import ShardedRun

    stream = uniform_stream()
    model = {"model": "deepfm", "hidden": tuple(hidden)} if hidden else {}
    settings = Settings(dim=6, batch_size=BATCH, **model)
    trainer = ShardedRun(
        stream, Rule("cfsgd", 0.1, count="batch"), settings, Pass(), None, sharding
    )
    trainer.begin()
    marks = []
    for step in range(STEPS):
        part = slice(step * BATCH, (step + 1) * BATCH)
        trainer.learn(stream.ids[part], stream.labels[part], np.empty(BATCH, np.float32))
        torch.distributed.barrier()
        marks.append(sent())
    return [after - before for before, after in pairwise(marks)]


def workload(hidden: tuple[int, ...] | None) -> Workload:
    return of_fields([Field("", size) for size in SIZES], 6, BATCH, hidden)


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux' tcp_info")


@needs_proc
@pytest.mark.parametrize("hidden", [None, (64, 32)])
@pytest.mark.parametrize(
    ("sharding", "way"), [("row-wise", row_wise_sums), ("table-wise", table_wise)]
)
def test_two_ranks_of_torchrec_send_what_is_reckoned(
    ranks: Ranks, sharding: str, way, hidden: tuple[int, ...] | None
) -> None:
    expected = way(workload(hidden), 2).total
    for steps in ranks.run(train, sharding, list(hidden or ())):
        for bytes_sent in steps:
            assert bytes_sent == pytest.approx(expected, rel=0.03)


def rows_of_sequences(rank: int) -> list[int]:
    from freqsgd.torchrec.sharding import shard
    from torchrec import EmbeddingCollection, EmbeddingConfig, KeyedJaggedTensor

    work = workload(None)
    names = [f"t{number}" for number in range(len(SIZES))]
    tables = [
        EmbeddingConfig(
            name=name, embedding_dim=work.row_width, num_embeddings=size, feature_names=[name]
        )
        for name, size in zip(names, SIZES, strict=True)
    ]
    model = shard(torch.nn.Sequential(EmbeddingCollection(tables=tables)), lr=0.1)
    half, marks = BATCH // 2, []
    rng = np.random.default_rng(rank)
    for _ in range(STEPS):
        ids = np.stack([rng.integers(0, size, half) for size in SIZES])
        found = model(
            KeyedJaggedTensor(
                keys=names,
                values=torch.from_numpy(ids.reshape(-1)),
                lengths=torch.ones(ids.size, dtype=torch.int32),
            )
        )
        sum(found[name].values().sum() for name in names).backward()
        torch.distributed.barrier()
        marks.append(sent())
    return [after - before for before, after in pairwise(marks)]


@needs_proc
def test_sequences_of_torchrec_send_rows(ranks: Ranks) -> None:
    reckoned = row_wise_rows(workload(None), 2)
    for steps in ranks.run(rows_of_sequences):
        for bytes_sent in steps:
            assert bytes_sent == pytest.approx(reckoned.total - reckoned.others, rel=0.02)


@pytest.mark.parametrize("way", [row_wise_sums, row_wise_rows, table_wise])
def test_one_host_sends_nothing(way) -> None:
    assert way(workload((4,)), 1).total == 0


def test_sums_of_whole_batches_do_not_become_less_with_hosts() -> None:
    work = workload(None)
    sums = [row_wise_sums(work, hosts).rows for hosts in (2, 8, 64)]
    assert sums == sorted(sums)
    rows = [row_wise_rows(work, hosts).rows for hosts in (2, 8, 64)]
    assert rows == sorted(rows, reverse=True)


def test_ids_follow_the_tokens_and_sums_the_columns() -> None:
    work = workload(None)
    sparse = Workload(work.tables, work.columns, work.dim, work.batch_size, tokens=1)
    all_there, few_there = row_wise_sums(work, 2), row_wise_sums(sparse, 2)
    assert few_there.ids * work.columns == all_there.ids
    assert (few_there.rows, few_there.lengths) == (all_there.rows, all_there.lengths)
    assert row_wise_rows(sparse, 2).rows * work.columns == row_wise_rows(work, 2).rows
