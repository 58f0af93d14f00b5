"""Does a step cost more on a larger table?

    python -m benchmarks.table_size [--rows 1000000 100000000]

``CFSGD.step()`` on one table of dimension 16 with sparse gradients, ids by Zipf's law with exponent
1.1 scattered over the table; milliseconds, medians over 40 steps. Nothing in a step depends on the
number of rows but how far apart in memory they are. The largest table takes 6.8 GB.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import torch

from freqsgd import CFSGD

DIM, EXPONENT, STEPS = 16, 1.1, 40


def scattered_zipf(rows: int, batch: int, number: int) -> torch.Tensor:
    """Ids, (number, batch); the multiplier is prime, so it scatters ranks without collisions."""
    cdf = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -EXPONENT)
    ranks = np.searchsorted(cdf, np.random.default_rng(0).random((number, batch)) * cdf[-1])
    return torch.from_numpy(ranks.clip(0, rows - 1) * 2_654_435_761 % rows)


def measure(rows: int, batches: list[int]) -> list[tuple[int, float]]:
    """Distinct rows of a batch and milliseconds of a step, for each batch size."""
    table = torch.nn.Embedding(rows, DIM, sparse=True, _weight=torch.zeros(rows, DIM).uniform_())
    optimizer = CFSGD(table.parameters(), lr=0.1)
    found = []
    for batch in batches:
        ids = scattered_zipf(rows, batch, STEPS + 5)
        times = []
        for i in ids:
            optimizer.zero_grad()
            table(i).mean().backward()
            start = time.perf_counter()
            optimizer.step()
            times.append((time.perf_counter() - start) * 1e3)
        found.append((len(ids[0].unique()), statistics.median(times[5:])))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 100_000_000])
    parser.add_argument("--batch", type=int, nargs="+", default=[4096, 65_536])
    options = parser.parse_args()
    results = {rows: measure(rows, options.batch) for rows in options.rows}
    first = results[options.rows[0]]
    for k, batch in enumerate(options.batch):
        print(f"batch of {batch:,} ids")
        for rows, found in results.items():
            distinct, spent = found[k]
            ratio = spent / first[k][1]
            print(f"{rows:14,} rows: {spent:7.2f} ms ({distinct:,} distinct), {ratio:.2f} x")


if __name__ == "__main__":
    main()
