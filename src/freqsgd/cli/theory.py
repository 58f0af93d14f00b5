"""``freqsgd theory``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.table import Table

from freqsgd.cli import options as opt
from freqsgd.cli.options import option, target
from freqsgd.cli.output import grid, screen
from freqsgd.cli.session import present, use_threads
from freqsgd.documents.theory import Theory
from freqsgd.report import write_theory
from freqsgd.theory.settings import Settings

_DEFAULT = Settings()


def theory(
    tail: Annotated[
        str, option("Decay of token frequencies: exponential, polynomial or uniform.")
    ] = _DEFAULT.tail,
    rate: Annotated[
        float | None,
        option("Rate of the decay: tau of exp(-tau n) (default: 0.2), or nu of n^-nu (2)."),
    ] = None,
    users: Annotated[int, option("Number of users, the tokens of one side.")] = _DEFAULT.users,
    items: Annotated[int, option("Number of items, the tokens of the other.")] = _DEFAULT.items,
    dim: Annotated[int, option("Dimension of the vectors.")] = _DEFAULT.dim,
    radius: Annotated[
        float, option("Radius of the ball that rows stay in; L = 1 + radius^2 / 4.")
    ] = _DEFAULT.radius,
    iterations: Annotated[
        int, option("Number of iterations T per repetition.")
    ] = _DEFAULT.iterations,
    repetitions: Annotated[
        int, option("Number of repetitions, each a problem of its own.")
    ] = _DEFAULT.repetitions,
    output: Annotated[
        str, option("Iterate that is measured: random, as in the theorems, or last.")
    ] = _DEFAULT.output,
    seed: Annotated[
        int, option("Random seed for problems, pairs and measured iterates.")
    ] = _DEFAULT.seed,
    threads: opt.Threads = None,
    out: Annotated[Path | None, target("Folder for theory.json, theory.html and pictures.")] = None,
    force: opt.Force = False,
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
    present("theory.json", make, print_theory, write_theory, out, force)


_ROWS = 10  # of users that are shown


def print_theory(theory: Theory) -> None:
    """Print some users with bounds and measurements, then the statements and whether they hold."""
    console = screen(140)
    problem = theory.problem
    rate = "" if problem.rate is None else f" of rate {problem.rate:g}"
    console.print(
        f"\n{problem.tail} frequencies{rate}, {problem.users:,} users x {problem.items:,} "
        f"items; {problem.repetitions:,} repetitions of {problem.iterations:,} iterations, "
        f"{theory.seconds:g} s"
    )
    console.print(_users(theory))
    console.print(
        "\nerror: E||grad f_k||^2, and its part of the bound; x SGD: SGD's error over this one "
        "(by the leading terms of the bounds)\n"
    )
    for check in theory.checks:
        console.print(f"{'holds' if check.holds else 'DOES NOT HOLD'}: {check.statement}")
        console.print(f"    {check.detail}")


def _users(theory: Theory) -> Table:
    from freqsgd.theory.statements import NAMES  # loads the simulation

    runs = {run.optimizer: run for run in theory.runs}
    against = {each.optimizer: each for each in theory.improvements}
    titles = ["user", "p"]
    for name in runs:
        titles += [f"{NAMES[name]} error"] if name == "sgd" else [f"{NAMES[name]}", "x SGD"]
    table = grid(*titles)
    table.columns[0].justify = "right"
    users = theory.tokens.side.count("user")
    for k in np.unique(np.linspace(0, users - 1, _ROWS).round().astype(int)):
        row = [str(theory.tokens.rank[k]), f"{theory.tokens.p[k]:.2g}"]
        for name, run in runs.items():
            part = "" if run.bound is None else f" ({run.measured[k] / run.bound[k]:.1g})"
            row.append(f"{run.measured[k]:.2g}{part}")
            if name != "sgd":
                other = against[name]
                promise = "" if other.bound is None else f" ({other.bound[k]:.2g})"
                row.append(f"{other.measured[k]:.2g}{promise}")
        table.add_row(*row)
    return table
