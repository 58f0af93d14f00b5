"""The table of results that ends a training command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from freqsgd.cli.output import grid, number, screen
from freqsgd.documents.results import Epoch, Similarity
from freqsgd.report.one_pass import OnePass, read_one_pass
from freqsgd.report.results import Results, Run, read_results
from freqsgd.report.wording import count_of, enumerate_words

_Column = Callable[[Run], str]


def print_results(document: Mapping[str, Any]) -> None:
    """Print what was trained, how each optimizer did, and what went wrong."""
    console = screen(140)
    if document.get("one_pass") is True:
        _print_one_pass(read_one_pass(document), console)
        return
    found = read_results(document)
    about, columns = _text(found) if found.dataset.kind == "text" else _samples(found)
    console.print(f"\n{found.dataset.name}: {about}", markup=False)
    if (limit := found.best_possible.get("val_auc")) is not None:
        console.print(f"best validation AUC that any model could reach: {limit:.4f}")
    console.print(table(columns, found.runs, console.width))
    for run in found.runs:
        if run.error is not None:
            console.print(f"{run.optimizer}: {run.error}", markup=False)
    if learning := [f"{run.optimizer}*" for run in found.runs if run.still_learning]:
        its, it = ("its", "it") if len(learning) == 1 else ("their", "they")
        console.print(
            f"{enumerate_words(learning)}: ended by patience while {its} training and validation "
            f"losses still fell; with a larger --patience {it} may become better",
            markup=False,
            soft_wrap=True,
        )
    for study in found.tuning.studies if found.tuning else ():
        rates = [one.lr for one in study.lr_sweep]
        lr = study.best and study.best.lr
        if lr is not None and len(rates) > 1 and lr in (min(rates), max(rates)):
            _print_edge(console, study.optimizer, lr, rates)


def _print_edge(
    console: Console, optimizer: str, lr: float, rates: Sequence[float], advice: str = ""
) -> None:
    """Say that the best rate is the smallest or the largest of those tried."""
    end = "smallest" if lr == min(rates) else "largest"
    console.print(
        f"{optimizer}: the best rate is the {end}, {lr:.3g}, of those tried; a better one may lie "
        f"beyond it{advice}",
        markup=False,
        soft_wrap=True,
    )


def table(columns: Mapping[str, _Column], runs: Sequence[Run], width: int) -> Table:
    """Return a line per optimizer; a column per optimizer where lines would be too long."""
    lines = [list(columns), *([show(run) for show in columns.values()] for run in runs)]
    turned = [list(column) for column in zip(*lines, strict=True)]
    if sum(max(map(len, column)) + 2 for column in turned) - 2 > width:
        lines = turned
    found = grid(*lines[0])
    for line in lines[1:]:
        found.add_row(*line)
    return found


def _samples(results: Results) -> tuple[str, dict[str, _Column]]:
    dataset, model = results.dataset, results.model
    about = (
        f"{dataset.rows:,} rows, {dataset.fields} fields, {dataset.tokens:,} tokens; {model.name} "
        f"of dimension {model.dim}"
    )
    return about, {
        "optimizer": lambda run: run.optimizer + ("*" if run.still_learning else ""),
        "lr": _rate,
        "best val AUC": lambda run: number(run.best_val_auc),
        "epoch": lambda run: str(run.best_epoch or "-"),
        "seconds": lambda run: f"{best.seconds:.1f}" if (best := _best(run)) else "-",
        "test AUC": lambda run: number(run.test_auc),
        "test loss": lambda run: number(run.test_loss),
        "tail AUC": lambda run: number(run.test_auc_by_frequency.get("tail")),
        "state MB": _megabytes,
        "samples/s": _speed,
    }


def _text(results: Results) -> tuple[str, dict[str, _Column]]:
    dataset, model = results.dataset, results.model
    about = (
        f"{dataset.words:,} of {dataset.raw_words:,} words, {dataset.tokens:,} different; "
        f"{model.name} of dimension {model.dim}, loss {model.loss}"
    )

    def agreement(name: str) -> _Column:
        return lambda run: number(run.similarity.get(name, Similarity()).spearman)

    return about, {
        "optimizer": lambda run: run.optimizer,
        "lr": _rate,
        "epoch": lambda run: str(run.best_epoch or "-"),
        "train loss": lambda run: number(best.train_loss if (best := _best(run)) else None),
        "val loss": lambda run: number(run.best_val_loss),
        "test loss": lambda run: number(run.test_loss),
        "tail loss": lambda run: number(run.test_loss_by_frequency.get("tail")),
        "WordSim": agreement("wordsim353"),
        "SimLex": agreement("simlex999"),
        "words/s": _speed,
        "state MB": _megabytes,
    }


def _print_one_pass(found: OnePass, console: Console) -> None:
    results = found.results
    dataset, model, splits = results.dataset, results.model, results.splits
    console.print(
        f"\n{dataset.name}: {count_of(len(dataset.days), 'day')}, {splits['train']:,.0f} examples "
        f"learned once, {splits.get('test') or 0:,.0f} for evaluation, "
        f"{count_of(dataset.fields or 0, 'field')}, {dataset.tokens:,} rows; "
        f"{model.name} of dimension {model.dim}",
        markup=False,
    )
    console.print(table(_one_pass_columns(found), found.runs, console.width))
    names = {"train_ne": "train NE", "test_ne": "eval NE", "test_auc": "eval AUC"}
    limits = results.best_possible
    if best := [f"{name} {_ne(limits[key])}" for key, name in names.items() if key in limits]:
        console.print(f"best that any model could reach: {', '.join(best)}")
    for run in found.runs:
        if run.error is not None:
            console.print(f"{run.optimizer} diverged: {run.error}", markup=False)
        elif run.search_edge and run.lr is not None:
            advice = f" (--lr {run.optimizer}=RATE)"
            _print_edge(console, run.optimizer, run.lr, [each.lr for each in run.search], advice)
    for file in found.skipped:
        console.print(f"left out: {file}", markup=False)


def _one_pass_columns(found: OnePass) -> dict[str, _Column]:
    def against(run: Run) -> str:
        apart = found.difference(run)
        return "-" if apart is None else f"{apart:+.3f}%"

    return {
        "optimizer": lambda run: run.optimizer,
        "lr": _rate,
        "train NE": lambda run: _ne(run.train_ne),
        "eval NE": lambda run: _ne(run.test_ne),
        **({f"vs {found.baseline.optimizer}": against} if found.baseline else {}),
        "eval AUC": lambda run: number(run.test_auc),
        "calibration": lambda run: number(run.test_calibration),
        "state MB": _megabytes,
        "examples/s": _speed,
    }


def _rate(run: Run) -> str:
    """Return the learning rate to three significant digits."""
    return "-" if run.lr is None else f"{float(f'{run.lr:.3g}'):g}"


def _ne(value: float | None) -> str:
    return "-" if value is None else f"{value:.5f}"


def _best(run: Run) -> Epoch | None:
    """Return the epoch whose weights were kept."""
    return run.epochs[run.best_epoch - 1] if run.best_epoch else None


def _megabytes(run: Run) -> str:
    return "-" if run.state_bytes is None else f"{run.state_bytes / 1e6:.3f}"


def _speed(run: Run) -> str:
    return f"{run.speed:,.0f}" if run.speed else "-"
