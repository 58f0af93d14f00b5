"""``--engine torchrec`` as a user runs it, on ranks that are killed, interrupted, or disagree."""

from __future__ import annotations

import csv
import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from freqsgd.runs import checkpoint
from freqsgd.runs.resume import CHECKPOINT
from freqsgd.torchrec import limits as libraries
from tests.torchrec.ranks import finish_ranks, fork_ranks, run_ranks, start_ranks
from tests.torchrec.sharded import DIFFERENT, same_record

DAYS, ROWS = 4, 600
BATCH = 50  # 36 batches to learn
DISTURBED = ("-m", "tests.cli.disturbed")


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Days of a table in which the shop decides, mostly."""
    folder, rng = tmp_path_factory.mktemp("days"), np.random.default_rng(0)
    for day in range(DAYS):
        user, shop = rng.integers(0, 80, ROWS), rng.integers(0, 20, ROWS)
        label = ((shop % 2 == 0) ^ (rng.random(ROWS) < 0.2)).astype(int)
        frame = pl.DataFrame({"user": [f"u{i}" for i in user], "shop": shop, "click": label})
        frame.write_csv(folder / f"day-{day}.csv")
    return folder


def options(days: Path, out: Path, **changes: Any) -> list[str]:
    """Of a run that takes a checkpoint after every sixth batch."""
    given = {
        "data": days, "label": "click", "features": "user,shop", "hash-rows": "user=200,shop=50",
        "model": "deepfm", "dim": 6, "batch-size": BATCH, "threads": 1, "count": "batch", "lr": 7,
        "checkpoint-examples": 6 * BATCH, "out": out, "engine": "torchrec",
    }  # fmt: skip
    given |= {name.replace("_", "-"): value for name, value in changes.items()}
    flags = [part for name, value in given.items() for part in (f"--{name}", str(value))]
    return ["stream", "train", *flags]


def record_of(folder: Path) -> dict[str, Any]:
    (run,) = json.loads((folder / "results.json").read_text(), parse_constant=pytest.fail)["runs"]
    return run


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def same_end(folder: Path, expected: Path) -> None:
    """The same bits of the model in the same files, and the same results."""
    assert files_of(folder) == files_of(expected)
    for path in expected.rglob("*.safetensors"):
        found = folder / path.relative_to(expected)
        (ours, _), (theirs, _) = checkpoint.load(found), checkpoint.load(path)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], value) for name, value in theirs.items())
    same_record(record_of(folder), record_of(expected), 0)


@pytest.fixture(scope="module")
def whole(days: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on two ranks that nobody disturbs."""
    folder = tmp_path_factory.mktemp("whole") / "m"
    ends = fork_ranks(*[options(days, folder)] * 2)
    assert [code for code, _, _ in ends] == [0, 0], ends
    assert not any("Warning" in messages for _, _, messages in ends)
    assert sum(out.count(f"model: {folder}") for _, out, _ in ends) == 1
    return folder


def probabilities(path: Path) -> np.ndarray:
    with path.open() as file:
        return np.array([float(row["probability"]) for row in csv.DictReader(file)])


def test_the_model_of_ranks_predicts_what_that_of_one_process_predicts(
    days: Path, whole: Path, command: Any, tmp_path: Path
) -> None:
    last = days / f"day-{DAYS - 1}.csv"
    command(*options(days, tmp_path / "one", engine="freqsgd"))
    ours, theirs = record_of(whole), record_of(tmp_path / "one")
    same_record(
        ours | {"options": {**ours["options"], "pass": None}},
        theirs | {"options": {**theirs["options"], "pass": None}},
        1e-5,
    )
    assert [ours[key] for key in ("engine", "ranks", "sharding")] == ["torchrec", 2, "row-wise"]
    assert not theirs.keys() & {"engine", "ranks", "sharding"}
    assert ours.keys() - DIFFERENT == theirs.keys() - DIFFERENT
    refused = command("predict", whole, last, code=2)
    assert f"freqsgd convert {whole} --out DIR" in refused
    assert refused.count("\n") == 1
    assert command("convert", whole, "--out", "joined") == "joined: a model\n"
    for name in ("one", "joined"):
        command("predict", name, last, "--out", f"{name}.csv")
    one, joined = (probabilities(tmp_path / f"{name}.csv") for name in ("one", "joined"))
    np.testing.assert_allclose(joined, one, rtol=0, atol=1e-5)
    refused = command("convert", "one", "--out", "other", code=2)
    assert "no counts to go on with" in refused
    assert refused.count("\n") == 1


def test_ranks_start_again_from_the_last_checkpoint_when_one_was_killed(
    days: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it wrote the next one."""
    monkeypatch.setenv("DISTURB", "0.0.save.18")
    run = run_ranks(*DISTURBED, *options(days, tmp_path / "m"), restarts=1)
    assert run.returncode == 0, run.stderr
    assert "attempt 0 of rank 0 begins with step 0\n" in run.stdout
    assert "attempt 1 of rank 0 begins with step 12\n" in run.stdout
    same_end(tmp_path / "m", whole)


def test_killed_without_restarts_and_interrupted_it_goes_on_when_resumed(
    days: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "m"
    monkeypatch.setenv("DISTURB", "0.1.learn.14")
    run = run_ranks(*DISTURBED, *options(days, out))
    assert run.returncode == 1
    assert "Signal 9 (SIGKILL)" in run.stderr
    assert checkpoint.describe(out / CHECKPOINT)["steps"] == 12
    monkeypatch.setenv("DISTURB", "0.1.wait.20")
    process = start_ranks(*DISTURBED, *options(days, out), "--resume")
    assert process.stdout is not None
    begun = set()
    while (line := process.stdout.readline()) != "waiting\n":
        assert line, "it ended"
        begun.add(line)
    process.send_signal(signal.SIGINT)
    run = finish_ranks(process)
    assert begun == {f"attempt 0 of rank {rank} begins with step 12\n" for rank in (0, 1)}
    assert run.returncode != 0
    assert run.stderr.count("interrupted; the same command with --resume goes on from here") == 1
    assert checkpoint.describe(out / CHECKPOINT)["steps"] == 21
    run = run_ranks("-m", "freqsgd", *options(days, out), "--resume")
    assert run.returncode == 0, run.stderr
    assert "Warning" not in run.stderr
    assert run.stdout.count(f"model: {out}") == 1
    same_end(out, whole)


def test_a_rate_at_which_nothing_is_learned_ends_all_ranks(days: Path, tmp_path: Path) -> None:
    ends = fork_ranks(*[options(days, tmp_path / "m", lr=1e25)] * 2)
    assert [code for code, _, _ in ends] == [2, 2]
    said = "in step 1 at lr 1e+25: try a smaller learning rate\n"
    assert ends[0][2].endswith("freqsgd: error: the loss is not a finite number on rank 0 " + said)
    assert record_of(tmp_path / "m")["stopped"] == "diverged"
    report = {"report.html", "report-state.png"}
    assert files_of(tmp_path / "m") == {CHECKPOINT, "results.json", *report}


def test_ranks_with_different_options_are_refused(days: Path, tmp_path: Path) -> None:
    commands = [options(days, tmp_path / "m", batch_size=size) for size in (50, 60)]
    for rank, (code, _, said) in enumerate(fork_ranks(*commands)):
        assert code == 2
        where = " on rank 1" * rank
        assert said == (
            f"freqsgd: error{where}: --batch-size is 50 on rank 0 and 60 on rank 1: start all "
            "ranks with the same options\n"
        )
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_lr": 3}, "kernel has no --max-lr: leave it out and take a smaller lr"),
        ({"weight_decay": 1e-5}, "no --weight-decay of rows"),
        ({"linear_lr_scale": 0.5}, "no --linear-lr-scale: leave it at 1"),
        ({"count": "occurrence", "lr": 1},
         "add --count batch; coming from --lr 1, start from --lr 7.07, which is 1 * sqrt(50)"),
        ({"count": "occurrence", "halflife": 100, "lr": 1}, "add --count batch"),
        ({"halflife": 100}, "halflife is in samples, which count 'batch' does not count"),
        ({"count": "occurrence", "optimizer": "adagrad"},
         "no optimizer 'adagrad': take cfsgd, or train in one process"),
        ({"optimizer": "adagrad"}, "--count is for cfsgd, not for adagrad"),
        ({"engine": "spark"}, "unknown engine 'spark'; known: freqsgd, torchrec"),
        ({"engine": "freqsgd", "sharding": "row-wise"}, "--sharding needs --engine torchrec"),
    ],
)  # fmt: skip
def test_what_ranks_cannot_do_is_refused_with_what_to_do(
    changes: dict[str, Any], said: str, days: Path, command: Any, tmp_path: Path
) -> None:
    asked = options(days, tmp_path / "m", **changes)
    if changes.get("optimizer") == "adagrad" and "count" in changes:
        asked = [part for part in asked if part not in ("--count", "occurrence")]
    refused = command(*asked, code=2)
    assert said in refused
    assert refused.count("\n") == 1
    assert not (tmp_path / "m").exists()


def test_torchrun_without_the_engine_is_refused(
    days: Path, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    refused = command(*options(days, tmp_path / "m", engine="freqsgd"), code=2)
    assert "each would train the whole model: add --engine torchrec, or start without" in refused
    assert refused.count("\n") == 1


def test_without_torchrec_it_says_what_to_install(
    days: Path, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "_version", lambda name: None)
    refused = command(*options(days, tmp_path / "m"), code=2)
    assert "TorchRec needs torch 2.13.0, fbgemm-gpu-cpu 1.8.0, torchrec 1.8.0; found no" in refused
    assert libraries.INSTALL[-1] in refused
    assert refused.count("\n") == 1
