from __future__ import annotations

import sys

import pytest

from freqsgd.cli.app import run


@pytest.fixture
def in_process(tmp_path, monkeypatch, capsys):
    """Runs a command in this process, in a folder of its own; gives output and messages."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["freqsgd", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            run()
        said = capsys.readouterr()
        assert ended.value.code == code, said.err
        return said

    return command
