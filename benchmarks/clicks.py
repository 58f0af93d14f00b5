"""How fast is the click-log generator?

    python -m benchmarks.clicks [--millions 4] [--features 26] [--size 1000000] [--folder DIR]

Rows of 26 features of a million tokens each are made on two threads: alone, hashed as one-pass
training may take them, and written as Parquet. The time of a day's calibration is in it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import figure
from freqsgd.tables import ClickLog, ClickStream
from freqsgd.tables.generated.clicks import blocks_of, write_clicks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, default=4)
    parser.add_argument("--features", type=int, default=26)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--folder", help="where to put the files (default: the system's)")
    given = parser.parse_args()
    rows = round(1e6 * given.millions)
    log = ClickLog.of(given.features, given.size, given.size, days=1, rows=rows)
    hashed = ClickStream(log, log.tokens)
    for _ in hashed.chunks(0, 1):  # compiles
        break
    log = replace(log, seed=1)  # calibrated anew
    hashed = ClickStream(log, log.tokens)
    report("generated", rows, lambda: sum(len(block.labels) for block in blocks_of(log, 0, 1)))
    report("hashed", rows, lambda: sum(len(chunk.labels) for chunk in hashed.chunks(0, 1)))
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        report("written as Parquet", rows, lambda: write_clicks(log, Path(folder)))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
        print(f"{size / rows:.1f} bytes a row")


def report(what: str, rows: int, work: Callable[[], object]) -> None:
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    figure(f"clicks {what}", rows / seconds / 1e6, "million rows/s")


if __name__ == "__main__":
    main()
