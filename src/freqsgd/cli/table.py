"""The final table."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from freqsgd.cli.numbers import count_of, number
from freqsgd.report.one_pass import OnePass, Streamed, read_one_pass
from freqsgd.report.one_pass_background import edge_words

__all__ = ["print_results"]

_Row = dict[str, str]


def print_results(results: dict[str, Any]) -> None:
    """What was trained, and how each optimizer did."""
    console = Console(highlight=False, width=None if Console().is_terminal else 140)
    if results.get("one_pass") is True:
        _print_one_pass(results, console)
        return
    text = results["dataset"].get("kind") == "text"
    about, row = (_about_text, _of_text) if text else (_about_samples, _of_samples)
    console.print(f"\n{about(results['dataset'], results['model'])}")
    if "best_possible" in results:
        best_possible = results["best_possible"]["val_auc"]
        console.print(f"best validation AUC that any model could reach: {best_possible:.4f}")
    console.print(_table([row(run) for run in results["runs"]], console.width))
    for run in results["runs"]:
        if "error" in run:
            console.print(f"{run['optimizer']}: {run['error']}")
        elif run.get("still_learning"):
            console.print(
                f"{run['optimizer']}*: ended by patience while its training and validation losses "
                "still fell; with a larger --patience it may become better",
                soft_wrap=True,
            )


def _print_one_pass(results: dict[str, Any], console: Console) -> None:
    """What was streamed, how each optimizer did, and what was left out."""
    found = read_one_pass(results)
    console.print(f"\n{_about_stream(results)}", markup=False)
    console.print(_table([_of_stream(run, found) for run in found.runs], console.width))
    names = {"train_ne": "train NE", "test_ne": "eval NE", "test_auc": "eval AUC"}
    limits = found.results.best_possible
    best = [f"{name} {_ne(limits[key])}" for key, name in names.items() if key in limits]
    if best:
        console.print(f"best that any model could reach: {', '.join(best)}")
    for run in found.runs:
        if run.run.error is not None:
            console.print(f"{run.run.optimizer} diverged: {run.run.error}", markup=False)
        elif run.at_edge:
            name = run.run.optimizer
            console.print(
                f"{name}: the best rate is {edge_words(run)}, of those tried; a better one may lie "
                f"beyond it (--lr {name}=RATE)",
                markup=False,
            )
    for file in found.skipped:
        console.print(f"left out: {file}", markup=False)


def _about_stream(results: dict[str, Any]) -> str:
    dataset, model, splits = results["dataset"], results["model"], results["splits"]
    return (
        f"{dataset['name']}: {count_of(len(dataset['days']), 'day')}, {splits['train']:,} examples "
        f"learned once, {splits['test'] or 0:,} for evaluation, "
        f"{count_of(dataset['fields'], 'field')}, {dataset['tokens']:,} rows; "
        f"{model['name']} of dimension {model['dim']}"
    )


def _about_samples(dataset: dict[str, Any], model: dict[str, Any]) -> str:
    return (
        f"{dataset['name']}: {dataset['rows']:,} rows, {dataset['fields']} fields, "
        f"{dataset['tokens']:,} tokens; {model['name']} of dimension {model['dim']}"
    )


def _about_text(dataset: dict[str, Any], model: dict[str, Any]) -> str:
    return (
        f"{dataset['name']}: {dataset['words']:,} of {dataset['raw_words']:,} words, "
        f"{dataset['tokens']:,} different; {model['name']} of dimension {model['dim']}, "
        f"loss {model['loss']}"
    )


def _table(rows: list[_Row], width: int) -> Table:
    """A line per optimizer; a column per optimizer where lines would be too long."""
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    columns = list(zip(*lines, strict=True))
    if sum(max(map(len, column)) + 2 for column in columns) - 2 > width:
        lines = [list(column) for column in columns]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(lines[0]):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)
    for line in lines[1:]:
        table.add_row(*line)
    return table


def _of_samples(run: dict[str, Any]) -> _Row:
    best = _best(run)
    return {
        "optimizer": run["optimizer"] + ("*" if run.get("still_learning") else ""),
        "lr": f"{run['lr']:g}",
        "best val AUC": number(run["best_val_auc"]),
        "epoch": str(run["best_epoch"] or "-"),
        "seconds": f"{best['seconds']:.1f}" if best else "-",
        "test AUC": number(run["test_auc"]),
        "test loss": number(run["test_loss"]),
        "tail AUC": number(run["test_auc_by_frequency"]["tail"]),
        "state MB": f"{run['state_bytes'] / 1e6:.3f}",
        "samples/s": _speed(run["samples_per_second"]),
    }


def _of_text(run: dict[str, Any]) -> _Row:
    similarity = run["similarity"]
    return {
        "optimizer": run["optimizer"],
        "lr": f"{run['lr']:g}",
        "epoch": str(run["best_epoch"] or "-"),
        "train loss": number(_best(run).get("train_loss")),
        "val loss": number(run["best_val_loss"]),
        "test loss": number(run["test_loss"]),
        "tail loss": number(run["test_loss_by_frequency"]["tail"]),
        "WordSim": number(similarity.get("wordsim353", {}).get("spearman")),
        "SimLex": number(similarity.get("simlex999", {}).get("spearman")),
        "words/s": _speed(run["words_per_second"]),
        "state MB": f"{run['state_bytes'] / 1e6:.3f}",
    }


def _of_stream(run: Streamed, found: OnePass) -> _Row:
    base, apart = found.baseline, found.difference(run)
    against = {} if base is None else {f"vs {base.run.optimizer}": _percent(apart)}
    state = run.run.state_bytes
    return {
        "optimizer": run.run.optimizer,
        "lr": f"{run.run.settings['lr']:g}" if "lr" in run.run.settings else "-",
        "train NE": _ne(run.train.ne),
        "eval NE": _ne(run.test.ne),
        **against,
        "eval AUC": number(run.test.auc),
        "calibration": number(run.test.calibration),
        "state MB": "-" if state is None else f"{state / 1e6:.3f}",
        "examples/s": _speed(run.run.speed),
    }


def _ne(value: float | None) -> str:
    return "-" if value is None else f"{value:.5f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}%"


def _best(run: dict[str, Any]) -> dict[str, Any]:
    """The epoch whose weights were kept; empty if there is none."""
    epoch: dict[str, Any] = run["epochs"][run["best_epoch"] - 1] if run["best_epoch"] else {}
    return epoch


def _speed(value: float | None) -> str:
    return f"{value:,.0f}" if value else "-"
