"""What is planned for reading is about what the blocks on their way take."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from freqsgd.recommender.memory import reading_bytes
from freqsgd.runs.machine import forget_peak, peak_memory
from freqsgd.tables import ClickLog, ClickStream
from freqsgd.tables.loading import open_stream
from freqsgd.tables.readers.reader import reader as parquet
from freqsgd.tables.spec import StreamOptions
from tests.recommender.streams import MemoryStream

CELLS = 1 << 21  # of a block, fewer than in earnest
COLUMNS = {"integers": 300, "text": 26}


def stream_of(kind, path):
    features = tuple(f"f{k}" for k in range(COLUMNS[kind]))
    return open_stream(
        StreamOptions(path=str(path), label="click", features=features, hash_rows="100")
    )


def measured(kind, path):
    """Bytes by which memory grows while a stream is read, and what was planned."""
    parquet._BLOCK_CELLS = CELLS
    stream = stream_of(kind, path)
    forget_peak()
    before = peak_memory()
    for chunk in stream.chunks(0, 1):
        assert len(chunk.labels)
    return peak_memory() - before, reading_bytes(stream, stream.summary()["rows"])


@pytest.mark.skipif(peak_memory() is None, reason="this system does not tell")
@pytest.mark.parametrize(
    ("kind", "form"), [("integers", "parquet"), ("text", "parquet"), ("text", "csv")]
)
def test_the_plan_is_about_what_reading_takes(kind, form, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_BLOCK_CELLS", CELLS)
    rng, rows = np.random.default_rng(0), 4 * parquet.block_rows(COLUMNS[kind] + 1)
    columns = {"click": pl.Series(rng.integers(0, 2, rows))}
    for k in range(COLUMNS[kind]):
        values = pl.Series(rng.integers(0, 10**6, rows), dtype=pl.Int64)
        is_text = kind == "text"
        columns[f"f{k}"] = (values + 10**15).cast(pl.String) if is_text else values.cast(pl.Int32)
    path = tmp_path / f"day.{form}"
    frame = pl.DataFrame(columns)
    if form == "parquet":
        frame.write_parquet(path, row_group_size=rows // 4)
    else:
        frame.write_csv(path)
    program = f"from {__name__} import measured; print(*measured({kind!r}, {str(path)!r}))"
    found = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    grown, planned = map(int, found.stdout.split())
    assert planned / 4 < grown < 4 * planned, (grown, planned)


def test_few_rows_and_generated_ones_take_little():
    assert reading_bytes(MemoryStream(), 2250) < 1_000_000
    log = ClickLog(sizes=(1000,) * 26, exponents=(1.1,) * 26, days=20, rows=10**9)
    assert reading_bytes(ClickStream(log), 20 * 10**9) < 100_000_000
