"""What a simulation came to, in the terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

__all__ = ["print_theory"]

_ROWS = 10  # of users that are shown


def print_theory(document: dict[str, Any]) -> None:
    """Some users with bounds and measurements, then every statement and whether it holds."""
    console = Console(highlight=False, width=None if Console().is_terminal else 140)
    problem = document["problem"]
    rate = "" if problem["rate"] is None else f" of rate {problem['rate']:g}"
    console.print(
        f"\n{problem['tail']} frequencies{rate}, {problem['users']:,} users x {problem['items']:,} "
        f"items; {problem['repetitions']:,} repetitions of {problem['iterations']:,} iterations, "
        f"{document['seconds']:g} s"
    )
    console.print(_users(document))
    console.print(
        "\nerror: E||grad f_k||^2, and its part of the bound; x SGD: SGD's error over this one "
        "(by the leading terms of the bounds)\n"
    )
    for check in document["checks"]:
        console.print(f"{'holds' if check['holds'] else 'DOES NOT HOLD'}: {check['statement']}")
        console.print(f"    {check['detail']}")


def _users(document: dict[str, Any]) -> Table:
    from freqsgd.theory.statements import NAMES  # loads the simulation

    runs = {run["optimizer"]: run for run in document["runs"]}
    against = {each["optimizer"]: each for each in document["improvements"]}
    table = Table(box=None, pad_edge=False, header_style="bold")
    titles = ["user", "p"]
    for name in runs:
        titles += [f"{NAMES[name]} error"] if name == "sgd" else [f"{NAMES[name]}", "x SGD"]
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    users = document["problem"]["users"]
    for k in np.unique(np.linspace(0, users - 1, _ROWS).round().astype(int)):
        row = [str(document["tokens"]["rank"][k]), f"{document['tokens']['p'][k]:.2g}"]
        for name, run in runs.items():
            row.append(_error(run, k))
            if name != "sgd":
                row.append(_improvement(against[name], k))
        table.add_row(*row)
    return table


def _error(run: dict[str, Any], k: int) -> str:
    measured = run["measured"][k]
    part = "" if run["bound"] is None else f" ({measured / run['bound'][k]:.1g})"
    return f"{measured:.2g}{part}"


def _improvement(improvement: dict[str, Any], k: int) -> str:
    promised = f" ({improvement['bound'][k]:.2g})" if "bound" in improvement else ""
    return f"{improvement['measured'][k]:.2g}{promised}"
