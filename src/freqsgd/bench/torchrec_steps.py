"""Steps of TorchRec in a process of its own, as ``train --engine torchrec`` takes them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch.distributed as dist

from freqsgd.bench.contenders import Contender, Examples
from freqsgd.distributed.group import join
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings

__all__ = ["group_of_one", "torchrec_steps"]


@contextmanager
def group_of_one() -> Iterator[None]:
    """The group that TorchRec needs, for as long as it is measured."""
    joined = dist.is_initialized()
    join()
    try:
        yield
    finally:
        if not joined:
            dist.destroy_process_group()


def torchrec_steps(some: Examples, dim: int, number: int) -> Contender:
    """Of the first batches, within :func:`group_of_one`."""
    from freqsgd.distributed.trainer import ShardedTrainer

    rule = Rule("cfsgd", 0.05, count="batch")
    settings = Settings(dim=dim, batch_size=some.batch_size)
    trainer = ShardedTrainer(some.stream, rule, settings, "row-wise")
    trainer.begin()
    logits = np.empty(some.batch_size, np.float32)

    def steps() -> float:
        start = time.perf_counter()
        for batch in map(some.batch, range(number)):
            trainer.learn(some.ids[batch], some.labels[batch], logits)
        return number * some.batch_size / (time.perf_counter() - start)

    return steps
