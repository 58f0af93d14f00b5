"""Does a step cost more on a larger table?

    python -m benchmarks.table_size [--rows 1000000 100000000]

``CFSGD.step()`` on one table of dimension 16 with sparse gradients, ids by Zipf's law with exponent
1.1 scattered over the table; milliseconds, medians over 40 steps. Nothing in a step depends on the
number of rows but how far apart in memory they are. With THP_MEM_ALLOC_ENABLE=1 torch puts tensors
into huge pages, which spares most of that. The largest table takes 6.8 GB.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np
import torch

from benchmarks.figures import figure
from freqsgd import CFSGD

DIM, EXPONENT, STEPS = 16, 1.1, 40


def scattered_zipf(rows: int, batch: int, number: int) -> torch.Tensor:
    """Ids, (number, batch); the multiplier is prime, so it scatters ranks without collisions."""
    cdf = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -EXPONENT)
    ranks = np.searchsorted(cdf, np.random.default_rng(0).random((number, batch)) * cdf[-1])
    return torch.from_numpy(ranks.clip(0, rows - 1) * 2_654_435_761 % rows)


class Table:
    """A table with its optimizer."""

    def __init__(self, rows: int) -> None:
        weight = torch.zeros(rows, DIM).uniform_()
        self.table = torch.nn.Embedding(rows, DIM, sparse=True, _weight=weight)
        self.optimizer = CFSGD(self.table.parameters(), lr=0.1)
        self.grad = torch.randn(1 << 17, DIM) * 1e-6

    def step(self, ids: torch.Tensor) -> float:
        """Milliseconds of the optimizer's step alone."""
        self.optimizer.zero_grad()
        self.table(ids).backward(self.grad[: len(ids)])
        start = time.perf_counter()
        self.optimizer.step()
        return (time.perf_counter() - start) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 100_000_000])
    parser.add_argument("--batch", type=int, nargs="+", default=[4096, 65_536])
    options = parser.parse_args()
    tables = {rows: Table(rows) for rows in options.rows}
    for batch in options.batch:
        ids = {rows: scattered_zipf(rows, batch, STEPS + 5) for rows in tables}
        times: dict[int, list[float]] = {rows: [] for rows in tables}
        for step in range(STEPS + 5):  # in turn, so that all see the same machine
            for rows, table in tables.items():
                times[rows].append(table.step(ids[rows][step]))
        spent = {rows: statistics.median(t[5:]) for rows, t in times.items()}
        pages = " in huge pages" * (os.environ.get("THP_MEM_ALLOC_ENABLE") == "1")
        first = options.rows[0]
        for rows in tables:
            distinct = len(ids[rows][0].unique())
            print(f"{rows:14,} rows: {spent[rows]:6.2f} ms ({distinct:,} distinct)")
            if rows != first:
                claim = f"step on {rows:,} rows{pages} / on {first:,}, batch {batch:,}"
                figure(claim, spent[rows] / spent[first])


if __name__ == "__main__":
    main()
