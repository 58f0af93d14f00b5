"""What pages of runs have in common: titles, lines over a run, optimizer state, settings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from freqsgd.report.charts import (
    LARGE,
    MARKED,
    SMALL,
    Chart,
    Series,
    Spec,
    axis,
    bars,
    chart,
    labels,
    level,
    lines,
    names_axis,
    points,
    seconds_axis,
    series_of,
)
from freqsgd.report.page import Section, Tile, machine_words
from freqsgd.report.results import Results, Run, display_name
from freqsgd.report.tables import Cell, Column, Table, sortable_table, table
from freqsgd.report.wording import (
    capitalized,
    enumerate_words,
    percent,
    size,
    thousands,
    times,
)

CUT_SHORT = ("diverged", "interrupted")
MOST_NAMES = 5  # of runs in a title
WORDS = {  # of names of settings
    "dim": "dimension",
    "init": "initial",
    "lr": "learning rate",
    "typical": "typical token's weight",
}
INAPPLICABLE = {"text": ("linear_lr_scale", "linear_decay_scale")}  # options, by kind of data


def title_of(results: Results) -> str:
    """Return the heading of the page: model, data and optimizers."""
    names = [run.label for run in results.runs]
    if results.tuning is not None:
        names = list(dict.fromkeys(display_name(run.optimizer) for run in results.runs))
    who = enumerate_words(names) if len(names) <= MOST_NAMES else f"{len(names)} runs"
    model = display_name(results.model.name or "A model")
    tuned = " tuned" if results.tuning is not None else ""
    return f"{model}{tuned} on {results.dataset.name or 'unnamed data'}: {who}"


def made_with(results: Results) -> list[str]:
    """Return the machine, the programs and the source of the data, for the foot of a page."""
    source = results.dataset.source
    return [*machine_words(results.machine), *([f"data: {source}"] if source else [])]


def cut_short(run: Run, seen: str) -> Iterator[str]:
    """Say that a run did not come to its end; ``seen`` is what it learned from, "" for nothing."""
    so_far = f"after {seen}" if seen else "at its start"
    if run.stopped == "diverged":
        reason = f": {run.error.rstrip('.')}" if run.error else ""
        kept = "; its figures are from before" if seen else ""
        yield f"{run.label} diverged {so_far}{reason}{kept}."
    elif run.stopped == "interrupted":
        yield f"{run.label} was interrupted {so_far}."


# ---- lines over the run --------------------------------------------------------------------------


class Point(NamedTuple):
    """A value of a run after an epoch, or after so many examples."""

    at: float
    value: float
    seconds: float | None
    is_kept: bool = False  # the epoch whose weights were kept


def course_charts(
    name: str,
    title: str,
    courses: Mapping[str, Sequence[Point]],
    series: Sequence[Series],
    *,
    unit: str,
    form: str,
    note: str,
    levels: Sequence[Spec] = (),
    spans: Mapping[str, Sequence[float]] | None = None,
) -> list[Chart]:
    """Return the chart of a value over epochs or examples; none where nothing was measured.

    Args:
        name: of the chart
        title: what the value is
        courses: by label of the run
        series: of the page
        unit: what ``at`` of a point counts: "epoch" or "examples"
        form: of the value, in the language of d3
        note: below the chart
        levels: values that lines are compared with
        spans: by run, the ends of y that matter
    """
    lists = {run: course for run, course in courses.items() if course}
    if not lists:
        return []
    rows = [
        {"run": run, "at": point.at, "value": point.value, "seconds": point.seconds}
        | {"size": LARGE if point.is_kept else SMALL * (order % each == 0)}
        for run, course in lists.items()
        for each in [math.ceil(len(course) / MARKED)]
        for order, point in enumerate(course)
    ]
    timed = all(row["seconds"] is not None for row in rows)
    tips = [("run", "optimizer", ""), ("at", unit, ",.0f"), ("value", title, form)]
    is_epoch = unit == "epoch"
    return [
        chart(
            name,
            capitalized(title),
            series,
            rows,
            axis("at", unit, whole=is_epoch, format="" if is_epoch else "~s", grid=False),
            axis("value", padding=4),
            *levels,
            lines(),
            points(sized=True),
            tips=[*tips, ("seconds", "seconds", ",.2f")] if timed else tips,
            note=note,
            seconds=seconds_axis(course[-1].seconds for course in lists.values())
            if timed
            else None,
            unit="epochs" if is_epoch else unit,
            spans=spans,
        )
    ]


# ---- optimizer state -----------------------------------------------------------------------------


def state_tile(counting: Run | None, other: Run | None, also: Run | None) -> Tile | None:
    """Return the size of CF-SGD's state, and ``also`` CFAdam's, beside that of an ``other``."""
    if counting is None:
        counting, also = also, None
    if counting is None or counting.state_bytes is None:
        return None
    note = ""
    if other is not None and other is not counting and other.state_bytes is not None:
        share = times(counting.state_bytes, other.state_bytes, "less", "more", "as much")
        note = f"{share}: {display_name(other.optimizer)} keeps {size(other.state_bytes)}"
    elif counting.parameter_bytes:
        note = f"for {size(counting.parameter_bytes)} of weights"
    if also is not None and also is not other and also.state_bytes is not None:
        keeps = f"{display_name(also.optimizer)} keeps {size(also.state_bytes)}"
        note = "; ".join(filter(None, (note, keeps)))
    title = f"Optimizer state of {display_name(counting.optimizer)}"
    return Tile(title, size(counting.state_bytes), note)


def state_charts(results: Results, series: Sequence[Series]) -> list[Chart]:
    """Return the chart of what optimizers keep beside the weights; none where nothing is known."""
    weights = max((run.parameter_bytes or 0 for run in results.runs), default=0)
    return memory_charts({run.label: run.state_bytes for run in results.runs}, weights, series)


def memory_charts(
    states: Mapping[str, float | None], weights: float, series: Sequence[Series]
) -> list[Chart]:
    """Return a chart of bytes by label, beside those of the weights."""
    known = [count for count in states.values() if count is not None]
    if not known:
        return []
    rows = [
        {"run": label, "bytes": count or 0, "words": "not known" if count is None else size(count)}
        for label, count in states.items()
    ]
    return [
        chart(
            "state",
            f"Optimizer state{f'; dotted: weights, {size(weights)}' if weights else ''}",
            series,
            rows,
            axis("bytes", "bytes", format="~s", domain=[0, 1.4 * max(*known, weights) or 1]),
            names_axis("run"),
            bars(),
            labels("words"),
            *(level(weights, upright=True) if weights else ()),
            tips=[("run", "optimizer", ""), ("words", "state", "")],
            note="Bytes that the optimizer keeps beside the weights.",
            height=40 + 34 * len(rows),
        )
    ]


# ---- tables ------------------------------------------------------------------------------------


def runs_table(results: Results, columns: Sequence[Column[Run]], note: str = "") -> Table:
    """Return a row per run, with the colour that it has in charts."""
    series = series_of({run.label: run.optimizer for run in results.runs})
    items = [
        (Cell(run.label, run.label, mark=one.style.light), run)
        for run, one in zip(results.runs, series, strict=True)
    ]
    return sortable_table("Optimizer", items, columns, label="All runs", note=note)


def settings_section(results: Results) -> Section:
    """Return the size of the data, what was chosen for every run, how it ended, and the command."""
    sizes = [*settings_of(results.dataset), *settings_of(results.splits)]
    return Section(
        "Data and settings",
        tables=[table(["Data", "Value"], sizes, kind="settings"), settings_table(results)],
        command=results.command,
    )


def settings_table(results: Results) -> Table:
    """Return a column per run, a row per setting."""
    rows: dict[str, list[str | None]] = {}
    for place, run in enumerate(results.runs):
        known = {key: getattr(results.model, key) or None for key in ("dim", "hidden")}
        chosen = ("lr", "weight_decay", "weight_decay_rule", "batch_size", "seed")
        known |= {key: getattr(run, key) for key in chosen}
        measured = {key: value for key, value in known.items() if value is not None}
        told = {*INAPPLICABLE.get(results.dataset.kind or "", ()), "optimizer", "epochs"}
        values = {**known, **dict(_flat(run.options)), **measured}
        planned = f" of {run.epochs_planned}" if run.epochs_planned else ""
        found = [
            *settings_of({key: value for key, value in values.items() if key not in told}),
            *settings_of(
                {
                    "optimizer_state": run.state_rule,
                    "weights": run.parameter_bytes and size(run.parameter_bytes),
                    "examples": run.examples and thousands(run.examples),
                    "epochs": f"{len(run.epochs)}{planned}" if run.examples is None else None,
                    "stopped_by": run.stopped,
                }
            ),
        ]
        for name, value in found:
            rows.setdefault(name, [None] * len(results.runs))[place] = value
    head = ["Setting", *(run.label for run in results.runs)]
    return table(head, [[name, *values] for name, values in rows.items()], kind="settings")


def settings_of(chosen: Struct | Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield settings by name, those left out that are not known or are no single value."""
    named = asdict(chosen) if isinstance(chosen, Struct) else chosen
    for key, value in named.items():
        words = setting_value(key, value)
        if words:
            yield setting_name(key), words


def setting_name(key: str) -> str:
    """Return the name of a setting or option for readers.

    >>> setting_name("weight_decay_power"), setting_name("max_lr")
    ('Weight decay power', 'Max learning rate')
    """
    return capitalized(" ".join(WORDS.get(word, word) for word in key.split("_")))


def setting_value(key: str, value: object) -> str:
    """Return a setting as text; "" for what is unknown or no single value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return (
            percent(value)
            if key == "positive_rate"
            else f"{value:{',.0f' if value >= 1e3 else '.4g'}}"
        )
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) if len(value) <= MOST_NAMES else thousands(len(value))
    return value if isinstance(value, str) else ""


def _flat(options: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield options, also those within others."""
    for key, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value)
        else:
            yield key, value
