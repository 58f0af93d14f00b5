"""``freqsgd tune`` as a user runs it."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from io import StringIO

import pytest

pytest.importorskip("optuna", reason="needs optuna: pip install 'freqsgd[tune]'")

from rich.console import Console
from typer.testing import CliRunner

from freqsgd.cli.app import app
from freqsgd.cli.progress import Watcher
from freqsgd.documents.results import Results
from freqsgd.errors import DataError
from freqsgd.recommender.folder import load_model
from freqsgd.recommender.trials import Outcome
from freqsgd.recommender.tune import TuneProgress
from tests.cli.test_commands import GENERATED, error, run
from tests.lossless import check_lossless

SMALL = ["tune", *GENERATED, "--optimizers", "cfsgd,rowwise-adagrad", "--trials", "3"]


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("FREQSGD_DATA", raising=False)


def told(out):
    """The results that do not depend on the clock."""
    results = json.loads((out / "results.json").read_text())
    check_lossless(results, Results)
    studies = results["tuning"]["studies"]
    for study in studies:
        for trial in (*study["trials"], study["best"]):
            del trial["seconds"]
    return studies, [(run["lr"], run["best_val_auc"], run["test_auc"]) for run in results["runs"]]


def test_tune_writes_results_report_and_models_and_goes_on_after_ctrl_c(tmp_path):
    done = run(*SMALL, "--out", "whole", cwd=tmp_path)
    lines = [line for line in done.stderr.splitlines() if "trial" in line]
    assert len(lines) == 6
    assert all("val AUC 0." in line or "diverged" in line for line in lines)
    assert " left" in lines[-1]
    assert "Good learning rates" in (tmp_path / "whole" / "report.html").read_text()
    for name in ("cfsgd", "rowwise-adagrad"):
        (folder,) = (tmp_path / "whole" / "models").glob(f"{name}-trial-*-seed-0")
        load_model(folder)

    command = [sys.executable, "-m", "freqsgd", *SMALL, "--out", "cut"]
    child = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # which programs in the background ignore otherwise
    while "trial 2 of 3" not in child.stderr.readline():
        pass
    child.send_signal(signal.SIGINT)
    _, rest = child.communicate()
    assert child.returncode == 130
    assert "the same command with --resume goes on from here" in rest
    assert "Traceback" not in rest
    assert "holds a search already" in error(*SMALL, "--out", "cut", cwd=tmp_path)
    run(*SMALL, "--out", "cut", "--resume", cwd=tmp_path)
    assert told(tmp_path / "cut") == told(tmp_path / "whole")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--optimizers", "lion"], "unknown optimizer 'lion'"),
        (["--optimizers", ""], "name at least one optimizer of sgd, fasgd"),
        (["--optimizers", "sgd,adam,sgd"], "named once, got sgd, adam, sgd"),
        (["--trials", "0"], "trials must be at least 1"),
    ],
)
def test_bad_options_are_refused(arguments, words, tmp_path):
    done = CliRunner().invoke(app, ["tune", "--out", str(tmp_path / "out"), *arguments])
    assert isinstance(done.exception, DataError)
    assert words in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_one_epoch_of_a_trial_is_not_epochs(monkeypatch):
    console = Console(file=StringIO(), width=200)
    monkeypatch.setattr("freqsgd.cli.progress.console", console)
    for curve in ([0.5], [0.5, 0.6]):
        outcome = Outcome({"lr": 1.0}, "diverged", curve, 1.0)
        Watcher().tuning(TuneProgress("sgd", "trial 1 of 2", outcome, None, 1, 2, None))
    one, two = console.file.getvalue().splitlines()
    assert " 1 epoch, diverged " in one
    assert " 2 epochs, diverged " in two
    assert one.index("best") == two.index("best")


@pytest.mark.parametrize("option", ["--lr", "--init-scale", "--lr-decay", "--weight-decay"])
def test_what_is_searched_is_no_option(option, tmp_path):
    done = CliRunner().invoke(app, ["tune", "--out", str(tmp_path / "out"), option, "1"])
    assert done.exit_code == 2
    assert f"No such option: {option}" in done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["tune", "compare"])
def test_results_are_never_without_their_command(command, tmp_path, monkeypatch):
    def killed(*_, **__):
        raise MemoryError

    monkeypatch.setattr("freqsgd.cli.tables.write_report", killed)
    monkeypatch.setattr("freqsgd.cli.training.write_report", killed)
    options = ["--optimizers", "cfsgd", "--out", str(tmp_path)]
    trials = ["--trials", "1"] if command == "tune" else []
    arguments = [command, *GENERATED, *options, *trials]
    monkeypatch.setattr("sys.argv", ["freqsgd", *arguments])
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, MemoryError)
    told = json.loads((tmp_path / "results.json").read_text())["command"]
    assert told == shlex.join(["freqsgd", *arguments])


def test_resuming_what_is_not_there_is_told(tmp_path):
    options = ["--optimizers", "cfsgd", "--trials", "1", "--out", str(tmp_path), "--resume"]
    told = f"{tmp_path} holds nothing to resume: this run begins anew"
    assert told in CliRunner().invoke(app, ["tune", *GENERATED, *options]).stderr
    assert told not in CliRunner().invoke(app, ["tune", *GENERATED, *options]).stderr


def test_help_has_an_example_and_not_what_is_searched():
    text = CliRunner().invoke(app, ["tune", "--help"]).output
    assert "Example: freqsgd tune" in text
    assert "--init-scale" not in text
    assert "--patience" in text


def test_a_missing_optuna_is_named_with_its_extra(tmp_path):
    script = (
        "import sys; sys.modules['optuna'] = None; sys.argv = ['freqsgd', *sys.argv[1:]]; "
        "from freqsgd.cli import main; main()"
    )
    command = [sys.executable, "-c", script, "tune", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'freqsgd[tune]'" in done.stderr
    assert "Traceback" not in done.stderr
