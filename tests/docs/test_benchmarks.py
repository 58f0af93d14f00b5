"""The page of benchmarks is what ``python -m benchmarks`` makes of the stored figures."""

from __future__ import annotations

import json

from benchmarks import __main__ as benchmarks
from benchmarks.figures import figure
from tests.docs.pages import DOCS


def test_the_page_holds_the_stored_figures():
    figures = benchmarks.read()
    page = (DOCS / "benchmarks.md").read_text("utf-8")
    assert page == benchmarks.page(figures)
    for name, some in figures.items():
        for each in some:
            start = f"| {each['claim']} |"
            rows = [row for row in page.splitlines() if row.startswith(start) and name in row]
            assert len(rows) == 1


def test_a_run_replaces_what_it_measures_and_keeps_the_rest(tmp_path, monkeypatch, capsys):
    def run(command, env, check):
        monkeypatch.setenv("FREQSGD_FIGURES", env["FREQSGD_FIGURES"])
        figure("steps", values.pop(), "ms")

    values = [3.0, 1250.0, 1.5]
    monkeypatch.setattr(benchmarks.subprocess, "run", run)
    found = benchmarks.measure("fm", 3)
    assert "steps: 1,250 ms" in capsys.readouterr().out
    old = [{"claim": "rows"}, {"claim": "steps", "value": 7.0}]
    rows, steps = benchmarks.merge(old, found)
    assert rows == {"claim": "rows"}
    assert (steps["value"], steps["range"], steps["unit"]) == (3.0, [1.5, 1250.0], "ms")
    assert "| steps | 3 ms | 1.5 ms to 1,250 ms |" in benchmarks.table({"fm": [steps]}, ["fm"])


def test_data_are_written_as_they_are_read():
    figures = benchmarks.read()
    assert json.loads(benchmarks.text(figures)) == figures


def test_without_a_runner_figures_are_only_printed(monkeypatch, capsys):
    monkeypatch.delenv("FREQSGD_FIGURES", raising=False)
    figure("FM: cfsgd / torch", 13.456)
    assert capsys.readouterr().out == "FM: cfsgd / torch: 13.5 x\n"
