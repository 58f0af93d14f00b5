"""``freqsgd inspect`` as a user runs it."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from functools import partial

import polars as pl
import pytest

from freqsgd.kernels.compiled import TOLD


@pytest.fixture
def run(in_process):
    return partial(in_process, "inspect")


def test_a_table_and_files(tmp_path, run):
    rows = [f"{n % 2},u{n % 50},{n % 7}" for n in range(1000)]
    (tmp_path / "clicks.csv").write_text("\n".join(["click,user,shop", *rows]))
    given = ["--data", "clicks.csv", "--label", "click", "--dim", 8, "--out", "out"]
    done = run(*given)
    assert "clicks has 1,000 rows, 2 fields and 57 tokens." in done.out
    assert re.search(r"user +50 +0% +50.0 .* - .* x \(20\)", done.out)
    for topic in ("Columns", "SGD's bound over", "Optimizer state of CF-SGD", "Learning rates"):
        assert f"\n- {topic}" in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    out = tmp_path / "out"
    document = json.loads((out / "inspect.json").read_text())
    assert document["command"].startswith("freqsgd inspect --data clicks.csv")
    assert [field["name"] for field in document["fields"]] == ["user", "shop"]
    assert "<html" in (out / "inspect.html").read_text()
    assert list(out.glob("*.png"))
    again = ["--dataset", "zipf-text", "--out", "out"]
    assert "write out/inspect.json: it exists already; use --force" in run(*again, code=2).err
    run(*again, "--force")
    page = ["--text", "--data", "out/inspect.html", "--out", "out", "--force"]
    assert "out/inspect.html is an input" in run(*page, code=2).err
    assert json.loads((out / "inspect.json").read_text())["dataset"]["name"] == "zipf-text"


def test_many_fields_with_long_and_odd_names_keep_to_100_columns(tmp_path, run):
    names = [f"a very long name of a column [bold]{n}\x1b" for n in range(39)]
    pl.DataFrame({name: [1, 2, 3] * 20 for name in names}).write_csv(tmp_path / "wide.csv")
    done = run("--data", "wide.csv")
    assert max(map(len, done.out.splitlines())) <= 100
    assert sum("a very long name" in line for line in done.out.splitlines()) >= 39
    assert "\x1b" not in done.out


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (b"", [], "x.csv: the file is empty"),
        (b"a,b\n", [], "x.csv: there are no rows"),
        (b"a,b\n1,2\n", ["--features", "c"], "there is no column 'c'"),
        (b"a,b\n1,2\n1,two\n", ["--numeric", "b"], "line 3: b is 'two', not a finite number"),
        (b"a,b\n1,2\n", ["--out", "x.csv"], "cannot make the folder x.csv: File exists"),
        (b"a,b\n1,2\n", ["--out", ""], "--out is empty: name a file or folder"),
        (b"a,b\n1,2\n", ["--features", ","], "--features names no column"),
        (b"a,b\n1,2\n", ["--numeric", ""], "--numeric names no column"),
        (b"a,b\n1,2\n", ["--label", ""], "the name of the label is empty"),
        (b"\n\n\n", [], "x.csv: the first line names no columns"),
        (b"a\n1\n", ["--label", "a"], "x.csv: there is no column but the label"),
        (b"a;b\n1;2\n", [], "'a;b'. The file seems to be separated by ';': use --separator ';'"),
        (b"tea tea milk\n", ["--text"], "no word is seen 5 times; lower --min-count"),
        (b"a,b\n1,2\n", ["--dim", "0"], "dim must be at least 1"),
        (b"a,b\n1,2\n", ["--dataset", "criteo"], "does not go with own files"),
        (b" \n", ["--text"], "x.csv: there are no words in it"),
    ],
)
def test_bad_input_ends_with_one_message(tmp_path, run, content, arguments, message):
    (tmp_path / "x.csv").write_bytes(content)
    done = run("--data", "x.csv", *arguments, code=2)
    assert done.err.startswith("freqsgd: error: ")
    assert message in done.err


def test_damaged_parquet_and_text_taken_for_a_table(tmp_path, run):
    pl.DataFrame({"a": list(range(1000))}).write_parquet(tmp_path / "x.parquet")
    whole = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(whole[: len(whole) // 2])
    done = run("--data", "x.parquet", code=2)
    assert "cannot be read as Parquet" in done.err
    (tmp_path / "x.txt").write_text("tea with milk\nor with sugar\n")
    assert "say --text" in run("--data", "x.txt", code=2).err


def test_one_row_of_one_token_is_told_in_the_singular(tmp_path, run):
    (tmp_path / "x.csv").write_text("a\nu\n")
    out = run("--data", "x.csv").out
    assert "x has 1 row, 1 field and 1 token." in out
    assert not re.search(r"\b1 (rows|tokens|fields|times)\b", out)


def test_fields_that_no_corollary_applies_to_are_not_all_listed(tmp_path, run):
    frame = pl.DataFrame({f"c{n}": [str(row % (n + 2)) for row in range(90)] for n in range(39)})
    frame.write_csv(tmp_path / "x.csv")
    out = run("--data", "x.csv").out
    assert len(out.splitlines()) < 39 + 50
    assert "The values of 'c0' are 0 and 1: if it is the label" in " ".join(out.split())
    assert "if it is the label" not in " ".join(run("--data", "x.csv", "--label", "c0").out.split())


def test_long_work_is_told_in_lines_from_its_start_to_its_end(tmp_path, run, monkeypatch):
    names = [f"c{n}" for n in range(60)]
    rows = [",".join(str((n + k) % 5) for k in range(60)) for n in range(40)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(names), *rows]))
    monkeypatch.setattr("freqsgd.cli.progress._FIRST_LINE", 2.0)
    clock = itertools.repeat(0)
    monkeypatch.setattr("freqsgd.cli.progress.monotonic", lambda: float(next(clock)))
    first = run("--data", "wide.csv").err  # the work of a moment
    assert first.removeprefix(TOLD).strip() == ""
    clock = itertools.count()
    lines = run("--data", "wide.csv").err.splitlines()
    shares = [
        re.fullmatch(r"(counting|ranking|describing) (tokens|columns) +[0-9]+%", line)
        for line in lines
    ]
    assert all(shares)
    assert next(share[1] for share in shares if share[1] != "counting") == "ranking"
    assert shares[-1][1] == "describing"
    assert 5 < len(lines) < 60


def test_ctrl_c_says_so(tmp_path, run, monkeypatch):
    def interrupted(*given, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("freqsgd.cli.inspect.look_at", interrupted)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    assert run("--data", "x.csv", "--out", "out", code=130).err.strip() == "interrupted"
    assert not list((tmp_path / "out").iterdir())


def test_as_a_process_of_its_own(tmp_path):
    command = [sys.executable, "-m", "freqsgd", "inspect", "--data", "none.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "freqsgd: error: none.csv: there is no such file or folder\n"
