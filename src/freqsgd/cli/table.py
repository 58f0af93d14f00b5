"""The final table."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["print_results"]


def print_results(results: dict[str, Any]) -> None:
    """One line per optimizer."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (
        *("optimizer", "lr", "best val AUC", "epoch", "seconds"),
        *("test AUC", "test loss", "tail AUC", "state MB", "samples/s"),
    ):
        table.add_column(name, justify="left" if name == "optimizer" else "right", no_wrap=True)
    for run in results["runs"]:
        best = run["epochs"][run["best_epoch"] - 1] if run["best_epoch"] else None
        table.add_row(
            run["optimizer"],
            f"{run['lr']:g}",
            _number(run["best_val_auc"]),
            str(run["best_epoch"] or "-"),
            f"{best['seconds']:.1f}" if best else "-",
            _number(run["test_auc"]),
            _number(run["test_loss"]),
            _number(run["test_auc_by_frequency"]["tail"]),
            f"{run['state_bytes'] / 1e6:.3f}",
            f"{run['samples_per_second']:,.0f}" if run["samples_per_second"] else "-",
        )
    console = Console(highlight=False, width=None if Console().is_terminal else 140)
    dataset, model = results["dataset"], results["model"]
    console.print(
        f"\n{dataset['name']}: {dataset['rows']:,} rows, {dataset['fields']} fields, "
        f"{dataset['tokens']:,} tokens; {model['name']} of dimension {model['dim']}"
    )
    if "best_possible" in results:
        best_possible = results["best_possible"]["val_auc"]
        console.print(f"best validation AUC that any model could reach: {best_possible:.4f}")
    console.print(table)
    for run in results["runs"]:
        if "error" in run:
            console.print(f"{run['optimizer']}: {run['error']}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
