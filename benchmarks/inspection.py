"""How fast, and in how much memory, does `freqsgd inspect` count tokens?

    FREQSGD_DATA=... python -m benchmarks.inspection [--millions 5 20] [--folder DIR]

MovieLens' ratings (2 fields) are repeated to so many million rows, as they are published and as CSV
and Parquet with the columns user and movie; Criteo's sample (39 fields) to a tenth of that. Each
file is looked at by a process of its own, twice; the time is the second's, which compiles nothing.
Peak is the most memory that it ever held, Python and torch included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from benchmarks.figures import figure
from freqsgd.inspection.document import inspect_data
from freqsgd.inspection.options import InspectionOptions
from freqsgd.tables.catalog import find_file

RATINGS, CRITEO = "ml-1m/ratings.dat", "criteo/train.txt"


def content(relative: str) -> bytes:
    """The file of a dataset."""
    source = find_file(relative)
    if source is None:
        raise SystemExit(f"set FREQSGD_DATA to a folder that holds {relative}")
    found = source.read_bytes()
    return found if found.endswith(b"\n") else found + b"\n"


def repeated(relative: str, folder: Path, rows: int) -> InspectionOptions:
    """The file of a dataset, repeated."""
    once = content(relative)
    (folder / relative).parent.mkdir(parents=True)
    with (folder / relative).open("wb") as file:
        for _ in range(round(rows / once.count(b"\n"))):
            file.write(once)
    return InspectionOptions(dataset="criteo" if relative == CRITEO else "movielens-1m")


def table(name: str, folder: Path, rows: int) -> InspectionOptions:
    """The ratings as a table with a header, repeated."""
    raw = content(RATINGS).replace(b"::", b"\t")
    names = ["user", "movie", "rating", "timestamp"]
    frame = pl.read_csv(raw, separator="\t", has_header=False, new_columns=names)
    frame = pl.concat([frame.select(names[:2])] * round(rows / len(frame)))
    path = folder / name
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    return InspectionOptions(path=str(path))


def look(options: InspectionOptions) -> None:
    """Inspect twice, then print rows, seconds and peak bytes."""
    seconds = 0.0
    for _ in range(2):
        start = time.perf_counter()
        rows = inspect_data(options).dataset.rows
        seconds = time.perf_counter() - start
    print(rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=float, nargs="+", default=[5, 20])
    parser.add_argument("--folder", help="where to put the files (default: the system's)")
    parser.add_argument("--look", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.look:
        look(InspectionOptions(**json.loads(given.look)))
        return
    for millions in given.millions:
        for what in ("ratings.dat", "ratings.csv", "ratings.parquet", "criteo"):
            with tempfile.TemporaryDirectory(dir=given.folder) as folder:
                rows = round(1e6 * millions)
                if what in ("ratings.dat", "criteo"):
                    relative, share = (RATINGS, 1) if what == "ratings.dat" else (CRITEO, 10)
                    options = repeated(relative, Path(folder), rows // share)
                else:
                    options = table(what, Path(folder), rows)
                report(what, options, folder)


def report(what: str, options: InspectionOptions, folder: str) -> None:
    """Inspect in a process of its own."""
    told = json.dumps({"dataset": options.dataset, "path": options.path})
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.inspection", "--look", told],
        env={**os.environ, "FREQSGD_DATA": folder},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rows, seconds, peak = map(float, result.stdout.split())
    claim = f"{what}, {rows / 1e6:g} million rows"
    figure(claim, rows / seconds / 1e6, "million rows/s")
    figure(f"{claim}, peak memory", peak / 1e9, "GB")


if __name__ == "__main__":
    main()
