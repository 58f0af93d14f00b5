from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import typer

from freqsgd.cli.app import COMMANDS

LINE = 79  # of a terminal of 80 columns


def loaded_by(code: str, whole: bool = False) -> set[str]:
    """Names of modules, or of their parts too."""
    report = f"import sys\n{code}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    names = run.stdout.splitlines()[-1].split()
    return {name for name in names if whole or "." not in name}


def test_importing_the_package_loads_neither_numba_nor_other_extras():
    assert not {"numba", "llvmlite", "lightning", "pandas"} & loaded_by("import freqsgd")


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


def test_the_overview_imports_no_command():
    page = (
        "import freqsgd.cli.app\n"
        "try: freqsgd.cli.app.app(['--help'])\n"
        "except SystemExit: pass\n"
        "sys.stdout.write('\\n')"
    )
    own = {"freqsgd.cli", "freqsgd.cli.app", "freqsgd.cli.panels"}
    more = loaded_by(page, whole=True) - loaded_by("import freqsgd, typer.main", whole=True)
    assert {name for name in more if name.startswith("freqsgd")} == own
    assert not {"numba", "polars", "plotly", "matplotlib", "scipy", "sklearn"} & more


@pytest.mark.parametrize("name", COMMANDS)
def test_the_overview_says_what_the_command_says(name):
    """The first line of its docstring, or what comes before a comma or colon if it is too long."""
    command = COMMANDS[name]
    found = command.load()
    text = found.info.help if isinstance(found, typer.Typer) else found.__doc__
    first = text.splitlines()[0].partition(" Example:")[0]
    room = LINE - len("  ") - max(map(len, COMMANDS)) - len("  ")
    said = first if len(first) <= room else re.split("[,:;]", first)[0] + "."
    assert command.about == said
