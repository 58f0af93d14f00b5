from __future__ import annotations

import pytest
from typer.testing import CliRunner

from freqsgd.cli.app import app
from freqsgd.errors import DataError


def run(*arguments):
    """What the command prints; its errors are raised."""
    return CliRunner().invoke(app, ["data", *arguments], catch_exceptions=False).stdout


@pytest.fixture
def ratings(tmp_path, monkeypatch):
    path = tmp_path / "ml-1m" / "ratings.dat"
    path.parent.mkdir()
    path.write_text("".join(f"{n % 7}::{n % 5}::{n % 5 + 1}::{n}\n" for n in range(100)))
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    return path


def test_list_says_where_datasets_are_or_how_to_get_them(ratings):
    output = run("list")
    assert f"at {ratings}" in output
    assert "not here. By hand: get it from" in output
    assert "synthetic: " in output


def test_get_says_where_the_file_is(ratings):
    assert run("get", "movielens-1m") == f"movielens-1m is at {ratings}\n"
    with pytest.raises(DataError, match="known are synthetic, movielens-1m, criteo"):
        run("get", "netflix")


def test_info_of_a_dataset(ratings, cache):
    facts = dict(line.rsplit("  ", 1) for line in run("info", "movielens-1m").splitlines())
    facts = {what.strip(): value for what, value in facts.items()}
    assert facts["rows"] == "100"
    assert facts["split"] == "80 train, 10 validation, 10 test"
    assert facts["positive rate"] == "0.4000"
    assert facts["user"] == "8 tokens"
    assert facts["encoded at"].startswith(str(cache / "encoded" / "movielens-1m-"))


def test_info_of_a_file_names_its_columns_or_describes_its_samples(tmp_path):
    lines = ["click,user", *(f"{n % 2},u{n % 3}" for n in range(20))]
    (tmp_path / "clicks.csv").write_text("\n".join(lines))
    path = str(tmp_path / "clicks.csv")
    assert run("info", path) == "click: text\nuser: text\n"
    output = run("info", path, "--label", "click", "--features", "user")
    assert "positive rate  0.5000" in output
    assert "user         4 tokens" in output


def test_info_of_generated_samples():
    assert "450,000" in run("info", "synthetic")
