"""Run benchmarks, print one table of their figures, and write docs/benchmarks.md.

    python -m benchmarks [NAME ...] [--runs 3]
    python -m benchmarks --page

Without names all that docs/benchmarks.md marks with * are run, on a machine that does nothing else.
Figures are kept in benchmarks/figures.json: the median of the runs, their range and the date; those
that a run does not measure stay as they are. The page is benchmarks/page.md with these filled in.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.figures import VARIABLE, told

FOLDER = Path(__file__).parent
DATA, TEMPLATE = FOLDER / "figures.json", FOLDER / "page.md"
PAGE = FOLDER.parent / "docs" / "benchmarks.md"
# In this order; zoo has results of its own.
ALL = [
    "optimizer_step",
    "state_memory",
    "table_size",
    "fm",
    "predict",
    "preprocess",
    "inspection",
    "clicks",
    "one_pass",
    "table_rows",
    "word2vec",
    "torchrec_adapter",
]

Figures = dict[str, list[dict[str, Any]]]  # by benchmark


def measure(name: str, runs: int) -> list[dict[str, Any]]:
    """Run a benchmark and return its figures."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures"
        for _ in range(runs):
            print(f"\n{command(name)}", flush=True)
            program = [sys.executable, "-m", f"benchmarks.{name}"]
            subprocess.run(program, env={**os.environ, VARIABLE: str(path)}, check=True)
        for line in map(json.loads, path.read_text("utf-8").splitlines()):
            found.setdefault(line["claim"], {"unit": line["unit"], "values": []})
            found[line["claim"]]["values"].append(line["value"])
    return [
        {
            "claim": claim,
            "value": statistics.median(values := each["values"]),
            "range": [min(values), max(values)] if len(values) > 1 else None,
            "unit": each["unit"],
            "measured": date.today().isoformat(),
        }
        for claim, each in found.items()
    ]


def merge(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the old figures, those that were measured again replaced, and then the others."""
    fresh = {each["claim"]: each for each in new}
    kept = [fresh.pop(each["claim"], each) for each in old]
    return [*kept, *fresh.values()]


def command(name: str) -> str:
    return f"python -m benchmarks.{name}"


def table(figures: Figures, names: list[str]) -> str:
    """Return the figures of some benchmarks as a table in Markdown."""
    lines = ["| claim | measured | range | date | command |", "| --- | --- | --- | --- | --- |"]
    for name in names:
        for each in figures[name]:
            measured = "" if each["value"] is None else told(each["value"], each["unit"])
            spread = " to ".join(told(end, each["unit"]) for end in each["range"] or ())
            cells = [each["claim"], measured.strip(), spread.strip(), each["measured"]]
            marked = f"`{command(name)}`{' *' if name in ALL else ''}"
            lines.append(f"| {' | '.join([*cells, marked])} |")
    return "\n".join(lines)


def page(figures: Figures) -> str:
    """Return the page: the template with a table for each ``<!-- figures NAME ... -->``."""
    return re.sub(
        r"<!-- figures (.+?) -->",
        lambda found: table(figures, found[1].split()),
        TEMPLATE.read_text("utf-8"),
    )


def text(figures: Figures) -> str:
    """Return the figures as JSON, a line each."""
    groups = []
    for name, some in figures.items():
        lines = ",\n".join(f"  {json.dumps(each)}" for each in some)
        groups.append(f' "{name}": [\n{lines}\n ]')
    return "{\n" + ",\n".join(groups) + "\n}\n"


def read() -> Figures:
    figures: Figures = json.loads(DATA.read_text("utf-8"))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser("benchmarks", description=__doc__.splitlines()[0])
    figures = read()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(figures))
    parser.add_argument("--runs", type=int, default=1, help="of each benchmark")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if unknown := set(options.names) - set(figures):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}")
    names = [] if options.page else options.names or ALL
    for name in names:
        figures[name] = merge(figures[name], measure(name, options.runs))
        DATA.write_text(text(figures), "utf-8")
    PAGE.write_text(page(figures), "utf-8")
    if names:
        print("\n" + table(figures, names))


if __name__ == "__main__":
    main()
