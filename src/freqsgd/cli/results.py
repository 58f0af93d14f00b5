"""The final table."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from freqsgd.cli.wording import count_of, number
from freqsgd.documents.results import Dataset, Epoch, Model, Similarity
from freqsgd.report.one_pass import OnePass, edge_words, read_one_pass
from freqsgd.report.results import Results, Run, read_results

__all__ = ["print_results"]

_Row = dict[str, str]


def print_results(results: dict[str, Any]) -> None:
    """What was trained, and how each optimizer did."""
    console = Console(highlight=False, width=None if Console().is_terminal else 140)
    if results.get("one_pass") is True:
        _print_one_pass(read_one_pass(results), console)
        return
    found = read_results(results)
    text = found.dataset.kind == "text"
    about, row = (_about_text, _of_text) if text else (_about_samples, _of_samples)
    console.print(f"\n{about(found.dataset, found.model)}")
    if (limit := found.best_possible.get("val_auc")) is not None:
        console.print(f"best validation AUC that any model could reach: {limit:.4f}")
    console.print(_table([row(run) for run in found.runs], console.width))
    for run in found.runs:
        if run.error is not None:
            console.print(f"{run.optimizer}: {run.error}")
        elif run.still_learning:
            console.print(
                f"{run.optimizer}*: ended by patience while its training and validation losses "
                "still fell; with a larger --patience it may become better",
                soft_wrap=True,
            )


def _print_one_pass(found: OnePass, console: Console) -> None:
    """What was streamed, how each optimizer did, and what was left out."""
    console.print(f"\n{_about_stream(found.results)}", markup=False)
    console.print(_table([_of_stream(run, found) for run in found.runs], console.width))
    names = {"train_ne": "train NE", "test_ne": "eval NE", "test_auc": "eval AUC"}
    limits = found.results.best_possible
    best = [f"{name} {_ne(limits[key])}" for key, name in names.items() if key in limits]
    if best:
        console.print(f"best that any model could reach: {', '.join(best)}")
    for run in found.runs:
        if run.error is not None:
            console.print(f"{run.optimizer} diverged: {run.error}", markup=False)
        elif run.search_edge:
            name = run.optimizer
            console.print(
                f"{name}: the best rate is {edge_words(run)}, of those tried; a better one may lie "
                f"beyond it (--lr {name}=RATE)",
                markup=False,
            )
    for file in found.skipped:
        console.print(f"left out: {file}", markup=False)


def _about_stream(results: Results) -> str:
    dataset, model, splits = results.dataset, results.model, results.splits
    return (
        f"{dataset.name}: {count_of(len(dataset.days), 'day')}, {splits['train']:,.0f} examples "
        f"learned once, {splits.get('test', 0):,.0f} for evaluation, "
        f"{count_of(dataset.fields or 0, 'field')}, {dataset.tokens:,} rows; "
        f"{model.name} of dimension {model.dim}"
    )


def _about_samples(dataset: Dataset, model: Model) -> str:
    return (
        f"{dataset.name}: {dataset.rows:,} rows, {dataset.fields} fields, "
        f"{dataset.tokens:,} tokens; {model.name} of dimension {model.dim}"
    )


def _about_text(dataset: Dataset, model: Model) -> str:
    return (
        f"{dataset.name}: {dataset.words:,} of {dataset.raw_words:,} words, "
        f"{dataset.tokens:,} different; {model.name} of dimension {model.dim}, "
        f"loss {model.loss}"
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


def _of_samples(run: Run) -> _Row:
    best = _best(run)
    return {
        "optimizer": run.optimizer + ("*" if run.still_learning else ""),
        "lr": f"{run.lr:g}",
        "best val AUC": number(run.best_val_auc),
        "epoch": str(run.best_epoch or "-"),
        "seconds": f"{best.seconds:.1f}" if best else "-",
        "test AUC": number(run.test_auc),
        "test loss": number(run.test_loss),
        "tail AUC": number(run.test_auc_by_frequency.get("tail")),
        "state MB": _megabytes(run),
        "samples/s": _speed(run.samples_per_second),
    }


def _of_text(run: Run) -> _Row:
    best, nothing = _best(run), Similarity()
    return {
        "optimizer": run.optimizer,
        "lr": f"{run.lr:g}",
        "epoch": str(run.best_epoch or "-"),
        "train loss": number(best.train_loss if best else None),
        "val loss": number(run.best_val_loss),
        "test loss": number(run.test_loss),
        "tail loss": number(run.test_loss_by_frequency.get("tail")),
        "WordSim": number(run.similarity.get("wordsim353", nothing).spearman),
        "SimLex": number(run.similarity.get("simlex999", nothing).spearman),
        "words/s": _speed(run.words_per_second),
        "state MB": _megabytes(run),
    }


def _of_stream(run: Run, found: OnePass) -> _Row:
    base, apart = found.baseline, found.difference(run)
    against = {} if base is None else {f"vs {base.optimizer}": _percent(apart)}
    return {
        "optimizer": run.optimizer,
        "lr": "-" if run.lr is None else f"{run.lr:g}",
        "train NE": _ne(run.train_ne),
        "eval NE": _ne(run.test_ne),
        **against,
        "eval AUC": number(run.test_auc),
        "calibration": number(run.test_calibration),
        "state MB": _megabytes(run),
        "examples/s": _speed(run.speed),
    }


def _ne(value: float | None) -> str:
    return "-" if value is None else f"{value:.5f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}%"


def _best(run: Run) -> Epoch | None:
    """The epoch whose weights were kept."""
    return run.epochs[run.best_epoch - 1] if run.best_epoch else None


def _megabytes(run: Run) -> str:
    return "-" if run.state_bytes is None else f"{run.state_bytes / 1e6:.3f}"


def _speed(value: float | None) -> str:
    return f"{value:,.0f}" if value else "-"
