"""``freqsgd paper`` as a user runs it, and what the terminal shows."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from functools import partial

import pytest

pytest.importorskip("vl_convert", reason='needs vl-convert: pip install "freqsgd[cli]"')

from freqsgd.cli import paper as command_module
from freqsgd.cli.paper import print_paper
from freqsgd.paper import running
from freqsgd.paper.running import chosen_figures, run_paper
from tests.paper.tiny import PROGRAM, ROOT, figure
from tests.paper.tiny import run as tiny_run

PAPER = (sys.executable, "-m", "freqsgd", "paper")
CHEAP = ("--only", "fig1,table3", "--out", "out")  # one has a stand-in, the other needs data
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """Where the cheapest figures were measured without any data, and what was printed."""
    folder = tmp_path_factory.mktemp("paper")
    done = subprocess.run(
        [*PAPER, *CHEAP], cwd=folder, env=bare(folder), capture_output=True, text=True
    )
    return folder, done


def bare(folder):
    """An environment without data and with an empty cache."""
    left_out = ("FREQSGD_DATA", "COLUMNS", "FORCE_COLOR", "NO_COLOR")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "FREQSGD_CACHE": str(folder / "cache"), "TERM": "xterm"}


def on_terminal(columns, *arguments, cwd):
    """Run a command on a terminal so wide; its exit code and all that it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    child = subprocess.Popen(
        [*PAPER, *arguments], cwd=cwd, env=bare(cwd), stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # nobody writes any more
        pass
    os.close(ours)
    return child.wait(), ESCAPES.sub("", shown.decode())


def test_without_data_a_stand_in_is_run_and_what_is_missing_is_told(called):
    folder, done = called
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    first, last = done.stderr.splitlines()
    assert re.fullmatch(r" 1/1 ml-tokens +tokens of MovieLens-1M; .* left", first)
    assert re.fullmatch(r" 1/1 ml-tokens +done, .*, on generated data", last)
    lines = done.stdout.splitlines()
    assert lines[1].split() == ["figure", "the", "paper", "says", "measured", "verdict", "data"]
    assert max(len(line) for line in lines if not line.startswith(("ml-", "criteo-"))) <= 120
    fig1, table3 = (line for line in lines if line.startswith(("fig1", "table3")))
    assert "few tokens hold most" in fig1
    assert re.search(r" - +not measured +generated$", fig1.rstrip())
    assert re.search(r" - +not measured +missing$", table3.rstrip())
    assert (
        "ml-tokens: generated data: movielens-1m is not here: "
        "freqsgd data get movielens-1m downloads it"
    ) in lines
    (missing,) = (line for line in lines if line.startswith("criteo-tuned: no data: "))
    assert str(folder / "cache/data/criteo/train.txt") in missing
    assert lines[-1] == "report: out/paper.html"


def test_the_folder_has_the_document_the_page_its_pictures_and_the_runs(called):
    folder, _ = called
    out = folder / "out"
    document = json.loads((out / "paper.json").read_text())
    assert document["command"] == "freqsgd paper --only fig1,table3 --out out"
    fig1 = document["figures"][0]
    assert {rule["measured"] for rule in fig1["rules"]} == {
        "not measured: this is about movielens-1m"
    }
    assert document["runs"]["ml-tokens"]["stand_in"] is True
    others = {name: run["status"] for name, run in document["runs"].items() if name != "ml-tokens"}
    assert others.pop("criteo-tuned") == "no data"
    assert set(others.values()) == {"not asked"}
    assert {each.name for each in out.iterdir()} == {
        "paper.json", "paper.html", "paper-fig1-counts.png", "paper-fig1-tails.png", "runs",
    }  # fmt: skip
    page = (out / "paper.html").read_text()
    assert 'id="fig1"' in page
    assert 'id="fig2"' not in page
    assert (out / "runs/ml-tokens/inspect.html").is_file()


def test_again_on_a_narrow_terminal_nothing_is_run_and_nothing_is_cut(called):
    folder, _ = called
    before = (folder / "out/runs/ml-tokens/inspect.json").stat().st_mtime_ns
    code, shown = on_terminal(60, *CHEAP, cwd=folder)
    assert code == 0
    assert re.search(r" 1/1 ml-tokens +there already", shown)
    assert (folder / "out/runs/ml-tokens/inspect.json").stat().st_mtime_ns == before
    told = shown[shown.index("\nfig1") :]
    figures = told[: told.index("\n\n")].splitlines()[1:]
    assert figures[0] == "fig1       not measured (generated data)"
    assert figures[1] == "  paper    few tokens hold most ratings"
    assert figures[2] == "  measured -"
    assert "table3     not measured (missing data)" in figures
    assert figures[-1] == "  measured -"
    assert max(map(len, figures)) <= 60


@pytest.fixture
def paper(tmp_path, monkeypatch, in_process):
    """Runs the command in this process with a table of its own; gives output and messages."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FREQSGD_DATA", raising=False)

    def command(*arguments, runs=None, code=0):
        runs = runs or {"a": tiny_run()}
        figures = [figure(name, name) for name in runs]
        table = partial(run_paper, runs=runs, figures=figures, program=PROGRAM)
        monkeypatch.setattr(running, "run_paper", table)
        monkeypatch.setattr(
            running, "chosen_figures", lambda names, _=None: chosen_figures(names, figures)
        )
        return in_process("paper", *arguments, code=code)

    return command


def test_a_failed_run_is_told_the_report_is_written_and_the_exit_code_is_2(paper, tmp_path):
    done = paper(runs={"bad": tiny_run("fail"), "good": tiny_run()}, code=2)
    assert re.search(r" 1/2 bad +failed, .*: ratings\.dat is damaged\n", done.err)
    assert re.search(r" 2/2 good +done, ", done.err)
    assert "\nbad: failed: ratings.dat is damaged\n" in done.out
    assert done.out.endswith("report: paper/paper.html\n")
    assert (tmp_path / "paper/paper.html").is_file()


def test_a_failed_run_that_nobody_asks_for_is_no_error(paper):
    runs = {"bad": tiny_run("fail"), "good": tiny_run()}
    paper(runs=runs, code=2)
    assert "bad" not in paper("--only", "good", runs=runs).out


def test_a_run_out_of_time_is_told_and_is_no_error(paper):
    done = paper(runs={"slow": tiny_run("partial", budget=4.0)})
    assert re.search(r" 1/1 slow +out of time, .*: stopped after 4.0\W+s; the same", done.err)
    assert "slow: out of time: stopped after" in done.out
    assert "1 of 2 rules hold; against it: looked" in " ".join(done.out.split())


def test_options_reach_every_run_and_the_command_that_does_a_figure_again(paper, tmp_path):
    paper("--full", "--threads", "1", "--seed", "7", "--out", "out")
    document = json.loads((tmp_path / "out/paper.json").read_text())
    assert document["mode"] == "full"
    assert document["runs"]["a"]["command"] == (
        "freqsgd compare --do ok --epochs 20 --threads 1 --seed 7 --out a"
    )
    assert document["figures"][0]["command"] == (
        "freqsgd paper --only a --full --threads 1 --seed 7"
    )
    paper("--out", "out")
    again = json.loads((tmp_path / "out/paper.json").read_text())["figures"][0]["command"]
    assert again == "freqsgd paper --only a"


def test_ctrl_c_says_how_to_go_on(paper, monkeypatch):
    def interrupted(self, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_module.PaperWatcher, "watch", interrupted)
    done = paper(code=130)
    assert done.err.strip() == "interrupted; the same command goes on from here"
    assert done.out == ""


INVALID, LEAST = "Invalid value for", "Input should be greater than or equal to"
SEE = "see freqsgd paper --help"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "fig9"], "--only knows no 'fig9': there are all, a, b"),
        (["--only", "a,fig9"], "--only knows no 'fig9': there are all, a, b"),
        (["--only", ","], "--only names no figure"),
        (["--threads", "0"], f"{INVALID} '--threads': {LEAST} 1; {SEE}"),
        (["--threads", "100000"],
         f"{INVALID} '--threads': Input should be less than or equal to 1024; {SEE}"),
        (["--seed", "-1"], f"{INVALID} '--seed': {LEAST} 0; {SEE}"),
        (["--out", "file"], "cannot use the folder file: Not a directory"),
        (["--out", "file/below"], "cannot use the folder file/below: Not a directory"),
        (["--out", "/proc/none"], "cannot make the folder /proc/none: No such file or directory"),
        (["--out", "thesis"], "thesis holds other things (chapter.tex) and no paper.json of "
         "freqsgd paper: use another --out"),
        (["--figure", "a"], "No such option: --figure; see freqsgd paper --help"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_ends_with_one_line_and_leaves_nothing(
    paper, tmp_path, arguments, message
):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.tex").write_text("mine too")
    done = paper(*arguments, runs={"a": tiny_run(), "b": tiny_run()}, code=2)
    assert (done.out, done.err) == ("", f"freqsgd: error: {message}\n")
    assert {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*")} == {
        "file", "thesis", "thesis/chapter.tex",
    }  # fmt: skip


def shown(monkeypatch, capsys, document, columns):
    """The lines on a terminal so wide; None: not on a terminal."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    if columns is not None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", str(columns))
    print_paper(document, [each["name"] for each in document["figures"] if each["name"] != "no"])
    return [line.rstrip() for line in ESCAPES.sub("", capsys.readouterr().out).splitlines()]


def entry(name, verdict, *answers, runs=("a",), data="real"):
    """A figure; each rule of it measured its place."""
    rules = [
        {"run": runs[place % len(runs)], "holds": holds, "measured": f"{place}%"}
        for place, holds in enumerate(answers)
    ]
    told = {"verdict": verdict, "brief": f"brief of {name}", "data": data}
    return {"name": name, "runs": list(runs), "rules": rules, **told}


DOCUMENT = {
    "schema": 1,
    "kind": "paper",
    "figures": [
        entry("one", "agrees", True),
        entry("two", "agrees in part", True, False, None, runs=("a", "b"), data="stand-in"),
        entry("all", "agrees", True, True, True, data="simulated"),
        entry("none", "not measured", None, None, runs=("[c]",), data="none"),
        entry("no", "differs", False),
    ],
    "runs": {
        "a": {"status": "done", "why": ""},
        "b": {"status": "out of time", "why": "stopped after 1 s"},
        "[c]": {"status": "no data", "why": "get it"},
    },
}


@pytest.mark.parametrize("columns", [None, 110, 200])
def test_a_wide_screen_has_a_row_per_figure(monkeypatch, capsys, columns):
    lines = shown(monkeypatch, capsys, DOCUMENT, columns)
    assert max(map(len, lines)) <= (columns or 120)
    rows = {line.split()[0]: re.sub(r"\s{2,}", " | ", line) for line in lines if line}
    assert rows["one"] == "one | brief of one | 0% | agrees | real"
    assert rows["two"] == (
        "two | brief of two | 1 of 3 rules hold; against it: b: 1% | agrees in part | generated"
    )
    assert rows["all"] == ("all | brief of all | 3 of 3 rules hold; 0% | agrees | simulated")
    assert rows["none"] == "none | brief of none | - | not measured | missing"
    assert "no" not in rows
    claim, measured, verdict = map(lines[1].index, ("the paper says", "measured", "verdict"))
    assert measured - claim < verdict - measured  # numbers have more room than claims
    assert lines[-3:] == ["", "b: out of time: stopped after 1 s", "[c]: no data: get it"]


@pytest.mark.parametrize("columns", [40, 109])
def test_a_narrow_screen_has_lines_per_figure(monkeypatch, capsys, columns):
    lines = shown(monkeypatch, capsys, DOCUMENT, columns)
    assert max(map(len, lines)) <= columns
    assert lines[:4] == [
        "",
        "one        agrees (real data)",
        "  paper    brief of one",
        "  measured 0%",
    ]
    words = " ".join(" ".join(lines).split())
    assert "two agrees in part (generated data) paper brief of two measured" in words
    assert "measured 1 of 3 rules hold; against it: b: 1% all agrees" in words
    assert "none not measured (missing data) paper brief of none measured -" in words


def test_a_reason_that_runs_share_is_said_once(monkeypatch, capsys):
    same = {"status": "no data", "why": "get it"}
    document = {
        "schema": 1,
        "kind": "paper",
        "figures": [entry("f", "not measured", None, None, runs=("a", "b"), data="none")],
        "runs": {"a": same, "b": same},
    }
    assert shown(monkeypatch, capsys, document, None)[-1] == "a, b: no data: get it"


def test_help_has_the_figures_and_an_example(paper):
    told = paper("--help").out
    assert "Example: freqsgd paper --only fig2,memory --out paper" in told
    assert "appendix-c" in told
