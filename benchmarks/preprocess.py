"""How fast, and in how much memory, are rows in Criteo's format encoded?

    python -m benchmarks.preprocess [--millions 5 20] [--folder DIR]

Rows are generated with a fixed seed: 13 integers and 26 categories of 8 hexadecimal digits, three
of these with a million tokens. Most tokens are drawn with probability 1/rank; every fifth row takes
the next token in turn, so that all files hold the same tokens and their dictionaries the same
memory. Each file is encoded by a process of its own. Peak is the most memory that it ever held (its
resident set), Python and torch included. 5 and 20 million rows need about 12 GB of disk.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.figures import figure
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions

BLOCK = 200_000  # rows generated at a time
SIZES = [1_000_000] * 3 + [200_000] * 4 + [20_000] * 5 + [2_000] * 6 + [100] * 4 + [10] * 4
LARGEST = 1000  # integer
MISSING = 0.1  # of the cells of every other column


def vocabulary(field: int, size: int) -> pl.Series:
    """Distinct tokens of 8 hexadecimal digits."""
    numbers = (np.arange(size, dtype=np.uint64) * 2_654_435_761 + field * 97_561) % 2**32
    return pl.Series([f"{number:08x}" for number in numbers.tolist()])


def generate(path: Path, rows: int) -> None:
    """Write a file of so many rows."""
    random = np.random.default_rng(0)
    vocabularies = [vocabulary(field, size) for field, size in enumerate(SIZES)]
    with path.open("wb") as file:
        for start in range(0, rows, BLOCK):
            count = min(BLOCK, rows - start)
            columns = {"label": pl.Series((random.random(count) < 0.25).astype(np.uint8))}
            for number in range(13):
                drawn = np.exp(random.normal(1 + number / 4, 1.5, count)).astype(np.int64)
                values = pl.Series(np.minimum(drawn, LARGEST))
                columns[f"I{number}"] = blank(values, number, random)
            for field, size in enumerate(SIZES):
                tokens = (size ** random.random(count)).astype(np.int64) - 1
                turn = np.arange(start // 5, (start + count) // 5) % size
                tokens[: 5 * len(turn) : 5] = turn
                values = vocabularies[field].gather(tokens)
                columns[f"C{field}"] = blank(values, field, random, keep_every=5)
            pl.DataFrame(columns).write_csv(file, separator="\t", include_header=False)


def blank(
    values: pl.Series, column: int, random: np.random.Generator, keep_every: int = 0
) -> pl.Series:
    """Take some values of every other column away."""
    if column % 2 == 0:
        return values
    missing = random.random(len(values)) < MISSING
    if keep_every:
        missing[::keep_every] = False
    return values.set(pl.Series(missing), None)


def encode() -> None:
    """Encode the file, then print seconds and peak bytes."""
    start = time.perf_counter()
    load(DataOptions(dataset="criteo"))
    seconds = time.perf_counter() - start
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def measure(rows: int, parent: str | None) -> float:
    """Generate and encode so many rows in a temporary folder, print what it took."""
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        path = Path(folder) / "criteo" / "train.txt"
        path.parent.mkdir()
        generate(path, rows)
        size = path.stat().st_size
        result = subprocess.run(
            [sys.executable, "-m", "benchmarks.preprocess", "--encode"],
            env={**os.environ, "FREQSGD_DATA": folder, "FREQSGD_CACHE": f"{folder}/cache"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    seconds, peak = map(float, result.stdout.split())
    print(f"{size / rows:.0f} bytes a row, {seconds:.1f} s")
    figure(f"encoding {rows / 1e6:g} million rows", rows / seconds, "rows/s")
    figure(f"encoding {rows / 1e6:g} million rows, peak memory", peak / 1e9, "GB")
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=float, nargs="+", default=[5, 20])
    parser.add_argument("--folder", help="where to put the files (default: the system's)")
    parser.add_argument("--encode", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.encode:
        encode()
        return
    peaks = [measure(round(millions * 1e6), options.folder) for millions in options.millions]
    figure("largest peak / smallest peak", max(peaks) / min(peaks))


if __name__ == "__main__":
    main()
