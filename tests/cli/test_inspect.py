"""``freqsgd inspect`` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys

import polars as pl
import pytest

from freqsgd.cli.app import run as run_app


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command in this process, in a folder of its own; gives output and messages."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["freqsgd", "inspect", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            run_app()
        said = capsys.readouterr()
        assert ended.value.code == code, said.err
        return said

    return command


def test_a_table_and_files(tmp_path, run):
    rows = [f"{n % 2},u{n % 50},{n % 7}" for n in range(1000)]
    (tmp_path / "clicks.csv").write_text("\n".join(["click,user,shop", *rows]))
    given = ["--data", "clicks.csv", "--label", "click", "--dim", 8, "--out", "out"]
    done = run(*given)
    assert "clicks: 1,000 rows, 2 fields, 57 tokens" in done.out
    for word in ("effective", "user", "shop", "promise", "corollary", "cfsgd", "lr  "):
        assert word in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    out = tmp_path / "out"
    document = json.loads((out / "inspect.json").read_text())
    assert document["command"].startswith("freqsgd inspect --data clicks.csv")
    assert [field["name"] for field in document["fields"]] == ["user", "shop"]
    assert "<html" in (out / "inspect.html").read_text()
    assert list(out.glob("*.png"))
    run("--dataset", "zipf-text", "--out", "out")
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
        (b"a,b\n1,2\n", ["--out", "x.csv"], "x.csv: cannot be written"),
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


def test_as_a_process_of_its_own(tmp_path):
    command = [sys.executable, "-m", "freqsgd", "inspect", "--data", "none.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "freqsgd: error: none.csv: there is no such file or folder\n"
