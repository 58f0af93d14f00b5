"""A tiny table of experiments, done by a stub."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import tests
from freqsgd.paper.experiments import Figure, Run, Way
from freqsgd.paper.rules import Finding, Rule
from freqsgd.paper.running import run_paper

PROGRAM = (sys.executable, "-m", "tests.paper.stub")
ROOT = Path(tests.__file__).parents[1]
WHOLE = Rule(
    "it is whole", lambda results: Finding(results.runs[0].stopped == "at its end", "looked")
)
SEEN = Rule(
    "it is there", lambda results: Finding(True, f"{results.runs[0].examples:.0f} attempts")
)


def run(what="ok", *, budget=30.0, data=None, stand_in=None, command="compare", usual=1.0):
    way = Way(f"{command} --do {what}", usual, budget, "smaller")
    full = Way(f"{command} --do {what} --epochs 20", usual, budget)
    other = None if stand_in is None else Way(f"{command} --do {stand_in}", usual, budget)
    return Run(f"{what} run", way, full, data, other)


def figure(name, *runs, private="", rules=(WHOLE, SEEN)):
    asked = tuple((each, rule) for each in runs for rule in rules)
    return Figure(name, name.upper(), f"title of {name}", "brief", "claim", asked, private)


def measure(out, runs, figures=None, **options):
    """Run a table; by default one figure per run, of its name."""
    figures = figures or [figure(name, name) for name in runs]
    return run_paper(Path(out), runs=runs, figures=figures, program=PROGRAM, **options)


def attempts(out, name, file="results.json"):
    """The commands that were given for a run's folder, since it was made."""
    import json

    return json.loads((Path(out) / "runs" / name / "checkpoint").read_text())


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
