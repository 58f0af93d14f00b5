"""Results as HTML tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from freqsgd.report.old.comparison import alike
from freqsgd.report.old.kinds import Kind, is_known
from freqsgd.report.old.measures import Measure, best
from freqsgd.report.old.results import Results, Run
from freqsgd.report.old.wording import capitalized, megabytes, spread, thousands

ABSENT = "\N{EN DASH}"


@dataclass(frozen=True)
class Column:
    """A number that every run may have."""

    title: str
    value: Callable[[Run], float | None]
    show: Callable[[float], str]
    best: Callable[[Iterable[float]], float] | None = None  # max or min, where one is better


def columns(kind: Kind) -> list[Column]:
    """What was asked, how good it is, what it cost."""

    def kept_epoch(run: Run) -> float | None:
        found = best(run, kind.by)
        return None if found is None else found.epoch.epoch

    def seconds(run: Run) -> float | None:
        found = best(run, kind.by)
        return None if found is None else found.epoch.seconds

    return [
        Column("Learning rate", lambda run: run.lr, "{:g}".format),
        *map(score_column, kind.scores),
        Column("Epoch kept", kept_epoch, thousands),
        Column("Seconds until then", seconds, seconds_shown),
        Column("State, MB", lambda run: run.state_bytes, megabytes, min),
        Column(kind.speed, lambda run: run.speed, thousands, max),
    ]


def seconds_shown(seconds: float) -> str:
    """Seconds to the precision that timings have."""
    return f"{seconds:,.{1 if seconds < 100 else 0}f}"


def score_column(measure: Measure) -> Column:
    """A score, of which the best is marked."""
    better = max if measure.higher_is_better else min
    return Column(capitalized(measure.name), measure.of, measure.show, better)


def comparison_table(results: Results, kind: Kind) -> str:
    """What was asked of every run, how good it is, what it cost."""
    return runs_table(results.runs, columns(kind))


def runs_table(runs: Sequence[Run], all_columns: Iterable[Column]) -> str:
    """One row per run, sortable by each column; columns that no run fills are left out."""
    used = [column for column in all_columns if any(column.value(run) is not None for run in runs)]
    head = [
        header("Optimizer", "ascending"),
        *(header(column.title, first(column)) for column in used),
    ]
    tops = {column.title: top(column, runs) for column in used}
    body = [
        f'<tr style="--mark: var(--run-{place})"><th scope="row" data-value="{escape(run.label)}">'
        f'<span class="dot"></span>{escape(run.label)}</th>'
        + "".join(cell(column, run, tops[column.title]) for column in used)
        + "</tr>"
        for place, run in enumerate(runs)
    ]
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="All runs">'
        f'<table class="sortable"><thead><tr>{"".join(head)}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def header(title: str, direction: str) -> str:
    """A header that sorts, in ``direction`` at first."""
    button = f'<button type="button">{escape(title)}</button>'
    return f'<th scope="col" data-first="{direction}">{button}</th>'


def first(column: Column) -> str:
    """The direction that puts the best on top."""
    return "descending" if column.best is max else "ascending"


def top(column: Column, runs: Sequence[Run]) -> str | None:
    """The best entry as it is shown, so that what looks equal is marked alike."""
    values = [value for run in runs if (value := column.value(run)) is not None]
    if column.best is None or len(runs) < 2:
        return None
    return column.show(column.best(values))


def cell(column: Column, run: Run, best_shown: str | None) -> str:
    """One number, or a dash."""
    value = column.value(run)
    if value is None:
        return f"<td>{ABSENT}</td>"
    shown = column.show(value)
    if shown != best_shown:
        return f'<td data-value="{value!r}">{shown}</td>'
    spoken = '<span class="unseen"> (best)</span>'
    return f'<td data-value="{value!r}" class="best">{shown}{spoken}</td>'


def plain_table(
    head: Sequence[str], rows: Iterable[Sequence[str | None]], kind: str = "data"
) -> str:
    """A table of text; None is shown as a dash."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0] or ABSENT)}</th>'
        + "".join(f"<td>{ABSENT if entry is None else escape(entry)}</td>" for entry in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Table of {kind}">'
        f'<table class="{kind}"><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def seeds_table(results: Results, kind: Kind) -> str:
    """Mean and standard deviation of what matters, one row per optimizer with several seeds."""
    scores = [measure for measure in kind.scores if is_known(results, measure)]
    rows: list[list[str | None]] = []
    for runs in alike(results.runs):
        if len({repr(run.seed) for run in runs}) == len(runs) > 1:
            rows.append([runs[0].family, str(len(runs))])
            for measure in scores:
                values = [value for run in runs if (value := measure.of(run)) is not None]
                rows[-1].append(spread(values, measure.show) if len(values) > 1 else None)
    head = ["Optimizer", "Seeds", *(capitalized(measure.name) for measure in scores)]
    return plain_table(head, rows) if rows else ""


Cells = tuple[str, Callable[[float], str], Sequence[float | None]]  # title, how to show, values


def sortable_table(title: str, names: Sequence[tuple[str, str]], columns: Sequence[Cells]) -> str:
    """A row per name, given as it is shown and as it is sorted; a column of dashes is left out."""
    used = [column for column in columns if any(value is not None for value in column[2])]
    head = header(title, "ascending") + "".join(header(name, "descending") for name, _, _ in used)
    rows = "".join(
        f'<tr><th scope="row" data-value="{escape(key)}">{escape(name)}</th>'
        + "".join(sortable_cell(values[place], show) for _, show, values in used)
        + "</tr>"
        for place, (name, key) in enumerate(names)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">'
        f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def sortable_cell(value: float | None, show: Callable[[float], str]) -> str:
    """One number, or a dash."""
    if value is None:
        return f"<td>{ABSENT}</td>"
    return f'<td data-value="{value!r}">{escape(show(value))}</td>'
