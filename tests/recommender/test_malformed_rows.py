"""Malformed rows of a stream of files: how many may be left out, and how many were."""

from __future__ import annotations

import signal

import polars as pl
import pytest

from freqsgd.errors import DataError, DataWarning, InterruptedFitError
from freqsgd.optimizers import Rule
from freqsgd.recommender.one_pass import fit_stream
from freqsgd.recommender.settings import Settings
from tests.tables.days_of_files import frame_of, stream_of, write

RULE, SETTINGS = Rule("sgd", 0.1), Settings(dim=2, batch_size=50)
# Two days to learn from and one to evaluate on; of the second no example is left at its end.
MALFORMED = ([3, 20], [5, *range(180, 300)], [0, 7, 299])
COUNT = 2 + 121 + 3


@pytest.fixture
def days(tmp_path, monkeypatch):
    monkeypatch.setattr("freqsgd.tables.readers.reader.BLOCK_ROWS", 100)
    for day, rows in enumerate(MALFORMED):
        frame = frame_of(300, day)
        frame = frame.with_columns(
            click=pl.when(pl.row_index().is_in(rows)).then(7).otherwise("click")
        )
        write(frame, tmp_path / "days" / f"day-{day}.parquet")
    return tmp_path / "days"


@pytest.mark.filterwarnings("ignore::freqsgd.errors.DataWarning")
def test_all_malformed_rows_are_counted(days):
    record = fit_stream(stream_of(days, max_bad_rows=COUNT), RULE, SETTINGS)[1]
    assert record["examples"] == 600 - 2 - 121
    assert record["test_rows"] == 300 - 3
    assert record["dropped"] == COUNT


def test_the_limit_is_that_of_all_days(days):
    with (
        pytest.warns(DataWarning, match="123 malformed rows"),
        pytest.raises(DataError, match=f"{COUNT} malformed rows"),
    ):
        fit_stream(stream_of(days, max_bad_rows=COUNT - 1), RULE, SETTINGS)


@pytest.mark.filterwarnings("ignore::freqsgd.errors.DataWarning")
@pytest.mark.parametrize("batch", [1, 6, 8, 9, 10, 11, 12, 16])  # 10 learn, 6 evaluate
def test_none_is_missed_or_counted_twice_after_a_resume(days, batch, tmp_path):
    told = []

    def listen(progress, record):
        told.append(progress.evaluating)
        if len(told) == batch:
            signal.raise_signal(signal.SIGINT)

    folder = tmp_path / "run"
    with pytest.raises(InterruptedFitError):
        fit_stream(
            stream_of(days, max_bad_rows=COUNT), RULE, SETTINGS, folder=folder, listener=listen
        )
    stream = stream_of(days, max_bad_rows=COUNT)
    record = fit_stream(stream, RULE, SETTINGS, folder=folder, resume=True)[1]
    assert record["dropped"] == COUNT
    assert record["test_rows"] == 300 - 3
