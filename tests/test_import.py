from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

from freqsgd.cli.app import COMMANDS

LINE = 79  # of a terminal of 80 columns
PATHS = {(name,): command for name, command in COMMANDS.items()}
for name, command in COMMANDS.items():
    if not isinstance(command.place, str):
        PATHS |= {(name, inner): each for inner, each in command.place.items()}


def loaded_by(code: str, whole: bool = False) -> set[str]:
    """Names of modules, or of their parts too."""
    report = f"import sys\n{code}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    names = run.stdout.splitlines()[-1].split()
    return {name for name in names if whole or "." not in name}


def test_importing_the_package_loads_neither_torch_nor_extras_and_its_names_load_torch_alone():
    assert not {"torch", "numba", "lightning", "pandas"} & loaded_by("import freqsgd")
    optimizers = loaded_by("from freqsgd import CFSGD, FASGD, watch")
    assert "torch" in optimizers
    assert not {"numba", "llvmlite", "lightning", "pandas"} & optimizers


def test_a_plain_step_needs_no_numba():
    code = (
        "import torch, freqsgd\n"
        "emb = torch.nn.Embedding(3, 2, sparse=True)\n"
        "opt = freqsgd.CFSGD(emb.parameters(), 0.1, fused=False)\n"
        "emb(torch.tensor([1])).sum().backward(); opt.step()"
    )
    assert "numba" not in loaded_by(code)
    assert "numba" in loaded_by(code.replace("fused=False", "fused=True"))


def test_unknown_attributes_are_still_errors():
    import freqsgd

    assert not hasattr(freqsgd, "no_such_name")


def overview() -> list[str]:
    command = [sys.executable, "-m", "freqsgd", "--help"]
    environment = os.environ | {"COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.splitlines()


def test_the_overview_fits_a_screen_and_names_every_command():
    lines = overview()
    assert len(lines) < 24
    assert max(map(len, lines)) <= LINE
    shown = [line.split()[0] for line in lines if line.startswith("  ")]
    assert shown == list(COMMANDS)


HEAVY = {"torch", "numba", "polars", "jinja2", "vl_convert", "scipy", "sklearn"}


def loaded_by_command(*arguments: str, whole: bool = False) -> set[str]:
    """Names of modules that a command has imported when it ends; it must end well."""
    return loaded_by(
        "import io, contextlib, freqsgd.cli\n"
        f"sys.argv = ['freqsgd', *{arguments!r}]\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    try:\n"
        "        freqsgd.cli.main()\n"
        "    except SystemExit as end:\n"
        "        assert not end.code, end.code",
        whole,
    )


@pytest.mark.parametrize("command", [" ".join(path) for path in [(), *PATHS]])
def test_help_loads_no_large_library(command):
    assert not HEAVY & loaded_by_command(*command.split(), "--help")


def test_commands_that_train_nothing_do_not_load_torch(tmp_path, monkeypatch):
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / "cache"))
    table = tmp_path / "clicks.csv"
    table.write_text("user,item,click\n" + "a,x,0\nb,y,1\n" * 20)
    fields = ("--features", "user,item")
    assert "torch" not in loaded_by_command("data", "info", str(table), "--label", "click", *fields)
    assert "torch" not in loaded_by_command("inspect", "--data", str(table), *fields)


SLOW = HEAVY | {"freqsgd.report.charts", "freqsgd.report.page"}  # not its wording
SIZES = ("--features", "8", "--rows", "1e6", "--host-memory", "1T")


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (("data", "list"), set()),
        (("data", "info", "clicks-small"), set()),
        (("data", "info", "clicks.csv"), set()),
        (("data", "info", "clicks.csv.gz"), set()),
        (("data", "info", "rows.data", "--separator", ";", "--columns", "a,b"), set()),
        (("data", "info", "clicks.parquet"), {"polars"}),
        (("plan", *SIZES), set()),
    ],
)
def test_commands_that_train_nothing_load_only_what_they_need(
    tmp_path, monkeypatch, arguments, needed
):
    monkeypatch.chdir(tmp_path)
    table = "user,item,click\n" + "a,x,0\nb,y,1\n" * 20
    Path("clicks.csv").write_text(table)
    Path("clicks.csv.gz").write_bytes(gzip.compress(table.encode()))
    Path("rows.data").write_text("1;2\n")
    pl.DataFrame({"user": [1], "click": [0]}).write_parquet("clicks.parquet")
    assert SLOW & loaded_by_command(*arguments, whole=True) == needed


def test_progress_is_shown_without_the_report():
    assert not SLOW & loaded_by("import freqsgd.cli.progress", whole=True)


@pytest.mark.parametrize("path", [path for path in PATHS if isinstance(PATHS[path].place, str)])
def test_the_overview_says_what_the_command_says(path):
    """The first line of its docstring, or what comes before a comma or colon if it is too long."""
    command = PATHS[path]
    module, _, function = command.place.partition(":")
    text = getattr(import_module(f"freqsgd.cli.{module}"), function).__doc__
    first = text.splitlines()[0]
    names = [other[-1] for other in PATHS if other[:-1] == path[:-1]]
    assert len(command.about) <= LINE - len("  ") - max(map(len, names)) - len("  ")
    assert command.about in (first, re.split("[,:;]", first)[0] + ".")


def test_names_are_listed_before_they_are_imported():
    listed = "import freqsgd, freqsgd.recommender; print(*dir(freqsgd), *dir(freqsgd.recommender))"
    done = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True)
    names = {"CFSGD", "watch", "FMClassifier", "__version__", "fit", "Settings"}
    assert names <= set(done.stdout.split())
