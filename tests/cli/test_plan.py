"""``freqsgd plan`` and ``freqsgd bench``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from freqsgd.cli.app import app
from freqsgd.cli.plan_size import quantity
from freqsgd.errors import DataError, DataWarning
from freqsgd.planner import measure as measuring
from freqsgd.planner.speed import read_bench
from tests.planner.test_measure import TINY
from tests.planner.test_speed import document


def run(command: str, *more: str | Path) -> str:
    """What a command prints; its errors are raised."""
    words = [*shlex.split(command), *map(str, more)]
    return CliRunner().invoke(app, words, catch_exceptions=False).stdout


def planned(command: str, *more: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(f"plan --json --host-memory 64GB {command}", *more))
    return found


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    path = tmp_path / "host.json"
    path.write_text(json.dumps(document()))
    return path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("800", 800),
        ("1e8", 10**8),
        ("100M", 10**8),
        ("2.5 G", 2_500_000_000),
        ("65,536", 65_536),
        ("1_000", 1000),
        ("64k", 64_000),
        ("2Ki", 2048),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, value: int) -> None:
    assert quantity("--rows", text) == value


@pytest.mark.parametrize(("text", "value"), [("1T", 10**12), ("64GB", 64 * 10**9), ("1GiB", 2**30)])
def test_bytes_may_have_their_unit(text: str, value: int) -> None:
    assert quantity("--host-memory", text, unit="B") == value


@pytest.mark.parametrize("text", ["", "many", "1e8x", "-5", "1.2.3", "nan", "64GB", "1e", "M"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="--rows takes a number such as"):
        quantity("--rows", text)


@pytest.mark.parametrize("text", ["0", "0.5", "1.5", "1e999"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="--rows must be a whole number of at least 1"):
        quantity("--rows", text)


def test_the_issue_of_many_hosts_is_told_in_a_table() -> None:
    told = run("plan --features 800 --rows 1e8 --dim 64 --batch-size 65536 --host-memory 1T")
    assert "800 features, 80,000,000,000 rows in all" in told
    assert "weights 21.8 TB in TorchRec, whose rows of 65 numbers are padded to 68\n" in told
    assert "one process of freqsgd, without padding, would take 21.1 TB, which does not" in told
    assert "counter-sgd: FBGEMM's COUNTER_SGD, which is cfsgd counting batches" in told
    assert "counter-sgd      three floats per row            12  960.0 GB       22.7 TB" in told
    assert "sent by each of 27 hosts in a step" in told
    assert "freqsgd bench measures the rates that are missing" in told
    assert "prediction, from" not in told


def test_the_table_and_the_file_tell_the_same(tmp_path: Path, rates: Path) -> None:
    sizes = "--features 26 --rows 1M --dim 16 --hosts 2 --network 25G --examples 1e9"
    out = tmp_path / "plans" / "plan.json"
    told = run(f"plan --host-memory 64GB {sizes}", "--bench", rates, "--out", out)
    saved = json.loads(out.read_text())
    assert saved == planned(sizes, "--bench", rates)
    assert saved["host"]["network_bytes_per_second"] == 25e9 / 8
    assert "prediction, from rates measured on Z80, 2 threads, 2031-02-03" in told
    for each in saved["predictions"]:
        speed = round(each["examples_per_second"])
        assert f"about {round(speed, 2 - len(str(speed))):,} " in told
    starts = {line[14:].split("  ")[0][:40] for line in told.splitlines()}
    for text in [*saved["predictions"][1]["assumptions"], *saved["notes"]]:
        assert text[:40] in starts  # each begins a line
    assert "Bottleneck" in told


def test_a_model_has_its_own_sizes(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    run("train --samples 900 --epochs 1 --lr 1 --model deepfm --dim 5 --hidden 7 --out", folder)
    size = planned("--model", folder)["size"]
    assert (size["features"], size["dim"], size["hidden"]) == (2, 5, [7])
    assert size["batch_size"] == 1024
    assert planned("--batch-size 2k --model", folder)["size"]["batch_size"] == 2000
    with pytest.raises(DataError, match="--dim does not go with --model"):
        planned("--dim 8 --model", folder)
    with pytest.raises(DataError, match="is not a model"):
        planned("--model", tmp_path)


def test_a_model_of_words_is_refused(tmp_path: Path) -> None:
    folder, text = tmp_path / "words", tmp_path / "text.txt"
    text.write_text("a b c d e f g h\n" * 200)
    run("words train --dim 4 --epochs 1 --min-count 1", "--data", text, "--out", folder)
    with pytest.raises(DataError, match="holds no FM or DeepFM"):
        planned("--model", folder)


def test_data_has_its_own_sizes(tmp_path: Path) -> None:
    path = tmp_path / "clicks.parquet"
    bags = [["x"], ["y", "z"], []] * 20
    frame = {"user": list(range(60)), "tags": bags, "click": [0, 1, 1] * 20}
    pl.DataFrame(frame).write_parquet(path)
    columns = "--features user,tags --dim 8 --data"
    size = planned(columns, path)["size"]
    assert (size["features"], size["tokens_per_example"], size["dim"]) == (2, 3, 8)
    assert size["rows"] == 60 + 1 + 3 + 1  # users and tags, and a row each for those not seen
    assert planned(f"--label click {columns}", path)["size"] == size
    assert planned(f"--hash-rows user=100,tags=50 {columns}", path)["size"]["rows"] == 150
    assert planned("--dataset synthetic")["size"]["features"] == 2
    assert planned("--dataset clicks-small --hash-rows 1e6")["size"]["rows"] == 16 * 10**6


def test_sizes_of_data_need_no_label_and_no_perfect_rows(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("user,price,rating\nu,1.5,7\nv,none,3\nw,2,x\nbroken\n")
    with pytest.warns(DataWarning, match="2 malformed rows among the first 4"):
        size = planned("--features user --numeric price --data", path)["size"]
    assert size["rows"] == 2 + 1 + 2 + 1  # u and w; two bins
    hashed = planned("--features user --numeric price --hash-rows 50 --data", path)
    assert hashed["size"]["rows"] == 100


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("--data x.csv", "x.csv: name the columns: --features a,b, or --numeric"),
        ("", "say how large it is: --features 800 --rows 1e8"),
        ("--features 3", "say how large it is"),
        ("--features 3 --rows many", "--rows takes a number"),
        ("--features 1e9 --rows 5", "--features must be at most 1,000,000"),
        ("--features 3 --rows 5 --hidden 4,x", "--hidden takes sizes"),
        ("--features 3 --rows 5 --label click", "--label does not go with numbers"),
        (
            "--features 3 --rows 5 --network fast",
            "--network takes a number such as 25G or 100M, in bits",
        ),
        ("--features 3 --rows 5 --out .", "cannot write .: it is a folder"),
        ("--features 3 --rows 5 --optimizers cfsgd,lion", "unknown optimizer 'lion'"),
        ("--features 3 --rows 5 --optimizers ,", "--optimizers names none"),
        ("--features 3 --rows 5 --bench none.json", "cannot read none.json"),
        ("--dataset movielens-1m --rows 5", "--rows does not go with --dataset"),
        ("--dataset synthetic --hash-rows 5", "--hash-rows does not go with synthetic"),
        ("--dataset zipf-text", "zipf-text is text"),
        ("--dataset nope", "known are synthetic, movielens-1m, criteo, clicks-small"),
        ("--data x.csv --rows 5", "--rows does not go with --data"),
    ],
)
def test_bad_options_are_one_line(command: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        run(f"plan --host-memory 64GB {command}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("option", ["--dim", "--hosts", "--host-cores"])
def test_numbers_below_1_are_refused(option: str, in_process: Any) -> None:
    said = in_process("plan", "--features", "3", "--rows", "5", option, "0", code=2).err
    assert said.startswith(f"freqsgd: error: Invalid value for '{option}'")


def test_memory_that_is_not_given_is_that_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "plan --json --features 2 --rows 10 --batch-size 10"
    monkeypatch.setattr("freqsgd.cli.plan.available_memory", lambda: 5 * 10**9)
    assert json.loads(run(command))["host"]["memory"] == 5 * 10**9
    assert "a host of 5.0 GB, which is free here now" in run(command.replace("--json", ""))
    monkeypatch.setattr("freqsgd.cli.plan.available_memory", lambda: None)
    with pytest.raises(DataError, match="say --host-memory"):
        run(command)


def test_bench_keeps_what_plan_predicts_from_and_a_quick_one_does_not_replace_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freqsgd.planner.measure.FULL", replace(TINY, rounds=3))
    told = run("bench --threads 1")
    assert "FM, cfsgd" in told
    assert "quick: " not in told
    kept = tmp_path / "cache" / "bench.json"
    assert str(kept) in told
    assert planned("--features 2 --rows 10")["predictions"]
    assert json.loads(kept.read_text())["machine"]["threads"] == 1

    def measured(sizes: object, progress: object) -> object:
        assert sizes is measuring.QUICK
        return replace(found, quick=True)

    found, before = read_bench(), kept.read_text()
    assert found is not None
    monkeypatch.setattr(measuring, "measure", measured)
    out = tmp_path / "elsewhere.json"
    printed = run("bench --quick --json --out", out)
    assert json.loads(printed) == json.loads(out.read_text())
    told = run("bench --quick")
    assert "quick: tables this small fit the cache" in told
    assert "not kept: rates of --quick are only kept with --out" in told
    assert kept.read_text() == before


def test_a_target_that_cannot_be_written_is_told_before_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("freqsgd.planner.measure.measure", measured)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(DataError, match="it is a folder; name a file in it"):
        run("bench --out", tmp_path)
    with pytest.raises(DataError, match="file is no folder"):
        run("bench --out", file / "host.json")
    monkeypatch.setattr("freqsgd.files.os.access", lambda *_: False)
    with pytest.raises(DataError, match="no permission to write in"):
        run("bench --out", tmp_path / "new" / "host.json")
    assert not (tmp_path / "new").exists()


def test_data_has_the_defaults_of_one_pass() -> None:
    size = planned("--dataset synthetic")["size"]
    assert (size["dim"], size["batch_size"]) == (16, 1024)
    size = planned("--features 2 --rows 10")["size"]
    assert (size["dim"], size["batch_size"]) == (64, 65_536)
    assert planned("--features 2 --rows 10 --hidden 4")["size"]["dim"] == 16


def test_an_interrupted_bench_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measuring, "copy_rates", interrupt)
    monkeypatch.setattr("freqsgd.planner.measure.QUICK", TINY)
    result = CliRunner().invoke(app, ["bench", "--quick"])
    assert result.exit_code == 130
    assert not (tmp_path / "cache").exists()
