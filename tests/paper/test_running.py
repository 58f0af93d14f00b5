"""Runs are done once, go on where they were cut short, and never spoil each other."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

import freqsgd
from freqsgd.documents.paper import PaperSummary
from freqsgd.errors import DataError
from freqsgd.paper import process
from freqsgd.paper.experiments import Run, Way
from freqsgd.paper.rules import Finding, Rule
from freqsgd.paper.running import run_paper
from tests.lossless import check_lossless
from tests.paper.tiny import ROOT, alive, attempts, figure, measure, run

TRAINED = Rule("", lambda results: Finding(True, f"{len(results.runs[0].epochs)} epochs"))
PARENT = """
import sys
from tests.paper.tiny import measure, run
measure(sys.argv[1], {"first": run(), "slow": run("hang"), "last": run()})
"""


def statuses(document):
    return {name: entry["status"] for name, entry in document["runs"].items()}


def read(out):
    return json.loads((out / "paper.json").read_text())


def test_every_run_of_the_figures_is_done_once_and_judged(tmp_path):
    runs = {"a": run(), "b": run(), "unused": run("fail")}
    figures = [figure("fig1", "a"), figure("fig2", "a", "b")]
    document = measure(tmp_path / "out", runs, figures, command="freqsgd paper")
    assert document == read(tmp_path / "out")
    check_lossless(document, PaperSummary)
    assert document["kind"] == "paper"
    assert document["mode"] == "quick"
    assert statuses(document) == {"a": "done", "b": "done", "unused": "not asked"}
    assert [each["verdict"] for each in document["figures"]] == ["agrees", "agrees"]
    entry = document["runs"]["a"]
    assert entry["command"] == "freqsgd compare --do ok --out a"
    assert entry["document"] == "runs/a/results.json"
    assert entry["report"] == "runs/a/report.html"
    assert entry["smaller"] == "smaller"
    assert entry["seconds"] > 0
    assert "epoch 1" in (tmp_path / "out/runs/a/log.txt").read_text()
    assert len(attempts(tmp_path / "out", "a")) == 1


def test_what_is_there_is_not_run_again(tmp_path):
    runs = {"a": run(), "b": run()}
    measure(tmp_path, runs, only=["a"])
    cached = {}
    document = measure(tmp_path, runs, listener=lambda now: cached.update({now.run: now.cached}))
    assert cached == {"a": True, "b": False}
    assert statuses(document) == {"a": "done", "b": "done"}
    assert len(attempts(tmp_path, "a")) == 1


def place(document, name):
    """The folder of a run, as it is called."""
    return document["runs"][name]["document"].split("/")[1]


def test_a_changed_command_is_run_anew_and_both_stay(tmp_path):
    runs = {"a": run()}
    quick = measure(tmp_path, runs)
    full = measure(tmp_path, runs, full=True)
    assert full["mode"] == "full"
    assert full["runs"]["a"]["command"].endswith("--epochs 20 --out a")
    assert place(quick, "a") == "a"
    assert re.fullmatch("a-[0-9a-f]{8}", place(full, "a"))
    cached = []
    for mode, before in ((False, quick), (True, full)):
        listener = lambda now: cached.append(now.cached)  # noqa: E731
        after = measure(tmp_path, runs, full=mode, listener=listener)
        assert cached[-1]
        assert after["runs"] == before["runs"]
        assert len(attempts(tmp_path, place(after, "a"))) == 1


@pytest.mark.parametrize("changed", [{"threads": 1}, {"seed": 3}])
def test_other_options_of_all_runs_count_as_another_command(changed, tmp_path):
    measure(tmp_path, {"a": run()})
    document = measure(tmp_path, {"a": run()}, **changed)
    ((name, value),) = changed.items()
    assert f"--{name} {value}" in document["runs"]["a"]["command"]
    assert f"--{name}" in attempts(tmp_path, place(document, "a"))[0]
    assert f"--{name}" not in attempts(tmp_path, "a")[0]


def test_results_of_another_version_are_measured_again(tmp_path, monkeypatch):
    measure(tmp_path, {"a": run()})
    monkeypatch.setattr(freqsgd, "__version__", "next")
    assert place(measure(tmp_path, {"a": run()}), "a") != "a"


def test_figures_not_asked_for_keep_what_was_measured(tmp_path):
    runs = {"a": run(), "b": run()}
    measure(tmp_path, runs)
    document = measure(tmp_path, runs, only=["a"])
    assert statuses(document) == {"a": "done", "b": "done"}
    assert [each["verdict"] for each in document["figures"]] == ["agrees", "agrees"]


@pytest.mark.parametrize("changed", [{"full": True}, {"seed": 3}])
def test_what_was_measured_by_other_commands_is_not_taken_for_this_ones(changed, tmp_path):
    runs = {"a": run(), "b": run()}
    measure(tmp_path, runs)
    document = measure(tmp_path, runs, only=["a"], **changed)
    assert statuses(document) == {"a": "done", "b": "not asked"}
    assert [each["verdict"] for each in document["figures"]] == ["agrees", "not measured"]
    assert statuses(measure(tmp_path, runs, only=["b"])) == {"a": "done", "b": "done"}
    assert len(attempts(tmp_path, "a")) == len(attempts(tmp_path, "b")) == 1


def test_without_a_package_a_run_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr("freqsgd.paper.tasks.find_spec", lambda name: None)
    document = measure(tmp_path, {"search": run(command="tune"), "other": run()})
    assert statuses(document) == {"search": "not installed", "other": "done"}
    why = 'freqsgd tune needs optuna: pip install "freqsgd[tune]"'
    assert document["runs"]["search"]["why"] == why
    assert document["figures"][0]["data"] == "none"


def test_ctrl_c_while_a_run_is_being_stopped_is_not_lost(tmp_path):
    """It is over its time, and does not stop when asked."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    soon = threading.Timer(7.0, os.kill, (os.getpid(), signal.SIGINT))
    soon.start()
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            measure(tmp_path, {"slow": run("stubborn", budget=4.0), "next": run()})
    finally:
        soon.join()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begun < 4.0 + process.GRACE_SECONDS
    assert statuses(read(tmp_path))["next"] == "not asked"


def test_over_its_time_a_run_is_stopped_answers_what_it_can_and_goes_on_next_time(tmp_path):
    runs = {"slow": run("partial", budget=4.0), "next": run()}
    document = measure(tmp_path, runs)
    assert statuses(document) == {"slow": "out of time", "next": "done"}
    assert "interrupted" in (tmp_path / "runs/slow/log.txt").read_text()
    slow = document["figures"][0]
    assert [rule["holds"] for rule in slow["rules"]] == [False, True]
    assert slow["verdict"] == "agrees in part"
    assert "goes on" in document["runs"]["slow"]["why"]
    before = document["runs"]["slow"]["seconds"]
    document = measure(tmp_path, runs)
    assert statuses(document)["slow"] == "done"
    assert document["runs"]["slow"]["seconds"] > before
    assert [("--resume" in each) for each in attempts(tmp_path, "slow")] == [False, True]


def test_a_run_that_cannot_be_resumed_begins_again(tmp_path):
    runs = {"slow": run("hang", budget=3.0, command="theory")}
    for _ in range(2):
        document = measure(tmp_path, runs)
        assert statuses(document) == {"slow": "out of time"}
        assert len(attempts(tmp_path, "slow")) == 1


def test_a_run_that_does_not_stop_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.5)
    document = measure(tmp_path, {"slow": run("stubborn", budget=1.0)})
    assert statuses(document) == {"slow": "out of time"}


def test_a_failed_run_tells_its_error_and_others_go_on(tmp_path):
    runs = {"bad": run("fail"), "worse": run("crash"), "good": run()}
    document = measure(tmp_path, runs)
    assert statuses(document) == {"bad": "failed", "worse": "failed", "good": "done"}
    assert document["runs"]["bad"]["why"] == "ratings.dat is damaged"
    assert "signal 11" in document["runs"]["worse"]["why"]
    assert [each["verdict"] for each in document["figures"]] == [
        "not measured", "not measured", "agrees"
    ]  # fmt: skip
    assert statuses(measure(tmp_path, runs)) == statuses(document)
    assert len(attempts(tmp_path, "bad")) == 1  # of a folder made anew


def test_without_its_data_a_run_has_a_stand_in_or_says_how_to_get_them(tmp_path):
    runs = {
        "movies": run(data="movielens-1m", stand_in="ok"),
        "clicks": run(data="criteo"),
    }
    document = measure(tmp_path / "out", runs)
    assert statuses(document) == {"movies": "done", "clicks": "no data"}
    assert document["runs"]["movies"]["stand_in"] is True
    assert "freqsgd data get movielens-1m" in document["runs"]["movies"]["why"]
    assert "criteo/train.txt" in document["runs"]["clicks"]["why"]
    assert [each["data"] for each in document["figures"]] == ["stand-in", "none"]


def test_data_that_come_or_change_are_measured_anew(tmp_path):
    runs = {"movies": run(data="movielens-1m", stand_in="ok")}
    places = [place(measure(tmp_path / "out", runs), "movies")]
    ratings = tmp_path / "data/ml-1m/ratings.dat"
    ratings.parent.mkdir(parents=True)
    for content in ("1::1::5::0", "1::1::5::0\n1::2::4::0"):
        ratings.write_text(content)
        document = measure(tmp_path / "out", runs)
        assert document["runs"]["movies"]["stand_in"] is False
        assert document["figures"][0]["data"] == "real"
        places.append(place(document, "movies"))
    ratings.unlink()
    assert place(measure(tmp_path / "out", runs), "movies") == places[0]
    assert len({*places}) == len(list((tmp_path / "out/runs").iterdir())) == 3  # nothing is lost


def test_private_data_always_have_a_stand_in(tmp_path):
    document = measure(tmp_path, {"a": run()}, [figure("table1", "a", private="not public")])
    assert document["figures"][0]["data"] == "stand-in"


def test_killing_the_parent_ends_the_child_and_the_next_call_goes_on(tmp_path):
    out = tmp_path / "out"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(out)], cwd=ROOT)
    child = wait_for_child(out, parent)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert statuses(read(out)) == {"first": "done", "slow": "not asked", "last": "not asked"}
    until(lambda: not alive(child))
    runs = {"first": run(), "slow": run("hang"), "last": run()}
    document = measure(out, runs)
    assert set(statuses(document).values()) == {"done"}
    assert [("--resume" in each) for each in attempts(out, "slow")] == [False, True]
    assert len(attempts(out, "first")) == 1


def test_ctrl_c_stops_the_child_with_a_checkpoint_and_the_next_call_goes_on(tmp_path):
    out = tmp_path / "out"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(out)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # which programs in the background ignore otherwise
    child = wait_for_child(out, parent)
    assert os.getsid(child) != os.getsid(parent.pid)  # a terminal's Ctrl-C does not reach it
    parent.send_signal(signal.SIGINT)
    _, told = parent.communicate()
    assert b"KeyboardInterrupt" in told
    assert not alive(child)
    assert "interrupted" in (out / "runs/slow/log.txt").read_text()
    assert statuses(read(out))["slow"] == "not asked"
    runs = {"first": run(), "slow": run("hang"), "last": run()}
    assert set(statuses(measure(out, runs)).values()) == {"done"}
    assert [("--resume" in each) for each in attempts(out, "slow")] == [False, True]


def test_two_at_once_in_one_folder_are_refused(tmp_path):
    out = tmp_path / "out"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(out)], cwd=ROOT)
    try:
        wait_for_child(out, parent)
        with pytest.raises(DataError, match=f"used by another run .process {parent.pid}"):
            measure(out, {"a": run()})
    finally:
        parent.kill()
        parent.wait()


def test_a_folder_of_other_things_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"holds other things .thesis.tex."):
        measure(tmp_path, {"a": run()})
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_folder_that_we_did_not_make_is_refused_and_left_alone(tmp_path):
    measure(tmp_path, {"a": run()})
    theirs = tmp_path / "runs/b"
    theirs.mkdir()
    (theirs / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="was not written by freqsgd paper"):
        measure(tmp_path, {"a": run(), "b": run()})
    assert (theirs / "notes.txt").read_text() == "mine"


def test_a_damaged_result_is_measured_again(tmp_path):
    measure(tmp_path, {"a": run()})
    (tmp_path / "runs/a/results.json").write_text('{"schema": 1, "ru')
    assert measure(tmp_path, {"a": run()})["figures"][0]["verdict"] == "agrees"


@pytest.mark.parametrize(
    "content", ['{"kind": "pa', "", "null", '{"kind": "theory"}', "[" * 100_000]
)
def test_a_damaged_document_is_written_anew_from_the_runs(content, tmp_path):
    before = measure(tmp_path, {"a": run()})
    (tmp_path / "paper.json").write_text(content)
    after = measure(tmp_path, {"a": run()})
    assert after["runs"] == before["runs"]
    assert len(attempts(tmp_path, "a")) == 1


def test_unknown_figures_are_refused_with_the_known_ones(tmp_path):
    with pytest.raises(DataError, match=r"no 'fig9': there are all, a, b"):
        measure(tmp_path / "out", {"a": run(), "b": run()}, only=["a", "fig9"])
    assert not (tmp_path / "out").exists()


def test_progress_tells_the_run_its_last_line_and_the_time_left(tmp_path):
    told = []
    runs = {"a": run(usual=10.0), "b": run("hang", usual=30.0, budget=4.0)}
    measure(tmp_path, runs, listener=told.append)
    assert (told[0].run, told[0].number, told[0].count) == ("a", 1, 2)
    assert told[0].share == 0
    assert told[0].seconds_left == 40
    assert "waiting" in {each.said for each in told}
    assert told[-1].share == 1
    assert told[-1].seconds_left == 0
    assert [each.entry.status for each in told if each.entry] == ["done", "out of time"]


def test_a_command_of_freqsgd_is_interrupted_and_gone_on_with(tmp_path):
    way = Way(
        "compare --samples 20000 --dim 4 --optimizers cfsgd --patience 99 --epochs 80", 5, 120
    )
    table = {"runs": {"fm": Run("FM", way, way)}, "figures": [figure("fig", "fm", rules=[TRAINED])]}

    def interrupt(now):
        if "epoch" in now.said:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_paper(tmp_path, **table, listener=interrupt, threads=1)
    log = tmp_path / "runs/fm/log.txt"
    assert "interrupted; the same command with --resume goes on" in log.read_text()
    document = run_paper(tmp_path, **table, threads=1)
    assert document["figures"][0]["rules"][0]["measured"] == "80 epochs"
    assert log.read_text().count("epoch  1 ") == 1
    assert json.loads((tmp_path / "runs/fm/results.json").read_text())["command"] == (
        f"freqsgd {way.command} --threads 1 --out {tmp_path / 'runs/fm'}"
    )


def wait_for_child(out, parent):
    """The number of the stub that the parent waits for."""
    log = out / "runs/slow/log.txt"
    until(lambda: log.exists() and "waiting" in log.read_text())
    children = f"/proc/{parent.pid}/task/{parent.pid}/children"
    with open(children) as file:
        return int(file.read().split()[0])


def until(true, seconds=60.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
