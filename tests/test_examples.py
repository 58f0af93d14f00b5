"""Every script of ``examples`` runs as it is, and shows what it is there to show."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from freqsgd.kernels.compiled import TOLD

TESTS = Path(__file__).parent
EXAMPLES = TESTS.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
ELSEWHERE = {  # scripts that need a folder of data, or several processes
    "film_neighbours.py": TESTS / "estimators" / "test_example.py",
    "torchrec_own_model.py": TESTS / "torchrec" / "test_torchrec_example.py",
}


def start(name: str, folder: Path, *given: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, EXAMPLES / name, *given]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def output(name: str, folder: Path, *given: str) -> str:
    """What a script prints: on standard output alone, but for compiling; no file is left behind."""
    before = set(folder.iterdir())
    run = start(name, folder, *given)
    assert run.returncode == 0, run.stderr
    assert run.stderr.removeprefix(TOLD).strip() == ""
    assert set(folder.iterdir()) == before
    return run.stdout


def numbers(before: str, text: str) -> list[float]:
    """The numbers that follow a word."""
    return [float(found.replace(",", "")) for found in re.findall(rf"{before} ([\d.,]*\d)", text)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_test_runs_the_script(script: Path) -> None:
    if script.name in ELSEWHERE:
        assert f'"{script.name}"' in ELSEWHERE[script.name].read_text("utf-8")
    else:
        assert f'output("{script.name}"' in Path(__file__).read_text("utf-8")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_docstring_says_what_the_script_is_and_how_it_is_run(script: Path) -> None:
    """The page of examples is made of both."""
    docstring = ast.get_docstring(ast.parse(script.read_text("utf-8"))) or ""
    about, _, how = docstring.partition("\n\n")
    assert about.endswith(".")
    assert how
    runs = [line for line in how.splitlines() if not line.startswith("pip install ")]
    assert runs
    assert all(f"examples/{script.name}" in line for line in runs)


def test_cfadam_takes_the_place_of_adam_in_a_dlrm(tmp_path: Path) -> None:
    told = output("dlrm_swap.py", tmp_path, "--seeds", "1")
    *reached, best = numbers("AUC", told)
    assert best > max(reached)
    assert min(reached) > 0.75
    adam, cfadam = reached[:2]
    assert cfadam > adam - 0.005
    of_adam, of_cfadam = numbers("tables", told)[:2]
    rows = 20_000 + 5000 + 1000 + 100
    assert of_cfadam < 1.01 * 4 * rows  # a counter per row, some numbers per table
    assert of_adam > 2 * 16 * 4 * rows  # two numbers per weight


@pytest.mark.ci
@pytest.mark.skipif(find_spec("lightning") is None, reason="needs lightning")
def test_a_lightning_module_learns_and_counts_every_sample(tmp_path: Path) -> None:
    told = output("lightning_module.py", tmp_path)
    [before], [after] = numbers("loss", told), numbers("before,", told)
    assert after < before - 0.1
    assert "\n120,000 items counted" in told  # 60,000 in each of two epochs


@pytest.mark.ci
@pytest.mark.skipif(find_spec("sklearn") is None, reason="needs scikit-learn")
def test_a_scikit_learn_pipeline_finds_users_tastes(tmp_path: Path) -> None:
    told = output("sklearn_pipeline.py", tmp_path)
    one, four, _, new = numbers("AUC", told)
    assert four > one + 0.03  # four kinds of shops need more than one number
    assert new > 0.8
    _, _, nearest = told.partition("nearest to tea 0: ")
    assert [shop.split()[0] for shop in nearest.split(", ")] == ["tea"] * 5


def test_a_model_of_own_data_prefers_what_is_liked(tmp_path: Path) -> None:
    told = output("own_data.py", tmp_path)
    assert numbers("AUC", told)[0] > 0.65
    likely, unlikely = ast.literal_eval(told[told.index("[") :])
    assert likely > unlikely + 0.2


def test_words_near_a_word_are_of_its_kind(tmp_path: Path) -> None:
    told = output("word_vectors.py", tmp_path)
    words = {line.split()[1] for line in told.splitlines()}
    assert words == {"cow", "dog", "goose", "hen", "horse"}


def test_words_of_a_file_are_found_whatever_their_case(tmp_path: Path) -> None:
    lines = ["The Cat Drinks Milk In The Barn", "The Dog Eats Fish In The Field"]
    (tmp_path / "text.txt").write_text("\n".join(lines * 300))
    told = output("word_vectors.py", tmp_path, "text.txt", "cat")
    assert len(told.splitlines()) == 5


@pytest.mark.parametrize("given", [["text.txt"], ["nowhere.txt", "cat"], ["a", "b", "c"]])
def test_word_vectors_say_how_they_are_used(given: list[str], tmp_path: Path) -> None:
    run = start("word_vectors.py", tmp_path, *given)
    assert run.returncode != 0
    assert run.stderr.count("\n") == 1
    assert "nowhere.txt" in run.stderr if len(given) == 2 else "usage: " in run.stderr
