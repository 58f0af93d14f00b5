from __future__ import annotations

import ast
import os
import re
import runpy
import sys
import traceback
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, blocks, name, python_blocks
from tests.forks import fork

OPTIONAL = {  # what a page speaks of, and the package that it takes
    "FMClassifier": "sklearn",
    "Word2Vec": "polars",
    "lightning": "lightning",
    "load": "polars",
    "load_text": "polars",
    "polars": "polars",
}
RUNNING = [page for page in PAGES if python_blocks(page, run=True)]
MARKED = [page for page in PAGES if python_blocks(page, run=False)]


def script(page: Path) -> str:
    """All that runs of a page; each line is where the page has it, so that errors name it."""
    lines = [""] * len(page.read_text("utf-8").splitlines())
    for block in python_blocks(page, run=True):
        code = block.code.splitlines()
        lines[block.line - 1 : block.line - 1 + len(code)] = code
    return "\n".join(lines)


def said(code: str) -> dict[int, str]:
    """What the page says that lines print: the comments behind ``print``."""
    found = {
        number: re.search(r"\bprint\(.*\)  # (.*)", line)
        for number, line in enumerate(code.splitlines(), 1)
    }
    return {number: text[1] for number, text in found.items() if text}


def run(pipe: Connection, file: Path, folder: Path, environment: dict[str, str]) -> None:
    """Send what each line printed, and the error that ended the page."""
    os.chdir(folder)
    os.environ.update(environment)
    printed: dict[int, str] = {}

    def note(*values: object) -> None:
        line = sys._getframe(1).f_lineno
        printed[line] = printed.get(line, "") + " ".join(map(str, values)) + "\n"

    try:
        runpy.run_path(str(file), {"print": note}, "__main__")  # what others print is not noted
    except BaseException:
        pipe.send((printed, traceback.format_exc()))
    else:
        pipe.send((printed, None))


def write_files_that_pages_read(folder: Path) -> None:
    rows = [f"u{n % 50},i{n * n % 30},{n % 7},{(n + n * n) % 3 // 2}" for n in range(2000)]
    (folder / "clicks.csv").write_text("\n".join(["user,item,price,click", *rows]), "utf-8")
    sentence = "the king drinks tea with milk while the queen eats bread with honey\n"
    (folder / "corpus.txt").write_text(sentence * 300, "utf-8")


@pytest.mark.ci
@pytest.mark.parametrize("page", RUNNING, ids=name)
def test_code_runs_and_prints_what_the_page_says(page, tmp_path):
    code = script(page)
    for word, package in OPTIONAL.items():
        if re.search(rf"\b{word}\b", code):
            pytest.importorskip(package)
    folder = tmp_path / "here"
    folder.mkdir()
    write_files_that_pages_read(folder)
    file = tmp_path / f"{page.stem}.py"
    file.write_text(code, "utf-8")
    single_rank = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    cache = {"FREQSGD_CACHE": str(tmp_path / "cache")}
    process, pipe = fork(run, file, folder, single_rank | cache)
    printed, error = pipe.recv()
    process.join()
    assert error is None, error
    assert process.exitcode == 0
    found = {line: text.split() for line, text in printed.items()}
    assert found == {line: text.split() for line, text in said(code).items()}


@pytest.mark.parametrize("page", MARKED, ids=name)
def test_what_does_not_run_says_why_and_takes_names_that_exist(page):
    for block in python_blocks(page, run=False):
        assert re.fullmatch(r": \S.* ", block.marker), f"line {block.line} gives no reason"
        for node in ast.walk(ast.parse(block.code)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("freqsgd"):
                module = import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names), node.module


def test_every_marker_stands_above_a_block():
    for page in PAGES:
        markers = re.findall("<!-- not run", page.read_text("utf-8"))
        marked = [block for block in blocks(page) if block.marker is not None]
        assert len(markers) == len(marked), name(page)
