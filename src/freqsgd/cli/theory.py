"""``freqsgd theory``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.document import present
from freqsgd.cli.targets import target
from freqsgd.cli.theory_table import print_theory
from freqsgd.cli.threads import use_threads
from freqsgd.report import write_theory
from freqsgd.theory.settings import Settings

__all__ = ["theory"]

_DEFAULT = Settings()


def theory(
    tail: Annotated[
        str, typer.Option(help="Of the tokens' frequencies: exponential, polynomial or uniform.")
    ] = _DEFAULT.tail,
    rate: Annotated[
        float | None,
        typer.Option(help="tau of exp(-tau n) (default 0.2), or nu of n^-nu (default 2)."),
    ] = None,
    users: Annotated[int, typer.Option(help="Tokens of one side.")] = _DEFAULT.users,
    items: Annotated[int, typer.Option(help="Tokens of the other.")] = _DEFAULT.items,
    dim: Annotated[int, typer.Option(help="Size of the vectors.")] = _DEFAULT.dim,
    radius: Annotated[
        float, typer.Option(help="Of the ball that rows must not leave; L = 1 + radius^2 / 4.")
    ] = _DEFAULT.radius,
    iterations: Annotated[int, typer.Option(help="T, of a repetition.")] = _DEFAULT.iterations,
    repetitions: Annotated[
        int, typer.Option(help="Each a problem of its own.")
    ] = _DEFAULT.repetitions,
    output: Annotated[
        str,
        typer.Option(help="The iterate looked at: random, as the theorems say, or last."),
    ] = _DEFAULT.output,
    seed: Annotated[int, typer.Option(help="Of problems, pairs and outputs.")] = _DEFAULT.seed,
    threads: Annotated[int | None, typer.Option(help="Of the kernel.")] = None,
    out: Annotated[Path | None, target("Folder for theory.json, theory.html and pictures.")] = None,
) -> None:
    """Check the paper's theorems by simulation: bound and measurement for every token.

    Example: freqsgd theory --tail polynomial --out theory
    """
    from freqsgd.theory.experiment import run

    settings = Settings(
        tail, rate, users, items, dim, radius, iterations, repetitions, output, seed
    )
    settings.check()
    use_threads(threads)
    make = partial(run, settings, threads=threads)
    present("theory.json", make, print_theory, write_theory, out)
