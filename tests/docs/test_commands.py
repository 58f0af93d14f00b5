from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from freqsgd.cli.app import app
from tests.docs.pages import PAGES, ROOT, blocks, name, prose

SHELL = ("", "bash", "sh")
COMMAND = re.compile(r"(?:^|\$ |-m )freqsgd (.*)")


def command_lines(page: Path) -> list[str]:
    """What follows ``freqsgd`` in blocks without a language, and in code within sentences."""
    code = [block.code for block in blocks(page) if block.language in SHELL]
    lines = "\n".join(code).replace("\\\n", " ").splitlines()
    lines += [text.replace("\n", " ") for text in re.findall(r"`([^`]+)`", prose(page))]
    return [found[1] for line in lines if (found := COMMAND.search(line))]


def wrong_words(line: str) -> list[str]:
    """Words that should name a command or an option, and do not."""
    command: Any = get_command(app)
    options = known(command)
    wrong = []
    for word in shlex.split(line, comments=True):
        if word.startswith("--"):
            wrong += {word.partition("=")[0]} - options
        elif hasattr(command, "get_command"):
            command = command.get_command(command.context_class(command), word)
            if command is None:
                return [word]
            options = known(command)
    return wrong


def known(command: Any) -> set[str]:
    parameters = command.get_params(command.context_class(command))
    return {name for each in parameters for name in (*each.opts, *each.secondary_opts)}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_command_lines_have_known_commands_and_options(page):
    assert {line: wrong for line in command_lines(page) if (wrong := wrong_words(line))} == {}


def test_command_lines_are_found_in_blocks_and_in_sentences():
    found = command_lines(ROOT / "README.md")
    assert any(line.startswith("compare --out demo ") for line in found)
    assert any(line.startswith("stream train --engine torchrec") for line in found)


def test_wrong_commands_and_options_are_seen():
    assert wrong_words("stream generate --out log  # --not-an-option") == []
    assert wrong_words("stream make --out log") == ["make"]
    assert wrong_words("compare --dataset ... --optimiser sgd") == ["--optimiser"]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_benchmarks_exist(page):
    for module in re.findall(r"python -m benchmarks\.(\w+)", page.read_text("utf-8")):
        place = ROOT / "benchmarks" / module
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists()
