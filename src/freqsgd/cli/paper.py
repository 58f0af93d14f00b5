"""``freqsgd paper``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.table import Column, Table
from rich.text import Text

from freqsgd.cli import options as opt
from freqsgd.cli.options import option, target, words
from freqsgd.cli.progress import Screen, console
from freqsgd.cli.session import command_line, interruptible, use_threads
from freqsgd.documents import read_document
from freqsgd.documents.paper import PaperFigure, PaperRun, PaperSummary
from freqsgd.errors import DataError
from freqsgd.paper.experiments import FIGURES
from freqsgd.report import write_paper
from freqsgd.report.wording import duration

if TYPE_CHECKING:
    from freqsgd.paper.running import PaperProgress


def paper(
    only: Annotated[
        str, option(f"Figures to measure, a,b,c, of {', '.join(each.name for each in FIGURES)}.")
    ] = "all",
    full: Annotated[
        bool, option("Run the paper's sizes, for hours instead of minutes.", "--full/--quick")
    ] = False,
    out: Annotated[
        Path, target("Folder for paper.json, paper.html, pictures and all runs.")
    ] = Path("paper"),
    threads: opt.Threads = None,
    seed: Annotated[
        int | None,
        option("Random seed of each run (default: that of its command).", min=0, max=2**31 - 1),
    ] = None,
) -> None:
    """Measure every figure and table of the paper here, and hold it against what the paper says.

    Example: freqsgd paper --only fig2,memory --out paper

    What is there already is not run again: the same command goes on after Ctrl-C.
    """
    from freqsgd.paper.running import chosen_figures, run_paper

    names = words(only)
    if not names:
        raise DataError("--only names no figure")
    asked = chosen_figures(names)
    use_threads(threads)
    told = "interrupted; the same command goes on from here"
    with interruptible(told), PaperWatcher() as watcher:
        document = run_paper(
            out,
            only=names,
            full=full,
            threads=threads,
            seed=seed,
            command=command_line(),
            listener=watcher.watch,
        )
    page = write_paper(document, out)
    print_paper(document, [figure.name for figure in asked])
    print(f"\nreport: {page}")
    wanted = {name for figure in asked for name in figure.runs}
    if any(document["runs"][name]["status"] == "failed" for name in wanted):
        raise typer.Exit(2)


_DATA = {"real": "real", "stand-in": "generated", "none": "missing", "simulated": "simulated"}
_STYLES = {"agrees": "green", "agrees in part": "yellow", "differs": "red"}
_WIDE = 110  # columns that a table needs; below, figures are listed one by one
_INDENT = 10


def print_paper(document: Mapping[str, Any], names: Iterable[str]) -> None:
    """Print a row per figure that was asked for, then the runs that did not come to their end."""
    console = Console(highlight=False, width=None if Console().is_terminal else 120)
    asked = set(names)
    paper = read_document(document, PaperSummary, "paper.json")
    figures = [figure for figure in paper.figures if figure.name in asked]
    console.print()
    if console.width >= _WIDE:
        console.print(_table(figures))
    else:
        for figure in figures:
            _stack(figure, console)
    wanted = dict.fromkeys(run for figure in figures for run in figure.runs)
    _print_troubles({name: paper.runs[name] for name in wanted}, console)


def _table(figures: Sequence[PaperFigure]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), expand=True)
    table.add_column("figure", width=13)
    table.add_column("the paper says", ratio=3)
    table.add_column("measured", ratio=5)
    table.add_column("verdict", width=14)
    table.add_column("data", width=9)
    for figure in figures:
        table.add_row(
            figure.name,
            Text(figure.brief),
            Text(_measured(figure)),
            Text(figure.verdict, _STYLES.get(figure.verdict, "dim")),
            _DATA[figure.data],
        )
    return table


def _stack(figure: PaperFigure, console: Console) -> None:
    """Print a figure on lines of its own."""
    verdict, data = figure.verdict, _DATA[figure.data]
    head = Text(f"{figure.name:<{_INDENT}} ", "bold")
    head.append(verdict, _STYLES.get(verdict, "dim"))
    head.append(f" ({data} data)")
    console.print(head)
    for topic, text in (("paper", figure.brief), ("measured", _measured(figure))):
        first, rest = f"  {topic:<{_INDENT - 1}}", " " * (_INDENT + 1)
        filled = textwrap.fill(text, console.width, initial_indent=first, subsequent_indent=rest)
        console.print(Text(filled))


def _measured(figure: PaperFigure) -> str:
    """Say how many rules hold, and what was measured for the first that does not."""
    rules = figure.rules
    known = [rule for rule in rules if rule.holds is not None]
    if not known:
        return "-"
    failed = [rule for rule in known if not rule.holds]
    shown = (failed or known)[0]
    where = f"{shown.run}: " if len(figure.runs) > 1 else ""
    text = f"{where}{shown.measured}"
    if len(rules) == 1:
        return text
    held = f"{len(known) - len(failed)} of {len(rules)} rules hold"
    return f"{held}; {'against it: ' if failed else ''}{text}"


def _print_troubles(runs: Mapping[str, PaperRun], console: Console) -> None:
    """Print runs without results, and why; a reason that several share is printed once."""
    reasons: dict[str, list[str]] = {}
    for name, run in runs.items():
        if run.why:
            state = "generated data" if run.status == "done" else run.status
            reasons.setdefault(f"{state}: {run.why}", []).append(name)
    if reasons:
        console.print()
    for reason, names in reasons.items():
        console.print(Text(f"{', '.join(names)}: {reason}"), soft_wrap=True)


class PaperWatcher(Screen):
    """A line with the current run, what it said last, and how long the rest will take."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("{task.fields[run]}", markup=False),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[left]}", markup=False),
            TextColumn(
                "{task.fields[said]}",
                markup=False,
                style="dim",
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            expand=True,
        )
        self._task = self._bars.add_task("", total=1.0, run="", left="", said="")
        self._begun = 0

    def watch(self, progress: PaperProgress) -> None:
        """Show what :func:`freqsgd.paper.running.run_paper` reports."""
        place = f"{progress.number:2}/{progress.count}"
        left = f"{duration(progress.seconds_left)} left"
        self._bars.update(
            self._task,
            completed=progress.share,
            run=f"{place} {progress.run}",
            left=left,
            said=progress.said,
        )
        if progress.entry is not None:
            self._say(f"{place} {progress.run:<19}{_ending(progress)}")
        elif progress.number > self._begun and not console.is_terminal:
            self._begun = progress.number
            self._say(f"{place} {progress.run:<19}{progress.title}; {left}")

    def _say(self, line: str) -> None:
        console.print(Text(line), soft_wrap=True)


def _ending(progress: PaperProgress) -> str:
    entry = progress.entry or PaperRun()
    if progress.cached:
        return "there already"
    ended = f"{entry.status}, {duration(entry.seconds or 0.0)}"
    if entry.stand_in:
        ended += ", on generated data"
    return ended if entry.status == "done" else f"{ended}: {entry.why}"
