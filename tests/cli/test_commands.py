"""The commands as a user runs them: exit codes, one-line errors, files."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import torch

import freqsgd
from freqsgd.cli.app import run as app_run
from freqsgd.cli.results import print_results
from freqsgd.cli.training import show_trained
from freqsgd.documents.results import Results
from freqsgd.errors import DataError
from freqsgd.recommender.folder import load_encoder, load_model
from tests.cli.conftest import run_command
from tests.lossless import check_lossless
from tests.report.made_up import make_results, make_run

QUICK = ["--dim", "4", "--epochs", "2", "--threads", "1"]
GENERATED = ["--samples", "3000", *QUICK]


def run(*arguments, cwd, code=0):
    """Run a command in this process; what it printed."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), redirect_stdout(out), redirect_stderr(errors):
        found = run_command([str(argument) for argument in arguments])
    assert found == code, errors.getvalue()
    return SimpleNamespace(stdout=out.getvalue(), stderr=errors.getvalue())


def error(*arguments, cwd):
    """The message that bad input ends with."""
    done = run(*arguments, cwd=cwd, code=2)
    assert "freqsgd: error: " in done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("FREQSGD_DATA", raising=False)


@pytest.fixture
def clicks(tmp_path):
    """Own data: the shop decides the label, mostly."""
    rng = np.random.default_rng(0)
    rows = 2000
    user, shop = rng.integers(0, 50, rows), rng.integers(0, 20, rows)
    label = ((shop % 2 == 0) ^ (rng.random(rows) < 0.1)).astype(int)
    frame = pl.DataFrame(
        {
            "user": [f"u{i}" for i in user],
            "shop": shop,
            "price": rng.integers(0, 500, rows),
            "tags": [[f"t{i % 3}"] * int(i % 3) for i in user],
            "click": label,
        }
    )
    frame.write_parquet(tmp_path / "clicks.parquet")
    frame.drop("tags").write_csv(tmp_path / "clicks.csv")
    return tmp_path


OWN = ["--label", "click", "--features", "user,shop", "--numeric", "price"]


def test_compare_prints_a_table_and_writes_results_report_and_models(tmp_path):
    done = run("compare", *GENERATED, "--out", "out", cwd=tmp_path)
    for word in ("best val AUC", "state MB", "sgd", "cfsgd", "adagrad", "adam", "report.html"):
        assert word in done.stdout
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["schema"] == 1
    names = [run["optimizer"] for run in results["runs"]]
    assert names == ["sgd", "cfsgd", "cfadam", "adagrad", "adam"]
    assert results["best_possible"]["val_auc"] > 0.7
    check_lossless(results, Results)
    assert results["command"].startswith("freqsgd compare --samples 3000")
    assert "<html" in (tmp_path / "out" / "report.html").read_text()
    for name in ("sgd", "cfsgd", "adagrad", "adam"):
        load_model(tmp_path / "out" / "models" / name)


def test_compare_takes_rates_and_options(tmp_path):
    run(
        *("compare", *GENERATED, "--optimizers", "cfsgd,fasgd", "--lr", "cfsgd=0.3"),
        *("--weight-decay", 1e-3, "--weight-decay-power", 0.5, "--max-lr", 60),
        *("--linear-lr-scale", 0.3, "--linear-decay-scale", 3, "--lr-decay", "linear"),
        *("--init-scale", 0.5, "--batch-size", 200, "--seed", 3, "--out", "out"),
        cwd=tmp_path,
    )
    cfsgd, fasgd = json.loads((tmp_path / "out" / "results.json").read_text())["runs"]
    assert (cfsgd["lr"], fasgd["lr"]) == (0.3, 1.0)
    rule, settings = cfsgd["options"]["rule"], cfsgd["options"]["settings"]
    assert rule["max_lr"] == 60
    assert rule["linear_lr_scale"] == 0.3
    assert rule["linear_decay_scale"] == 3
    assert cfsgd["weight_decay_rule"] == "by frequency, power 0.5"
    assert (settings["init_scale"], settings["seed"], settings["batch_size"]) == (0.5, 3, 200)


def test_a_comparison_resumes_to_the_same_results(tmp_path):
    run("compare", *GENERATED, "--optimizers", "sgd", "--out", "out", cwd=tmp_path)
    before = json.loads((tmp_path / "out" / "results.json").read_text())["runs"]
    refused = error("compare", *GENERATED, "--out", "out", cwd=tmp_path)
    assert "use --resume, or another --out" in refused
    run("compare", *GENERATED, "--resume", "--out", "out", cwd=tmp_path)
    after = json.loads((tmp_path / "out" / "results.json").read_text())["runs"]
    assert len(after) == 5
    assert after[:1] == before


def test_a_run_that_diverges_after_a_good_epoch_says_where_its_model_is(capsys):
    late = make_run("cfsgd", stopped="diverged", error="the loss is 9: try a smaller learning rate")
    show_trained(make_results(late), Path("m"))
    printed = capsys.readouterr().out
    assert "cfsgd: the loss is 9" in printed
    assert "model: m" in printed
    with pytest.raises(DataError, match="the loss is 9"):
        show_trained(make_results({**late, "best_epoch": None}), Path("m"))


def test_options_that_an_optimizer_does_not_take_are_refused(tmp_path):
    for command in ("train", "compare"):
        named = "--optimizer" if command == "train" else "--optimizers"
        told = error(command, *GENERATED, named, "cfadam", "--max-lr", 3, "--out", "m",
                     cwd=tmp_path)  # fmt: skip
        assert "--max-lr is for fasgd and cfsgd, not for cfadam" in told


@pytest.mark.parametrize("model", ["fm", "deepfm"])
def test_train_and_predict_on_own_data(model, clicks):
    run("train", "--data", "clicks.csv", *OWN, *QUICK, "--model", model, "--lr", 0.5,
        "--out", "m", cwd=clicks)  # fmt: skip
    assert {"model.safetensors", "encoder.json", "tokens.parquet", "results.json"} <= {
        path.name for path in (clicks / "m").iterdir()
    }
    (clicks / "new.csv").write_text("shop,price,user\n2,3,u1\n3,,u1\n99,5,nobody\n")
    run("predict", "m", "new.csv", "--out", "p.csv", cwd=clicks)
    printed = run("predict", "m", "new.csv", cwd=clicks).stdout
    assert printed == (clicks / "p.csv").read_text()
    with (clicks / "p.csv").open() as file:
        told = [float(row["probability"]) for row in csv.DictReader(file)]
    loaded, description = load_model(clicks / "m")
    encoder = load_encoder(clicks / "m", loaded, description)
    ids = np.concatenate(list(encoder.encode_file(str(clicks / "new.csv"))))
    expected = loaded.eval()(torch.from_numpy(ids)).sigmoid().tolist()
    assert told == pytest.approx(expected, abs=1e-5)
    assert ids[2, :2].tolist() == [0, 0]  # never seen: rare
    assert told[0] > told[1]


def test_lists_are_bags(clicks):
    run("train", "--data", "clicks.parquet", "--label", "click", "--features", "shop,tags", *QUICK,
        "--out", "m", cwd=clicks)  # fmt: skip
    model, _ = load_model(clicks / "m")
    assert model.widths == [1, 2]
    printed = run("predict", "m", "clicks.parquet", cwd=clicks).stdout
    assert len(printed.splitlines()) == 2001


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--optimizers", "sgd,adamw"], ["unknown optimizer 'adamw'", "cfsgd"]),
        (["--optimizers", ","], ["names none of"]),
        (["--lr", "cfsgd"], ["--lr takes a number or auto, not 'cfsgd'"]),
        (["--lr", "cfsgd=fast"], ["--lr takes a number or auto, not 'fast'"]),
        (["--lr", "cfsgd="], ["pairs such as sgd=10,cfsgd=auto", "'cfsgd=' is none"]),
        (["--lr", "sgd=1,sgd=2"], ["--lr names sgd twice"]),
        (["--lr", "sgd=0"], ["--lr 0 would learn nothing"]),
        (["--lr", "fasgd=1"], ["--lr names fasgd, which --optimizers does not"]),
        (["--lr", "sgd=-1"], ["error: --lr must be"]),
        (["--model", "gbm"], ["unknown model 'gbm'"]),
        (["--epochs", "0"], ["error: --epochs must be at least 1"]),
        (["--batch-size", "0"], ["error: --batch-size must be at least 1"]),
        (["--dataset", "synthetic", "--label", "x"], ["error: --label does not go with"]),
        (["--hidden", "16,a"], ["--hidden", "16,a"]),
        (["--dataset", "movielens"], ["movielens-1m"]),
        (["--data", "no.csv", *OWN], ["no.csv"]),
        (["--threads", "0"], ["Invalid value for '--threads'"]),
        (["--split-seed", "-1"], ["error: --split-seed must not be negative"]),
        (["--optimizers", "sgd,sgd"], ["named once"]),
    ],
)
def test_bad_options_end_with_one_line(arguments, words, tmp_path):
    line = error("compare", *arguments, cwd=tmp_path)
    for word in words:
        assert word in line


def test_an_unknown_option_is_an_error(tmp_path):
    done = run("compare", "--learning-rate", "1", cwd=tmp_path, code=2)
    assert "No such option" in done.stderr


@pytest.mark.parametrize("command", ["compare", "train", "predict"])
def test_help_has_an_example(command, tmp_path):
    assert f"Example: freqsgd {command}" in run(command, "--help", cwd=tmp_path).stdout


def test_models_that_cannot_be_used_are_refused(clicks):
    run("train", "--data", "clicks.csv", *OWN, *QUICK, "--out", "m", cwd=clicks)
    assert "holds a model.safetensors already" in error(
        "train", "--data", "clicks.csv", *OWN, *QUICK, "--out", "m", cwd=clicks
    )
    path = clicks / "m" / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    assert "damaged" in error("predict", "m", "clicks.csv", cwd=clicks)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "checksum" in error("predict", "m", "clicks.csv", cwd=clicks)
    path.write_bytes(whole.replace(rb"\"format\": 2", rb"\"format\": 9"))
    assert "format 9" in error("predict", "m", "clicks.csv", cwd=clicks)
    path.write_bytes(whole)
    (clicks / "m" / "encoder.json").unlink()
    lost = "m/encoder.json: there is no such file; train again"
    assert lost in error("predict", "m", "clicks.csv", cwd=clicks)
    assert "there is no" in error("predict", "nowhere", "clicks.csv", cwd=clicks)


def test_a_model_of_generated_data_says_why_it_cannot_predict(clicks):
    run("train", *GENERATED, "--out", "m", cwd=clicks)
    assert "generated data" in error("predict", "m", "clicks.csv", cwd=clicks)


def test_predictions_go_nowhere_when_the_rows_are_bad(clicks):
    run("train", "--data", "clicks.csv", *OWN, *QUICK, "--out", "m", cwd=clicks)
    (clicks / "bad.csv").write_text("user,shop,price\nu1,2,3\nu1,2\n")
    assert "bad.csv" in error("predict", "m", "bad.csv", "--out", "p.csv", cwd=clicks)
    (clicks / "other.csv").write_text("user,shop\nu1,2\n")
    assert "price" in error("predict", "m", "other.csv", "--out", "p.csv", cwd=clicks)
    assert not (clicks / "p.csv").exists()
    assert run("predict", "m", "bad.csv", cwd=clicks, code=2).stdout == ""
    (clicks / "file").write_text("")
    refused = error("predict", "m", "clicks.csv", "--out", "file/p.csv", cwd=clicks)
    assert "cannot write file/p.csv" in refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["neighbors", "m"], "Missing argument '[FIELD] TOKEN'; see freqsgd neighbors --help"),
        (["tune"], "Missing option '--out'; see freqsgd tune --help"),
        (["trian"], "No such command 'trian'; did you mean freqsgd train? see freqsgd --help"),
        (["words", "trian"], "No such command 'trian'; did you mean freqsgd words train? see"),
        (["generate"], "No such command 'generate'; did you mean freqsgd stream generate?"),
        (["xyz"], "No such command 'xyz'; see freqsgd --help"),
        (["train", "--epochs", "x"], "Invalid value for '--epochs'"),
        (["train", "--lrr", "1"], "No such option: --lrr"),
        (["data", "get"], "Missing argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_understood_is_one_line(arguments, words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["freqsgd", *arguments])
    with pytest.raises(SystemExit) as end:
        app_run()
    message = capsys.readouterr().err
    assert end.value.code == 2
    assert message.startswith(f"freqsgd: error: {words}")
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code"), [([], 2), (["data"], 2), (["--help"], 0), (["--version"], 0)]
)
def test_help_and_version(arguments, code, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["freqsgd", *arguments])
    with pytest.raises(SystemExit) as end:
        app_run()
    printed = "".join(capsys.readouterr())
    assert end.value.code == code
    assert printed == f"{freqsgd.__version__}\n" if "--version" in arguments else "Usage" in printed


@pytest.mark.parametrize("model", ["fm", "deepfm"])
def test_a_run_that_diverges_with_finite_losses_fails_and_leaves_no_model(
    model, in_process, tmp_path
):
    options = [*GENERATED, "--model", model, "--optimizer", "adam", "--lr", "100", "--out", "m"]
    said = in_process("train", *options, code=2)
    (line,) = [line for line in said.err.splitlines() if line.startswith("freqsgd: error")]
    assert "more than 10 times the 0." in line
    assert "of a constant prediction" in line
    assert "try a smaller learning rate" in line
    assert not (tmp_path / "m" / "model.safetensors").exists()


def test_the_table_marks_a_run_that_patience_ended_while_it_learned(capsys):
    runs = [make_run("sgd", still_learning=True), make_run("cfsgd", still_learning=False)]
    print_results(make_results(*runs))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "sgd" in line] == ["sgd*", "cfsgd", "sgd*:"]
    assert lines[-1].endswith("with a larger --patience it may become better")


def test_one_line_names_all_runs_that_patience_ended_while_they_learned(capsys):
    names = ("sgd", "cfsgd", "adam")
    print_results(make_results(*(make_run(name, still_learning=True) for name in names)))
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "patience" in line]
    assert line == (
        "sgd*, cfsgd* and adam*: ended by patience while their training and validation losses "
        "still fell; with a larger --patience they may become better"
    )


@pytest.mark.parametrize(("best", "end"), [(0.0625, "smallest"), (16.0, "largest"), (1.0, None)])
def test_tune_tells_of_a_best_rate_at_the_end_of_those_tried(best, end, capsys):
    sweep = [{"lr": 2.0**power, "val_auc": 0.8} for power in range(-4, 5)]
    told = {"number": 0, "value": 0.8, "params": {"lr": best}}
    study = {"optimizer": "cfsgd", "best": told, "lr_sweep": sweep}
    print_results(make_results(make_run("cfsgd"), tuning={"studies": [study]}))
    lines = [line for line in capsys.readouterr().out.splitlines() if "the best rate" in line]
    assert lines == [
        f"cfsgd: the best rate is the {end}, {best:.3g}, of those tried; a better one may lie "
        "beyond it"
        for _ in filter(None, [end])
    ]


def test_rates_of_the_table_have_three_digits(capsys):
    rates = {"sgd": 18.344, "cfsgd": 1234.0, "adagrad": 0.0285199, "adam": 0.001}
    print_results(make_results(*(make_run(name, lr=lr) for name, lr in rates.items())))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = {line[0]: line[1] for line in lines if line and line[0] in rates}
    assert shown == {"sgd": "18.3", "cfsgd": "1230", "adagrad": "0.0285", "adam": "0.001"}


def test_a_diverging_run_is_reported_and_others_go_on(tmp_path):
    done = run("compare", *GENERATED, "--optimizers", "sgd,cfsgd", "--lr", "sgd=1e8",
               "--out", "out", cwd=tmp_path)  # fmt: skip
    assert "of a constant prediction" in done.stdout
    runs = json.loads((tmp_path / "out" / "results.json").read_text())["runs"]
    assert [run["stopped"] == "diverged" for run in runs] == [True, False]
    assert "try a smaller learning rate" in error(
        "train", *GENERATED, "--optimizer", "sgd", "--lr", 1e8, "--out", "m", cwd=tmp_path
    )


@pytest.mark.parametrize("name", ["results.json", "report.html", "encoder.json", "tokens.parquet"])
def test_train_replaces_no_file_of_others(in_process, tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("mine")
    done = in_process("train", *GENERATED, "--lr", "1", "--out", "out", code=2)
    assert f"out holds {name}, and no result of freqsgd" in done.err
    assert (tmp_path / "out" / name).read_text() == "mine"


def test_resuming_where_nothing_is_says_so(in_process):
    said = in_process("train", "--resume", "--samples", 300, "--epochs", 1, "--lr", 1, "--out", "m")
    assert "m holds nothing to resume: this run begins anew" in said.err + said.out


def test_a_folder_of_a_run_that_diverged_says_what_to_do(in_process):
    train = ["train", "--samples", 300, "--epochs", 1, "--out", "m"]
    assert "try a smaller learning rate" in in_process(*train, "--lr", 1e9, code=2).err
    assert "m holds a run that diverged: remove the folder" in in_process(*train, code=2).err


@pytest.mark.parametrize("command", ["train", "compare"])
def test_resuming_into_a_file_is_one_clear_error(in_process, tmp_path, command):
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    train = (command, "--samples", 300, "--epochs", 1, "--lr", 1, "--resume", "--out", "notes.txt")
    assert "notes.txt" in in_process(*train, code=2).err
    assert notes.read_text() == "mine"
