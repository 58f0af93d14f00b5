"""Generated click logs as streams, and as files."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from freqsgd.errors import DataError
from freqsgd.runs.metrics import auc, cross_entropy, normalized_entropy
from freqsgd.tables import ClickLog, ClickStream
from freqsgd.tables.fields import Chunk, Position
from freqsgd.tables.generated import clicks as click_files
from freqsgd.tables.generated.click_log import BLOCK_ROWS
from freqsgd.tables.generated.clicks import blocks_of, write_clicks

LOG = ClickLog((300, 40, 5), (1.1, 0.9, 1.0), days=3, rows=BLOCK_ROWS + 5000, seed=2)


def joined(chunks: list[Chunk]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.concatenate([chunk.ids for chunk in chunks]),
        np.concatenate([chunk.labels for chunk in chunks]),
    )


def test_the_stream_is_the_blocks_in_order() -> None:
    stream = ClickStream(LOG)
    chunks = list(stream.chunks(0, 3))
    places = [(day, number) for day in range(3) for number in range(2)]
    assert [(chunk.day, chunk.file) for chunk in chunks] == [(day, day) for day, _ in places]
    for chunk, place in zip(chunks, places, strict=True):
        block = LOG.block(*place)
        np.testing.assert_array_equal(chunk.ids, block.tokens)
        np.testing.assert_array_equal(chunk.labels, block.labels)
        first = place[1] * BLOCK_ROWS + 1
        np.testing.assert_array_equal(
            chunk.numbers, np.arange(first, first + len(chunk.labels), dtype=np.int64)
        )
    assert chunks[1].done == pytest.approx(1 / 3)
    assert chunks[-1].done == 1
    assert stream.days == ("day-00", "day-01", "day-02")
    assert [field.size for field in stream.fields] == list(LOG.tokens)


@pytest.mark.parametrize("row", [0, 1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, LOG.rows])
def test_a_stream_goes_on_from_any_position(row: int) -> None:
    stream = ClickStream(LOG)
    whole = joined(list(stream.chunks(0, 3)))
    rest = list(stream.chunks(0, 3, Position(1, row)))
    for all_rows, later in zip(whole, joined(rest), strict=True):
        np.testing.assert_array_equal(all_rows[LOG.rows + row :], later)
    assert rest[0].day == (2 if row == LOG.rows else 1)
    numbers = np.concatenate([chunk.numbers for chunk in rest])
    rows = np.arange(LOG.rows + row, 3 * LOG.rows)
    np.testing.assert_array_equal(numbers, rows % LOG.rows + 1)
    assert rest[-1].done == 1
    assert all(chunk.ids.flags.c_contiguous for chunk in rest)


def test_after_the_last_row_there_is_nothing() -> None:
    assert list(ClickStream(LOG).chunks(0, 3, Position(2, LOG.rows))) == []


def test_closing_a_stream_stops_its_threads() -> None:
    before = threading.active_count()
    chunks = ClickStream(LOG).chunks(0, 3)
    next(chunks)
    chunks.close()
    assert threading.active_count() == before


def test_fingerprints_tell_logs_and_encodings_apart() -> None:
    other = ClickLog(LOG.sizes, LOG.exponents, days=3, rows=LOG.rows, seed=3)
    streams = [
        ClickStream(LOG),
        ClickStream(other),
        ClickStream(LOG, [7, 7, 7]),
        ClickStream(LOG, [7, 7, 8]),
        ClickStream(LOG, LOG.tokens),
    ]
    assert len({stream.fingerprint for stream in streams}) == 5
    assert ClickStream(LOG).fingerprint == streams[0].fingerprint


def test_the_truth_scores_what_its_probabilities_score() -> None:
    truth = ClickStream(LOG).truth(1, 3)
    blocks = list(blocks_of(LOG, 1, 3))
    odds = np.concatenate([block.log_odds for block in blocks])
    labels = np.concatenate([block.labels for block in blocks])
    loss = cross_entropy(odds, labels)
    assert truth.rows == 2 * LOG.rows
    assert truth.loss == pytest.approx(loss, rel=1e-6)
    assert truth.ne == pytest.approx(normalized_entropy(loss, labels), rel=1e-6)
    assert truth.auc == pytest.approx(auc(odds, labels), abs=1e-5)


def test_the_truth_is_a_number_where_clicks_are_next_to_certain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = ClickLog((2,), (1.0,), days=1, rows=2)
    odds, labels = np.float32([30, -40]), np.uint8([0, 1])
    block = log.block(0, 0)._replace(log_odds=odds, labels=labels)
    monkeypatch.setattr(ClickLog, "block", lambda *place: block)
    assert ClickStream(log).truth(0, 1).loss == pytest.approx(35)


def test_no_days_score_nothing() -> None:
    assert ClickStream(LOG).truth(3, 3) == (0, None, None, None)


def test_one_class_has_neither_entropy_nor_auc() -> None:
    log = ClickLog((2,), (1.0,), rows=3, base_rate=1e-6, linear_std=0.0)
    truth = ClickStream(log).truth(0, 1)
    assert (truth.rows, truth.ne, truth.auc) == (3, None, None)


def test_files_hold_the_rows_of_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click_files, "PART_ROWS", BLOCK_ROWS)
    told: list[tuple[int, int]] = []
    files = write_clicks(LOG, tmp_path / "clicks", lambda *done: told.append(done))
    assert [str(path.relative_to(tmp_path / "clicks")) for path in files] == [
        f"day-0{day}/part-00{part}.parquet" for day in range(3) for part in range(2)
    ]
    assert told[-1] == (3 * LOG.rows, 3 * LOG.rows)
    assert sorted(p for p in tmp_path.rglob("*") if p.is_file()) == files
    frame = pl.concat([pl.read_parquet(path) for path in files])
    assert frame.columns == ["label", "f01", "f02", "f03"]
    assert set(frame.dtypes[1:]) == {pl.Int32}
    ids, labels = joined(list(ClickStream(LOG).chunks(0, 3)))
    np.testing.assert_array_equal(frame["label"].to_numpy(), labels)
    np.testing.assert_array_equal(frame.drop("label").to_numpy(), ids)


def test_hashed_files_give_the_ids_of_the_hashed_stream(tmp_path: Path) -> None:
    log = ClickLog((300, 40), (1.1, 0.9), days=1, rows=3000)
    stream = ClickStream(log, [128, 1000])
    assert stream.encoder is not None
    (path,) = write_clicks(log, tmp_path)
    csv = tmp_path / "clicks.csv"
    pl.read_parquet(path).write_csv(csv)
    ids, _ = joined(list(stream.chunks(0, 1)))
    assert [field.size for field in stream.fields] == [128, 1000]
    assert np.unique(ids[:, 1]).size > 30
    for file in (path, csv):
        found = np.concatenate(list(stream.encoder.encode_file(str(file))))
        np.testing.assert_array_equal(found, ids)


def test_rows_to_hash_to_must_fit_the_features() -> None:
    with pytest.raises(DataError, match="2 numbers of rows do not fit 3 features"):
        ClickStream(LOG, [10, 10])


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="is not empty: name a new folder"):
        write_clicks(LOG, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    "fault", [OSError(28, "No space left on device"), pl.exceptions.ComputeError("No space left")]
)
def test_a_full_disk_leaves_whole_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    write = pl.DataFrame.write_parquet

    def fail_on_the_third(frame: pl.DataFrame, path: Path, **options: object) -> None:
        if "day-02" in str(path):
            path.write_bytes(b"PAR1 a part")
            raise fault
        write(frame, path, **options)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail_on_the_third)
    with pytest.raises(DataError, match=r"No space left.*; 2 files are there, each whole"):
        write_clicks(LOG, tmp_path / "clicks")
    left = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert [path.name for path in left] == ["part-000.parquet"] * 2
    assert [len(pl.read_parquet(path)) for path in left] == [LOG.rows] * 2
