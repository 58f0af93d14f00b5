"""Does an example cost more if the table is larger?

    python -m benchmarks.table_rows [--rows 100000 1000000 10000000 100000000]

FM with CF-SGD, d=32, batches of 65,536 examples of 8 fields, two threads; nanoseconds per example,
the best of some rounds. Tables are built one after the other; the largest holds 13.2 GB.

- spread: the same 100,000 tokens by Zipf's law, scattered over tables of different sizes. The work
  is the same to the row: what differs is how far apart rows are in memory (caches, page tables).
- full: as many tokens as rows. The larger the table, the more distinct rows a batch holds, each of
  which must be read and written.
- limit: touching the rows alone (benchmarks/row_touch.py), for the same ids.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from benchmarks.figures import figure
from benchmarks.row_touch import touch_rows
from freqsgd.nn import FM
from freqsgd.optimizers import Rule
from freqsgd.recommender.engine import Engine

FIELDS, DIM, BATCH, BATCHES, ROUNDS, SPREAD = 8, 32, 65_536, 4, 5, 100_000


def examples(tokens: int, rows: int) -> np.ndarray:
    """Ids by Zipf's law with exponent 1.05 over ``tokens``, scattered over a field's rows."""
    uniform = np.random.default_rng(0).random((BATCH * BATCHES, FIELDS))
    slope = -0.05
    ranks = (((tokens + 1.0) ** slope - 1) * uniform + 1) ** (1 / slope)
    ranks = np.minimum(ranks.astype(np.int64) - 1, tokens - 1)
    prime = 2_654_435_761  # scatters ranks without collisions
    return np.ascontiguousarray(ranks * (rows // tokens) * prime % rows, np.int32)


def nanoseconds(trainer: Engine, ids: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Of an example: in training, and of touching its rows."""
    weight = trainer.model.tokens.weight.detach().numpy()
    starts = np.cumsum([0, *trainer.model.sizes[:-1]])
    parts = [ids[first : first + BATCH] + starts for first in range(0, len(ids), BATCH)]
    distinct = [np.unique(part) for part in parts]
    order, lrs = np.arange(len(ids)), np.full(BATCHES, 0.01)
    training, touching = float("inf"), float("inf")
    with ThreadPoolExecutor(2) as pool:
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in trainer.train(ids, labels, order, lrs):
                pass
            training = min(training, time.perf_counter() - start)
            start = time.perf_counter()
            for rows, some in zip(parts, distinct, strict=True):
                touch_rows(weight, rows, some, pool, 2)
            touching = min(touching, time.perf_counter() - start)
    return training / len(ids) * 1e9, touching / len(ids) * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**n for n in (5, 6, 7, 8)])
    torch.set_num_threads(2)
    labels = (np.random.default_rng(1).random(BATCH * BATCHES) < 0.1).astype(np.uint8)
    print("        rows     GB  tokens   distinct rows      ns   limit  ratio")
    least: dict[str, tuple[int, float, float]] = {}
    for rows in parser.parse_args().rows:
        model = FM([rows // FIELDS] * FIELDS, DIM)
        trainer = Engine(model, Rule("cfsgd", 0.01), batch_size=BATCH, threads=2)
        size = model.tokens.weight.nbytes / 1e9
        for name, tokens in (("spread", min(SPREAD, rows) // FIELDS), ("full", rows // FIELDS)):
            ids = examples(tokens, rows // FIELDS)
            distinct = sum(len(np.unique(ids[:BATCH, n])) for n in range(FIELDS))
            trained, touched = nanoseconds(trainer, ids, labels)
            print(
                f"{rows:12,} {size:6.2f}  {name:8} {distinct:13,} {trained:7.0f} {touched:7.0f} "
                f"{trained / touched:6.2f}",
                flush=True,
            )
            first = least.setdefault(name, (rows, trained, touched))
            if first[0] != rows:
                claim = f"{name}: {{}} on {rows:,} rows / on {first[0]:,}"
                figure(claim.format("an example"), trained / first[1])
                figure(claim.format("touching the rows alone"), touched / first[2])
        del model, trainer


if __name__ == "__main__":
    main()
