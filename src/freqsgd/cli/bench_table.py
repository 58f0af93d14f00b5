"""Rates of a machine, on the screen."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["print_bench"]

_NAMES = {
    "cfsgd": "FM, cfsgd",
    "torchrec": "FM, TorchRec's COUNTER_SGD, one process",
    "torch": "FM, torch EmbeddingBag(sparse) + Adagrad",
    "copy": "copying memory",
    "loopback": "gloo all-to-all, two processes over loopback, each",
}


def print_bench(bench: dict[str, Any]) -> None:
    """A line for each rate, against torch's where it has one."""
    console = Console(highlight=False, width=None if Console().is_terminal else 140)
    machine, sizes = bench["machine"], bench["sizes"]
    versions = f"torch {machine['torch']}, TorchRec {machine['torchrec'] or 'not measured'}"
    console.print(
        f"\n{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads; {versions}"
    )
    if machine["torchrec"] is None:
        console.print(machine["no_torchrec"], soft_wrap=True, markup=False)
    console.print(
        f"{sizes['features']} features, batches of {sizes['batch_size']:,}; medians of "
        f"{sizes['rounds']} rounds, {bench['seconds']:.0f} s in all"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("what", "vectors", "table rows", "per second", "spread", "x torch"):
        table.add_column(title, justify="left" if title == "what" else "right", no_wrap=True)
    theirs = {e["dim"]: e["per_second"] for e in bench["rates"] if e["what"] == "torch"}
    for each in bench["rates"]:
        against = theirs.get(each.get("dim"))
        table.add_row(
            _NAMES[each["what"]],
            str(each.get("dim", "")),
            f"{each['table_rows']:,}" if "table_rows" in each else "",
            _speed(each["per_second"], each["unit"]),
            f"{each['slowest'] / each['per_second']:.2f} to "
            f"{each['fastest'] / each['per_second']:.2f}",
            "" if against is None else f"{each['per_second'] / against:.1f}",
        )
    console.print(table)
    if bench["quick"]:
        console.print("quick: tables this small fit the cache, so these rates are too high")


def _speed(value: float, unit: str) -> str:
    return f"{value / 1e9:.2f} GB" if unit == "bytes" else f"{value / 1e6:.2f} M rows"
