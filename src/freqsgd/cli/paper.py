"""``freqsgd paper``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.options import words
from freqsgd.cli.paper_progress import PaperWatcher
from freqsgd.cli.paper_table import print_paper
from freqsgd.cli.progress import console
from freqsgd.cli.session import command_line
from freqsgd.cli.targets import target
from freqsgd.cli.threads import use_threads
from freqsgd.errors import DataError
from freqsgd.paper.experiments import FIGURES
from freqsgd.recommender.settings import Settings
from freqsgd.report import write_paper

__all__ = ["paper"]


def paper(
    only: Annotated[
        str, typer.Option(help=f"Some of {', '.join(each.name for each in FIGURES)}, or all.")
    ] = "all",
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's sizes: hours instead of minutes.")
    ] = False,
    out: Annotated[
        Path, target("Folder for paper.json, paper.html, pictures and all runs.")
    ] = Path("paper"),
    threads: Annotated[int | None, typer.Option(help="Of each run.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of each run (default: that of its command).")
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
    if seed is not None:
        try:
            Settings(seed=seed)  # which every run would refuse, one after the other
        except ValueError as error:
            raise DataError(f"--{error}") from error
    use_threads(threads)
    try:
        with PaperWatcher() as watcher:
            document = run_paper(
                out,
                only=names,
                full=full,
                threads=threads,
                seed=seed,
                command=command_line(),
                listener=watcher.watch,
            )
    except KeyboardInterrupt:
        console.print("\ninterrupted; the same command goes on from here")
        raise typer.Exit(130) from None
    page = write_paper(document, out)
    print_paper(document, [figure.name for figure in asked])
    print(f"\nreport: {page}")
    wanted = {name for figure in asked for name in figure.runs}
    if any(document["runs"][name]["status"] == "failed" for name in wanted):
        raise typer.Exit(2)
