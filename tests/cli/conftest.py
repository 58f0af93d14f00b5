from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import pytest

from freqsgd.cli.app import run


def run_command(arguments: Sequence[str]) -> int:
    """Run a command in this process; return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["freqsgd", *arguments])
        with pytest.raises(SystemExit) as ended:
            run()
    return ended.value.code


@pytest.fixture
def in_process(tmp_path, monkeypatch, capsys):
    """Runs a command in this process, in a folder of its own; gives output and messages."""
    monkeypatch.chdir(tmp_path)
    # A slow machine must not add lines to those that are tested.
    monkeypatch.setattr("freqsgd.cli.progress._FIRST_LINE", math.inf)

    def command(*arguments, code=0):
        found = run_command([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert found == code, said.err
        return said

    return command


@pytest.fixture
def command(in_process):
    """Runs a command in this process, in a folder of its own; gives what it printed, or why not."""

    def call(*arguments, code=0):
        said = in_process(*arguments, code=code)
        return said.out if code == 0 else said.err

    return call
