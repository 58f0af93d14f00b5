"""``freqsgd stream`` as a user runs it: days of files in, models, results and predictions out."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
import torch

from freqsgd.documents.results import Results
from freqsgd.files import locked
from freqsgd.recommender.folder import load_encoder, load_model
from tests.lossless import check_lossless

DAYS, ROWS = 4, 600
OWN = ["--label", "click", "--features", "user,shop", "--hash-rows", "user=200,shop=50"]
QUICK = [*OWN, "--dim", "4", "--batch-size", "100", "--threads", "1"]


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """The same days as folders of Parquet files and as CSV files; the shop decides, mostly."""
    folder, rng = tmp_path_factory.mktemp("days"), np.random.default_rng(0)
    (folder / "csv").mkdir()
    for day in range(DAYS):
        user, shop = rng.integers(0, 80, ROWS), rng.integers(0, 20, ROWS)
        label = ((shop % 2 == 0) ^ (rng.random(ROWS) < 0.2)).astype(int)
        frame = pl.DataFrame({"user": [f"u{i}" for i in user], "shop": shop, "click": label})
        frame.write_csv(folder / "csv" / f"day-{day}.csv")
        (folder / "parquet" / f"day-{day}").mkdir(parents=True)
        for part, rows in enumerate((slice(0, 250), slice(250, ROWS))):
            path = folder / "parquet" / f"day-{day}" / f"part-{part}.parquet"
            frame[rows].write_parquet(path)
    return folder


def results_of(folder):
    results = json.loads((folder / "results.json").read_text(), parse_constant=pytest.fail)
    check_lossless(results, Results)
    return results


def timeless(results):
    """Results without what differs from run to run."""
    times = ("seconds", "samples_per_second", "peak_memory_bytes")
    runs = [
        {
            **{key: value for key, value in run.items() if key not in times},
            "windows": [{**window, "seconds": None} for window in run["windows"]],
        }
        for run in results["runs"]
    ]
    return {**results, "runs": runs, "created": None, "command": None}


def losses(probabilities, labels):
    return -np.log(np.where(labels == 1, probabilities, 1 - probabilities))


@pytest.mark.parametrize("model", ["fm", "deepfm"])
def test_predictions_of_a_trained_model_score_what_its_evaluation_says(
    model, days, command, tmp_path
):
    printed = command(
        *("stream", "train", *QUICK, "--data", days / "parquet", "--model", model, "--lr", 1),
        *("--window", 500, "--out", "m"),
    )
    assert "model: m" in printed
    (run,) = results_of(tmp_path / "m")["runs"]
    last = days / "csv" / f"day-{DAYS - 1}.csv"
    command("predict", "m", last, "--out", "p.csv")
    with (tmp_path / "p.csv").open() as file:
        told = np.array([float(row["probability"]) for row in csv.DictReader(file)])
    labels = pl.read_csv(last)["click"].to_numpy()
    assert run["test_rows"] == ROWS
    assert run["test_loss"] == pytest.approx(losses(told, labels).mean(), abs=1e-5)
    assert run["test_calibration"] == pytest.approx(told.sum() / labels.sum(), abs=1e-5)
    entropy = losses(np.full(ROWS, labels.mean()), labels).mean()
    assert run["test_ne"] == pytest.approx(run["test_loss"] / entropy, abs=1e-6)
    loaded, description = load_model(tmp_path / "m")
    encoder = load_encoder(tmp_path / "m", loaded, description)
    ids = np.concatenate(list(encoder.encode_file(str(last))))
    expected = loaded.eval()(torch.from_numpy(ids)).sigmoid().detach().numpy()
    np.testing.assert_allclose(told, expected, atol=1e-5)
    assert [day["examples"] for day in run["days"]] == [ROWS] * (DAYS - 1)
    assert [window["examples"] for window in run["windows"]] == [500, 1000, 1500, 1800]


def test_csv_and_parquet_days_train_the_same_model(days, command, tmp_path):
    for kind in ("csv", "parquet"):
        command("stream", "train", *QUICK, "--data", days / kind, "--lr", 1, "--out", kind)
    one, other = (load_model(tmp_path / kind)[0].tokens.weight for kind in ("csv", "parquet"))
    assert torch.equal(one, other)


def test_a_dictionary_takes_the_place_of_hashing(days, command, tmp_path):
    columns = ["--label", "click", "--features", "user,shop"]
    command("train", "--data", days / "csv" / "day-0.csv", *columns, "--dim", 4, "--epochs", 1,
            "--lr", 1, "--out", "first")  # fmt: skip
    command("stream", "train", "--data", f"{days}/csv/day-*.csv", "--label", "click",
            "--dictionary", "first", "--lr", 1, "--batch-size", 100, "--out", "m")  # fmt: skip
    results = results_of(tmp_path / "m")
    assert results["dataset"]["encoding"] == "dictionary"
    assert results["dataset"]["tokens"] == sum(load_model(tmp_path / "first")[0].sizes)
    assert "probability" in command("predict", "m", days / "csv" / "day-3.csv")


def test_compare_writes_results_report_and_the_best_models(days, command, tmp_path):
    printed = command("stream", "compare", *QUICK, "--data", days / "parquet", "--lr", "sgd=3",
                      "--halflife", 5000, "--out", "out")  # fmt: skip
    results = results_of(tmp_path / "out")
    names = ["cfsgd", "cfadam", "adagrad", "rowwise-adagrad", "sgd"]
    assert [run["optimizer"] for run in results["runs"]] == names
    assert [len(run["search"]) for run in results["runs"]] == [5, 5, 5, 5, 1]
    assert [run["halflife"] for run in results["runs"]] == [5000, None, None, None, None]
    for run in results["runs"]:
        tried = {each["lr"]: each["train_ne"] for each in run["search"] if each["error"] is None}
        assert run["train_ne"] == tried[run["lr"]] == min(tried.values())
        _, description = load_model(tmp_path / "out" / "models" / run["optimizer"])
        assert description["record"]["lr"] == run["lr"]
    assert results["one_pass"] is True
    assert results["splits"] == {"train": ROWS * (DAYS - 1), "test": ROWS}
    assert results["dataset"]["days"] == [f"day-{day}" for day in range(DAYS)]
    assert results["command"].startswith("freqsgd stream compare")
    assert "<html" in (tmp_path / "out" / "report.html").read_text()
    for name in names:
        assert name in printed


def test_there_is_no_cap_where_it_is_infinite(days, command, tmp_path):
    options = [*QUICK, "--data", days / "parquet", "--lr", 1]
    runs = []
    for name, cap in (("capped", []), ("free", ["--max-lr", "inf"])):
        command("stream", "train", *options, *cap, "--out", name)
        runs += results_of(tmp_path / name)["runs"]
    capped, free = runs
    assert capped["max_lr"] > 0
    assert free["max_lr"] is None
    assert free["test_ne"] != capped["test_ne"]


def test_batches_are_counted_at_rates_of_their_own(days, command, tmp_path):
    batches = [*QUICK, "--data", days / "parquet", "--count", "batch", "--dense-lr", 0.25]
    command("stream", "compare", *batches, "--optimizers", "cfsgd,sgd", "--out", "out")
    cfsgd, sgd = results_of(tmp_path / "out")["runs"]
    size = cfsgd["batch_size"]
    for lr, each in zip((0.1, 0.3, 1.0, 3.0, 10.0), cfsgd["search"], strict=True):
        assert each["lr"] == pytest.approx(lr * size**0.5, rel=0.005)
    rule = cfsgd["options"]["rule"]
    assert (rule["count"], rule["dense_lr"], rule["max_lr"]) == ("batch", 0.25, None)
    rule = sgd["options"]["rule"]
    assert (rule["count"], rule["dense_lr"], rule["lr"]) == ("occurrence", None, sgd["lr"])
    command("stream", "train", *batches, "--lr", cfsgd["lr"], "--out", "m")
    assert results_of(tmp_path / "m")["runs"][0]["test_ne"] == cfsgd["test_ne"]


def test_a_comparison_that_is_killed_resumes_to_the_same_results(days, command, tmp_path):
    arguments = ["stream", "compare", *QUICK, "--data", str(days / "csv")]
    arguments += ["--optimizers", "cfsgd,adagrad", "--checkpoint-examples", "300"]
    command(*arguments, "--out", "whole")
    program = [sys.executable, "-m", "freqsgd", *arguments, "--out", str(tmp_path / "out")]
    for lines, resume in ((2, []), (5, ["--resume"])):
        child = subprocess.Popen([*program, *resume], stderr=subprocess.PIPE, text=True)
        while lines:
            lines -= "train NE" in child.stderr.readline()
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stderr.close()
        assert list((tmp_path / "out" / "rates").glob("*.safetensors"))
    command(*arguments, "--out", "out", "--resume")
    assert timeless(results_of(tmp_path / "out")) == timeless(results_of(tmp_path / "whole"))
    for name in ("cfsgd", "adagrad"):
        one, other = (load_model(tmp_path / o / "models" / name)[0] for o in ("out", "whole"))
        assert torch.equal(one.tokens.weight, other.tokens.weight)


def test_a_second_run_on_the_same_folder_is_refused(days, command, tmp_path):
    with locked(tmp_path / "out"):
        for arguments in (["compare"], ["train", "--lr", "1"]):
            refused = command(
                "stream", *arguments, *QUICK, "--data", days / "csv", "--out", "out", code=2
            )
            assert "out is being used by another run" in refused
        assert "being used" in command("compare", "--samples", 1000, "--out", "out", code=2)
    command("stream", "train", *QUICK, "--data", days / "csv", "--lr", 1, "--out", "out")


def test_tables_that_do_not_fit_are_refused_with_the_arithmetic(
    days, command, tmp_path, monkeypatch
):
    monkeypatch.setattr("freqsgd.recommender.memory.available_memory", lambda: 24_000_000_000)
    refused = command("stream", "compare", "--data", days / "csv", "--label", "click",
                      "--features", "user", "--hash-rows", "1e8", "--dim", 32, "--optimizers",
                      "cfsgd,adam", "--out", "out", code=2)  # fmt: skip
    assert "adam does not fit: 100,000,000 rows x 33 weights x 4 bytes = 13.2 GB" in refused
    assert "26.4 GB of optimizer state" in refused
    assert "cfsgd would take" in refused
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "cbow"], "cbow learns word vectors: freqsgd words compare --model cbow"),
        (["--model", "gbm"], "unknown model 'gbm'"),
        (["--optimizers", "fasgd"], "fasgd must know beforehand"),
        (["--optimizers", ""], "--optimizers names none of sgd"),
        (["--lr", "auto"], "compare tries 5 rates"),
        (["--lr", "cfsgd=0"], "--lr 0 would learn nothing"),
        (["--window", "0"], "window must be at least 1"),
        (["--checkpoint-examples", "0"], "--checkpoint-examples must be at least 1"),
        (["--halflife", "0"], "halflife"),
        (["--halflife", "9", "--optimizers", "sgd"], "--halflife is for cfsgd"),
        (["--count", "day"], "count must be 'occurrence' or 'batch', got 'day'"),
        (["--count", "batch", "--halflife", "9"], "halflife is in samples"),
        (["--count", "batch", "--optimizers", "sgd"], "--count is for cfsgd"),
        (["--dense-lr", "1"], "--dense-lr needs count 'batch'"),
        (["--dense-lr", "1", "--optimizers", "sgd"], "--dense-lr is for cfsgd"),
        (["--dataset", "criteo"], "'criteo' is no stream"),
        (["--data", ""], "--data is empty: name a file or folder"),
        (["--data", "nowhere", *OWN], "nowhere"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(arguments, words, command):
    refused = command("stream", "compare", *arguments, code=2)
    assert words in refused
    assert refused.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dictionary", "m", "--features", "user"], "--features does not go with --dictionary"),
        (["--dictionary", "m", "--hash-rows", "9"], "--hash-rows does not go with --dictionary"),
        (["--dictionary", "m"], "--dictionary must name the folder of a trained model: m is none"),
    ],
)
def test_dictionaries_that_cannot_be_used(arguments, words, days, command):
    data = ["--data", days / "csv", "--label", "click"]
    assert words in command("stream", "compare", *data, *arguments, code=2)


def test_a_refused_command_leaves_no_folder_behind(days, command, tmp_path):
    refused = [*QUICK, "--data", days / "csv", "--max-bad-rows", "-1"]
    command("stream", "train", *refused, "--lr", 1, "--out", "m", code=2)
    command("stream", "compare", *refused, "--out", "m", code=2)
    only = tmp_path / "only.csv"
    only.write_text("user,shop,click\n")  # which is found while training
    command("stream", "train", *QUICK, "--data", only, "--lr", 1, "--out", "deep/m", code=2)
    command("stream", "compare", *QUICK, "--data", only, "--out", "deep/m", code=2)
    assert list(tmp_path.iterdir()) == [only]


def test_train_wants_a_rate_and_says_how_to_find_it(command):
    refused = command("stream", "train", code=2)
    assert "freqsgd stream compare --optimizers cfsgd tries 5" in refused


def test_a_rate_at_which_nothing_is_learned_ends_training(days, command):
    refused = command(
        "stream", "train", *QUICK, "--data", days / "csv", "--lr", 1e12, "--out", "m", code=2
    )
    assert "try a smaller learning rate" in refused
