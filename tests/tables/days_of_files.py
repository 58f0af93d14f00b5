"""Small days of files, and all that is in them by other means."""

from __future__ import annotations

import gzip

import numpy as np
import polars as pl

from freqsgd.tables.loading import open_stream
from freqsgd.tables.spec import StreamOptions
from tests.tables.slow_hash import slow_row

ROWS = {"user": 1000, "item": 10**6}


def frame_of(rows, seed):
    """Rows with a label, a user who may be missing, an item and a column nobody asks for."""
    rng = np.random.default_rng(seed)
    users = [None if n % 17 == 0 else int(n) for n in rng.integers(-5, 200, rows)]
    return pl.DataFrame(
        {
            "other": rng.random(rows).round(3),
            "item": [f"i{n}" if n % 3 else str(n) for n in rng.integers(0, 10**6, rows)],
            "click": rng.integers(0, 2, rows),
            "user": pl.Series(users, dtype=pl.Int32),
        }
    )


def write(frame, path, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        frame.write_parquet(path, **options)
    elif path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    else:
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")


def options_of(path, **more):
    chosen = {"label": "click", "features": ("user", "item"), "hash_rows": "user=1000,item=1e6"}
    return StreamOptions(path=str(path), **{**chosen, **more})


def stream_of(path, **more):
    return open_stream(options_of(path, **more))


def slow_ids(frame):
    """The ids of all rows, token after token."""
    return [
        [slow_row(field, row[name], rows) for field, (name, rows) in enumerate(ROWS.items())]
        for row in frame.iter_rows(named=True)
    ]


def everything(chunks):
    """Every example: ids, label, day, position."""
    return [
        (chunk.ids[row].tolist(), int(chunk.labels[row]), chunk.day, chunk.position(row))
        for chunk in chunks
        for row in range(len(chunk.labels))
    ]
