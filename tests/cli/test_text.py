"""Word vectors as a user trains them: exit codes, one-line errors, files."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from itertools import takewhile

import pytest

from freqsgd.cli.results import table
from freqsgd.documents.results import Results, Run
from freqsgd.words.folder import load_words
from freqsgd.words.zipf import zipf_text
from tests.lossless import check_lossless

QUICK = ["--data", "text.txt", "--dim", 4, "--window", 2, "--min-count", 2, "--threads", 1]
SOFTMAX = ["--loss", "softmax", *QUICK, "--epochs", 2]
NEGATIVE = ["--model", "cbow", "--loss", "negative", *QUICK, "--epochs", 2]


@pytest.fixture(autouse=True)
def _a_text(monkeypatch, tmp_path, tmp_path_factory):
    """A text in the current folder; nothing else is known."""
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("FREQSGD_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("\n".join(zipf_text(4000, 100)))


@pytest.fixture
def freqsgd(command):
    return command


def results(folder):
    return json.loads((folder / "results.json").read_text())


def without_timings(value):
    if isinstance(value, dict):
        slow = ("seconds", "words_per_second", "created", "command")
        return {k: without_timings(v) for k, v in value.items() if k not in slow}
    return [without_timings(v) for v in value] if isinstance(value, list) else value


# ---- what it writes ------------------------------------------------------------------------------


def test_compare_prints_a_table_and_writes_results_report_and_models(
    freqsgd, tmp_path, monkeypatch
):
    monkeypatch.setattr("freqsgd.cli.training._compile", lambda **_: pytest.fail("not needed"))
    printed = freqsgd("words", "compare", *SOFTMAX, "--out", "out")
    for word in ("train loss", "val loss", "tail loss", "WordSim", "words/s", "report.html"):
        assert word in printed
    told = results(tmp_path / "out")
    assert [run["optimizer"] for run in told["runs"]] == ["sgd", "cfsgd", "cfadam", "adam"]
    assert [run["lr"] for run in told["runs"]] == [1.0, 1.0, 0.025, 0.025]
    check_lossless(told, Results)
    assert "<html" in (tmp_path / "out" / "report.html").read_text()
    for name in ("sgd", "cfsgd", "cfadam", "adam"):
        load_words(tmp_path / "out" / "models" / name)


def test_results_have_the_keys_that_are_documented(freqsgd, tmp_path):
    freqsgd("words", "train", *NEGATIVE, "--out", "out")
    told = results(tmp_path / "out")
    assert told["schema"] == 1
    assert told["command"].startswith("freqsgd words train --model cbow")
    assert told["dataset"]["kind"] == "text"
    assert set(told["splits"]) == {"train", "validation", "test"}
    assert told["model"] == {
        "name": "cbow", "loss": "negative", "dim": 4, "negatives": 5, "window": 2, "hidden": []
    }  # fmt: skip
    (run,) = told["runs"]
    assert set(run) == {
        *("optimizer", "lr", "max_lr", "weight_decay", "weight_decay_rule", "seed", "batch_size"),
        *("options", "state_bytes", "state_rule", "parameter_bytes", "epochs_planned", "stopped"),
        *("seconds", "best_epoch", "best_val_loss", "test_loss", "test_loss_by_frequency"),
        *("similarity", "words_per_second", "epochs"),
    }
    assert set(run["epochs"][0]) == {
        "epoch", "train_loss", "val_loss", "seconds", "words_per_second", "lr"
    }  # fmt: skip


def test_by_default_negative_sampling_compares_three(freqsgd, tmp_path):
    freqsgd("words", "compare", *NEGATIVE, "--out", "out")
    names = [run["optimizer"] for run in results(tmp_path / "out")["runs"]]
    assert names == ["sgd", "cfsgd", "cfadam"]


@pytest.mark.parametrize(
    ("given", "limit"), [([], 1.0), (["--max-norm", 0.5], 0.5), (["--max-norm", 0], None)]
)
def test_the_papers_preset_limits_the_vectors_unless_told_otherwise(
    given, limit, freqsgd, tmp_path
):
    freqsgd("words", "train", *SOFTMAX, *given, "--out", "out")
    (run,) = results(tmp_path / "out")["runs"]
    assert run["options"]["settings"]["max_norm"] == limit


def test_options_reach_the_text_the_rule_and_the_settings(freqsgd, tmp_path):
    (tmp_path / "other.txt").write_text("\n".join(zipf_text(600, 100, seed=1)))
    freqsgd(
        *("words", "train", *SOFTMAX, "--optimizer", "fasgd", "--lr", 0.3, "--max-lr", 9),
        *("--windows", "all", "--subsample", 0.05, "--batch-size", 20, "--lr-decay", "constant"),
        *("--patience", 1, "--seed", 3, "--validation-data", "other.txt", "--test-data"),
        *("other.txt", "--max-vocab", 30, "--unknown", "token", "--out", "out"),
    )
    told = results(tmp_path / "out")
    (run,) = told["runs"]
    assert (run["optimizer"], run["lr"], run["max_lr"]) == ("fasgd", 0.3, 9)
    assert told["splits"]["validation"] == told["splits"]["test"] > 0
    assert told["dataset"]["tokens"] == 31
    expected = {
        "windows": "all", "subsample": 0.05, "batch_size": 20, "lr_decay": "constant",
        "patience": 1, "seed": 3, "epochs": 2, "dim": 4, "window": 2,
    }  # fmt: skip
    assert expected.items() <= run["options"]["settings"].items()


# ---- interrupted ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "how", "code"),
    [(SOFTMAX, signal.SIGINT, 130), (NEGATIVE, signal.SIGKILL, -signal.SIGKILL)],
)
def test_an_interrupted_command_goes_on_to_the_same_results(options, how, code, freqsgd, tmp_path):
    longer = ["words", "compare", *options, "--optimizers", "sgd,cfsgd,cfadam"]
    longer += ["--epochs", 12, "--batch-size", 9]
    command = [sys.executable, "-m", "freqsgd", *map(str, longer), "--checkpoint-steps", "5"]
    child = subprocess.Popen([*command, "--out", "cut"], stderr=subprocess.PIPE, text=True)
    lines = list(takewhile(lambda line: "cfsgd epoch  2" not in line, child.stderr))
    child.send_signal(how)
    _, rest = child.communicate()
    assert child.returncode == code
    told = r" +\w+ epoch +\d+  train loss [\d.]+  val loss [\d.]+ +[\d,]+ words/s +[\d.]+ s\n"
    read = [line for line in lines if not line.startswith("reading words")]  # on slow machines
    assert [line for line in read if not re.fullmatch(told, line)] == []
    assert "Traceback" not in rest
    if how == signal.SIGINT:
        assert "the same command with --resume goes on from here" in rest
    assert len(results(tmp_path / "cut")["runs"]) == 1
    freqsgd(*longer, "--out", "cut", "--resume")
    freqsgd(*longer, "--out", "whole")
    cut, whole = (results(tmp_path / name)["runs"] for name in ("cut", "whole"))
    for run in (*cut, *whole):
        del run["options"]["settings"]["checkpoint_steps"]
    assert without_timings(cut) == without_timings(whole)


def test_resuming_with_other_options_or_another_text_is_refused(freqsgd, tmp_path):
    freqsgd("words", "train", *SOFTMAX, "--out", "out")
    assert "holds a model.safetensors already" in freqsgd(
        "words", "train", *SOFTMAX, "--out", "out", code=2
    )
    again = ["words", "train", *SOFTMAX, "--out", "out", "--resume"]
    before = results(tmp_path / "out")["command"]
    freqsgd(*again)
    assert results(tmp_path / "out")["command"] == before
    assert "--window 2, now --window is 3" in freqsgd(*again, "--window", 3, code=2)
    (tmp_path / "text.txt").write_text("\n".join(zipf_text(4000, 100, seed=7)))
    assert "the data has changed" in freqsgd(*again, code=2)


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["train", "compare"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "glove"], "unknown model 'glove'; known: cbow, skipgram"),
        (["--model", "fm"], "unknown model 'fm'; known: cbow, skipgram"),
        ([*SOFTMAX, "--loss", "hinge"], "unknown loss 'hinge'; known: softmax, negative"),
        ([*SOFTMAX, "--negatives", 3], "--negatives does not go with --loss softmax"),
        ([*NEGATIVE, "--max-norm", 1], "--max-norm does not go with --loss negative"),
        ([*NEGATIVE, "--weight-decay", 0.1], "--weight-decay does not go with the loss negative"),
        ([*NEGATIVE, "--weight-decay-power", 0.5], "power does not go with --loss negative"),
        (["--model", "cbow", "--data", ""], "--data is empty: name a file or folder"),
        ([*SOFTMAX, "--test-data", ""], "--test-data is empty: name a file or folder"),
        ([*NEGATIVE, "--lr", "auto"], "--lr auto is for recommenders"),
        ([*SOFTMAX, "--lr", "fast"], "--lr takes a number or auto, not 'fast'"),
        ([*SOFTMAX, "--dim", 0], "dim must be at least 1"),
        ([*SOFTMAX, "--windows", "half"], "windows must be full or all"),
        ([*SOFTMAX, "--lr-decay", "cosine"], "--lr-decay must be constant, linear or epochs"),
        ([*SOFTMAX, "--windowz", 3], "No such option: --windowz"),
        ([*SOFTMAX, "--data", "none.txt"], "none.txt"),
        ([*SOFTMAX, "--window", 90], "a smaller window"),
    ],
)
def test_bad_input_is_one_line(verb, arguments, words, freqsgd):
    errors = freqsgd("words", verb, *arguments, code=2)
    assert words in errors
    assert errors.count("\n") == 1


def test_a_cap_on_rates_is_refused_where_no_optimizer_has_one(freqsgd):
    capped = [*SOFTMAX, "--epochs", 1, "--max-lr", 3]
    said = "--max-lr is for fasgd and cfsgd, not for sgd"
    assert said in freqsgd("words", "train", *capped, "--optimizer", "sgd", code=2)
    assert f"{said}, adam" in freqsgd(
        "words", "compare", *capped, "--optimizers", "sgd,adam", code=2
    )
    freqsgd("words", "compare", *capped, "--optimizers", "sgd,cfsgd")


def test_a_file_that_may_be_text_is_told_so(freqsgd, tmp_path):
    assert "if the file is text, not a table, say --text" in freqsgd("data", "info", "text.txt")
    (tmp_path / "table.txt").write_text("user\titem\na\tb\n")
    assert "--text" not in freqsgd("data", "info", "table.txt")


def test_a_folder_of_folders_is_told_so(freqsgd, tmp_path):
    (tmp_path / "all" / "some").mkdir(parents=True)
    said = freqsgd("words", "train", *NEGATIVE, "--data", "all", code=2)
    assert "its subfolders are not read" in said


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_optimizers_that_negative_sampling_has_not_are_refused(optimizer, freqsgd):
    words = f"{optimizer} keeps numbers for every weight"
    assert words in freqsgd("words", "train", *NEGATIVE, "--optimizer", optimizer, code=2)
    assert words in freqsgd(
        "words", "compare", *NEGATIVE, "--optimizers", f"sgd,{optimizer}", code=2
    )


@pytest.mark.parametrize("options", [SOFTMAX, NEGATIVE])
def test_a_run_that_diverges_fails_and_leaves_no_model(options, freqsgd, tmp_path):
    name = "sgd" if options is SOFTMAX else "rowwise-adagrad"
    errors = freqsgd(
        "words", "train", *options, "--optimizer", name, "--lr", 1e30, "--out", "out", code=2
    )
    assert "the loss is not a finite number in step" in errors
    assert not (tmp_path / "out" / "model.safetensors").exists()
    assert results(tmp_path / "out")["runs"][0]["stopped"] == "diverged"
    errors = freqsgd("words", "compare", *options, "--optimizers", name, "--lr", 1e30, code=2)
    assert "every optimizer diverged" in errors


def test_a_recommender_is_told_of_the_commands_for_text(freqsgd, tmp_path):
    said = "text.txt: name the column that holds the label (--label); if this is text, train word"
    assert said in freqsgd("train", "--data", "text.txt", code=2)
    errors = freqsgd("tune", "--model", "cbow", "--out", "tuned", code=2)
    assert "no search of settings for cbow" in errors
    assert "freqsgd words compare --model cbow --lr" in errors
    freqsgd("words", "train", *SOFTMAX, "--out", "words")
    assert "holds word vectors" in freqsgd("predict", "words", "text.txt", code=2)


def test_a_table_too_wide_for_the_terminal_has_a_column_per_optimizer():
    runs = [Run(optimizer=name) for name in ("sgd", "cfsgd", "adam")]
    columns = {"optimizer": lambda run: run.optimizer, "test loss": lambda run: "2.3461"}
    heads = [[each.header for each in table(columns, runs, width).columns] for width in (80, 15)]
    assert heads == [["optimizer", "test loss"], ["optimizer", "sgd", "cfsgd", "adam"]]
