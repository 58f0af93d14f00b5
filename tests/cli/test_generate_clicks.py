"""``freqsgd stream generate`` and the dataset clicks-small."""

from __future__ import annotations

import shlex
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from freqsgd.cli.app import app
from freqsgd.errors import DataError
from freqsgd.tables import ClickLog, ClickStream


def run(*arguments: str) -> str:
    """What the command prints; its errors are raised."""
    return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


def generate(out: Path, *more: str) -> str:
    return run("stream", "generate", "--out", str(out), "--days", "2", "--rows", "500", *more)


def test_files_are_those_that_the_options_describe(tmp_path: Path) -> None:
    out = tmp_path / "clicks"
    options = "--features 3 --smallest 10 --largest 1000 --base-rate 0.3 --drift 0.5"
    output = generate(out, *shlex.split(options), "--new-tokens", "0.4", "--seed", "9")
    log = ClickLog.of(
        3, 10, 1000, days=2, rows=500, base_rate=0.3, drift=0.5, new_tokens=0.4, seed=9
    )
    for day, chunk in enumerate(ClickStream(log).chunks(0, 2)):
        frame = pl.read_parquet(out / f"day-0{day}" / "part-000.parquet")
        assert frame.drop("label").to_numpy().tolist() == chunk.ids.tolist()
        assert frame["label"].to_list() == chunk.labels.tolist()
    assert f"{out}: 2 files, 1,000 rows" in output
    assert f"freqsgd stream compare --data {out} --label label --features f01,f02,f03" in output
    assert "range of ids: 2,220: tokens that may occur" in output
    assert "positive rate: 0.3: the mean probability, not a count" in output
    assert "--hash-rows f01=20,f02=200,f03=2000" in output


def test_defaults_are_those_of_the_small_preset(tmp_path: Path) -> None:
    generate(tmp_path)
    frame = pl.read_parquet(tmp_path / "day-01" / "part-000.parquet")
    log = ClickLog.of(days=2, rows=500)
    (chunk,) = ClickStream(log).chunks(1, 2)
    assert frame.drop("label").to_numpy().tolist() == chunk.ids.tolist()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--features", "0"], "the number of features must be at least 1"),
        (["--smallest", "50", "--largest", "20"], "the largest size must be at least 50"),
        (["--base-rate", "1.2"], "--base-rate must be between"),
        (["--largest", "2000000000"], "that can be numbered"),
    ],
)
def test_bad_options_are_refused_before_anything_is_made(
    tmp_path: Path, options: list[str], says: str
) -> None:
    with pytest.raises(DataError, match=says):
        generate(tmp_path / "clicks", *options)
    assert not (tmp_path / "clicks").exists()


def test_a_second_run_into_the_same_folder_is_refused(tmp_path: Path) -> None:
    generate(tmp_path / "clicks")
    with pytest.raises(DataError, match="is not empty: name a new folder"):
        generate(tmp_path / "clicks")


def test_ctrl_c_says_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pl.DataFrame, "write_parquet", interrupted)
    arguments = ["stream", "generate", "--out", str(tmp_path), "--rows", "500"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 130
    assert "interrupted" in result.output
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_small_preset_is_a_known_dataset() -> None:
    assert "clicks-small: generated clicks of 10 days" in run("data", "list")
    assert run("data", "get", "clicks-small") == "clicks-small is made when it is used\n"
    facts = run("data", "info", "clicks-small")
    assert "2,000,000: 10 days of 200,000" in facts
    assert "16, each of 100 to 200,000 tokens on a day" in facts
    arguments = ["inspect", "--dataset", "clicks-small"]
    with pytest.raises(DataError, match=r"stream generate --out FOLDER.*--data FOLDER/day-00"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)


@pytest.mark.parametrize("command", ["compare", "train", "tune"])
def test_the_small_preset_is_for_one_pass(tmp_path: Path, command: str) -> None:
    arguments = [command, "--dataset", "clicks-small", "--out", str(tmp_path / "out")]
    with pytest.raises(DataError, match="is a stream of days: train on it in one pass"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
