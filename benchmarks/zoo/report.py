"""The results as Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.zoo.models import MODELS
from benchmarks.zoo.questions import Cell, mean_and_sd

SPACE = "\N{NO-BREAK SPACE}"


def untuned_table(cells: list[Cell]) -> str:
    """Return the table of question (a): Adam, CFAdam, and CFAdam minus Adam."""
    lines = []
    by_key = {(cell.model, cell.contender): cell for cell in cells}
    for model in dict.fromkeys(cell.model for cell in cells):
        adam, cfadam = by_key.get((model, "adam")), by_key.get((model, "cfadam"))
        line = [_metric(model)]
        for part in ("test", "rare"):
            values = [getattr(cell, part) if cell else None for cell in (adam, cfadam)]
            line += [_outcome(cell, part) for cell in (adam, cfadam)]
            line.append(_difference(*values))
        lines.append(line)
    names = ["Adam", "CFAdam", "difference"]
    return _markdown(["model, metric", *names, *(f"rare: {name}" for name in names)], lines)


def tuned_table(cells: list[Cell], part: str) -> str:
    """Return a table of question (b), for ``part`` "test" or "rare"; rates in parentheses."""
    by_key = {(cell.model, cell.contender): cell for cell in cells}
    models = dict.fromkeys(cell.model for cell in cells)
    contenders = dict.fromkeys(cell.contender for cell in cells)
    lines = []
    for model in models:
        line = [_metric(model)]
        for contender in contenders:
            cell = by_key[model, contender]
            edge = "*" if cell.at_edge else ""
            line.append(f"{_outcome(cell, part)} ({cell.lr:g}{edge})")
        lines.append(line)
    return _markdown(["model, metric", *contenders], lines)


def document(untuned: list[Cell], tuned: list[Cell], quick: bool) -> str:
    """Return all tables with their explanations."""
    parts = ["# Zoo", "Mean ± standard deviation over seeds. `rare`: the rarest fifth of the test."]
    if quick:
        parts.append("Quick run: half the epochs, fewer seeds, every other rate.")
    if untuned:
        parts += ["## (a) Untuned: the whole model at lr 1e-3", untuned_table(untuned)]
    if tuned:
        note = "The rate chosen on validation is in parentheses; * marks an edge of the grid."
        parts += ["## (b) Equal tuning of the tables", note, tuned_table(tuned, "test")]
        parts += ["### Rare samples, at the same rates", tuned_table(tuned, "rare")]
    return "\n\n".join(parts) + "\n"


def _metric(model: str) -> str:
    task = MODELS[model]
    return f"{model}, {task.metric}" + ("" if task.higher_is_better else " (lower is better)")


def _outcome(cell: Cell | None, part: str) -> str:
    if cell is None:
        return "-"
    values = getattr(cell, part)
    if values is None:
        return f"diverged, {cell.diverged} seeds"
    mean, sd = mean_and_sd(values)
    return f"{mean:.4f}{SPACE}±{SPACE}{sd:.4f}" if len(values) > 1 else f"{mean:.4f}"


def _difference(adam: tuple[float, ...] | None, cfadam: tuple[float, ...] | None) -> str:
    if adam is None or cfadam is None:
        return "-"
    return f"{mean_and_sd(cfadam)[0] - mean_and_sd(adam)[0]:+.4f}"


def _markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
