"""What pages of runs have in common: their data and model in words, optimizer state, settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from freqsgd.documents.results import Model
from freqsgd.report.charts import (
    LARGE,
    MARKED,
    SMALL,
    Chart,
    Series,
    Spec,
    axis,
    bars,
    labels,
    level,
    lines,
    names_axis,
    plot,
    points,
    seconds_axis,
    series_of,
)
from freqsgd.report.page import Section, Tile, machine_words
from freqsgd.report.results import Results, Run, alike, display_name
from freqsgd.report.tables import Cell, Column, Table, shown, sortable_table, table
from freqsgd.report.wording import (
    capitalized,
    enumerate_words,
    score,
    size,
    small_number,
    thousands,
    times,
)

LOSSES = {"softmax": "full softmax", "negative": "negative sampling"}
ENDINGS = {
    "patience": "early stopping",
    "epochs": "all epochs done",
    "end": "all examples seen",
    "interrupted": "interrupted",
    "diverged": "diverged",
}
SETTING_NAMES = {
    "lr": "Learning rate",
    "weight_decay": "Weight decay",
    "weight_decay_rule": "Decay rule",
    "state_rule": "State",
    "batch_size": "Batch size",
    "seed": "Seed",
}
OPTION_NAMES = {
    "weight_decay_power": "Decay's power of frequency",
    "max_lr": "Cap on a token's rate",
    "halflife": "Samples in which counts halve",
    "count": "What is counted",
    "dense_lr": "Rate of bias and network",
    "linear_lr_scale": "Rate of linear weights, times that of vectors",
    "linear_decay_scale": "Decay of linear weights, times that of vectors",
    "model": "Model",
    "loss": "Loss",
    "dim": "Dimension",
    "hidden": "Hidden layers",
    "dropout": "Dropout",
    "init_scale": "Scale of the start",
    "window": "Words on each side",
    "windows": "Windows",
    "negatives": "Noise words of a sample",
    "subsample": "Words are subsampled above frequency",
    "max_norm": "Longest word vector",
    "patience": "Patience",
    "lr_decay": "Learning rate over time",
    "diagnose": "Diagnosed",
    "checkpoint_steps": "Steps between checkpoints",
}
VALUE_NAMES = {
    ("count", "batch"): "batches that hold a token",
    ("diagnose", "True"): "yes",
    ("lr_decay", "linear"): "linear to 0",
    ("lr_decay", "epochs"): "linear to 0, epoch by epoch",
    ("windows", "full"): "within the paragraph only",
    ("windows", "all"): "cut at the ends of a paragraph",
    ("subsample", "0"): "none",
}
USUAL = {"count": "occurrence"}  # goes without saying


# ---- what was trained ----------------------------------------------------------------------------


def title_of(results: Results) -> str:
    """Return the heading of the page."""
    data = results.dataset.name or "unnamed data"
    labels = [run.label for run in results.runs]
    who = enumerate_words(labels) if len(labels) <= 4 else count_words(results).capitalize()
    return f"{who} on {data}"


def count_words(results: Results) -> str:
    """Return how many optimizers ran; how many runs there were, if one ran more than once."""
    distinct = len({run.optimizer for run in results.runs}) == len(results.runs)
    return f"{small_number(len(results.runs))} {'optimizers' if distinct else 'runs'}"


def trained_words(results: Results, how: str) -> str:
    """Return who trained which model on what, without a full stop; ``how`` ends with the data."""
    what = f"{model_words(results.model)} {how}"
    if len(results.runs) == 1:
        return f"{results.runs[0].label} trained {what}"
    who = enumerate_words(
        runs[0].label if len(runs) == 1 else f"{runs[0].family} ({small_number(len(runs))} times)"
        for runs in alike(results.runs)
    )
    return f"{count_words(results).capitalize()} trained {what}: {who}"


def model_words(model: Model) -> str:
    """Return the model and its sizes."""
    words = display_name(model.name or "a model")
    if model.loss:
        words += f" with {LOSSES.get(model.loss, model.loss)}"
    sizes = [f"{model.dim} dimensions"] if model.dim else []
    if model.window:
        sizes.append(f"{model.window} words on each side")
    if model.negatives:
        sizes.append(f"{model.negatives} negatives")
    if model.hidden:
        sizes.append(f"hidden layers of {enumerate_words(map(str, model.hidden))}")
    return f"{words} ({', '.join(sizes)})" if sizes else words


def sample_words(results: Results) -> str:
    """Return how many samples there are, how many labels are positive, and the split."""
    data = results.dataset
    counts = {"samples": data.rows, "fields": data.fields, "tokens": data.tokens}
    sizes = [f"{thousands(count)} {word}" for word, count in counts.items() if count is not None]
    told = []
    if sizes:
        rate = data.positive_rate
        told.append(f"The dataset has {enumerate_words(sizes)}")
        if rate is not None:
            told.append(f"{rate:.1%} of the labels are positive")
    if parts := split_words(results.splits):
        told.append(f"{parts}" if told else f"There are {parts}")
    return "; ".join(told) + "." if told else ""


def text_words(results: Results) -> str:
    """Return how long the text is, how many words are distinct, and what is held out."""
    data = results.dataset
    told = []
    if data.words:
        whole = data.raw_words or data.words
        words = f"The training text has {thousands(whole)} words"
        if data.paragraphs:
            words += f" in {thousands(data.paragraphs)} paragraphs"
        told.append(words)
        if whole != data.words:
            told.append(f"{thousands(data.words)} are left without the rare ones")
        if data.tokens:
            told[-1] += f", {thousands(data.tokens)} of them distinct"
    held_out = {key: count for key, count in results.splits.items() if key != "train"}
    if any(held_out.values()):
        told.append(f"held out are {split_words(held_out)}")
    elif held_out:
        told.append("no text is held out")
    words = "; ".join(told)
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def split_words(splits: Mapping[str, float]) -> str:
    """Return how much was for what."""
    uses = (("train", "training"), ("validation", "validation"), ("test", "the test"))
    return enumerate_words(
        f"{thousands(splits[key]) if splits[key] else 'none'} for {use}"
        for key, use in uses
        if key in splits
    )


def even_guess(results: Results) -> float | None:
    """Return the loss of a softmax that has learned nothing: a level to see losses against."""
    words = results.dataset.tokens
    if results.model.loss != "softmax" or words is None or words < 2:
        return None
    return math.log(words)


def made_with(results: Results) -> list[str]:
    """Return the machine, the programs and the source of the data, for the foot of a page."""
    source = results.dataset.source
    return [*machine_words(results.machine), *([f"data: {source}"] if source else [])]


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
    show: Callable[[float], str] = score,
    levels: Sequence[Spec] = (),
    spans: Mapping[str, Sequence[float]] | None = None,
    note: str = "",
) -> list[Chart]:
    """Return a chart of values by label of the run, over epochs or examples, or over seconds.

    A line has few markers to tell it by, and a large one at the epoch that was kept.

    Args:
        name: of the chart
        title: what the values are
        courses: the values
        series: all that is in the legend of the page
        unit: "epoch" or "examples"
        form: of values, in the language of d3
        show: the same, as words
        levels: layers below the lines
        spans: by run, the ends of y that matter
        note: below the chart
    """
    lists = {run: list(course) for run, course in courses.items() if course}
    if not lists:
        return []
    rows = [
        {"run": run, "at": point.at, "value": point.value}
        | ({} if point.seconds is None else {"seconds": point.seconds})
        | {
            "size": LARGE
            if point.is_kept
            else SMALL * (order % math.ceil(len(course) / MARKED) == 0)
        }
        for run, course in lists.items()
        for order, point in enumerate(course)
    ]
    timed = all("seconds" in row for row in rows)
    tips = [("run", "optimizer", ""), ("value", title, form), ("at", unit, ",d")]
    is_epoch = unit == "epoch"
    spec = plot(
        series,
        rows,
        axis("at", unit, whole=is_epoch, format="" if is_epoch else "~s", grid=False),
        axis("value", padding=4),
        *levels,
        lines(),
        points(sized=True),
        tips=[*tips, ("seconds", "seconds", ",.3~f")] if timed else tips,
        seconds=seconds_axis(each[-1].seconds for each in lists.values()) if timed else None,
        unit="epochs" if is_epoch else unit,
        spans=spans,
    )
    ends = (
        f"{run} {show(course[0].value)} at first, {show(course[-1].value)} at the end"
        for run, course in lists.items()
    )
    return [
        Chart(
            name,
            title=capitalized(title),
            spec=spec,
            description=f"Line chart of the {title}, one line per run: {'; '.join(ends)}.",
            note=note,
            table=_course_table(unit, courses, show),
        )
    ]


def _course_table(
    unit: str, courses: Mapping[str, Sequence[Point]], show: Callable[[float], str]
) -> Table:
    """Every point of the lines: value and second, by epoch or examples, and run."""
    found = {(run, point.at): point for run, course in courses.items() for point in course}
    head = [capitalized(unit), *(f"{run}{of}" for run in courses for of in ("", ", s"))]
    rows: list[list[str | None]] = []
    for at in sorted({at for _, at in found}):
        rows.append([thousands(at)])
        for run in courses:
            point = found.get((run, at))
            rows[-1].append(shown(point and point.value, show))
            rows[-1].append(shown(point and point.seconds, "{:.2f}".format))
    return table(head, rows)


# ---- optimizer state -----------------------------------------------------------------------------


def state_tile(counting: Run | None, other: Run | None) -> Tile | None:
    """Return the size of CF-SGD's state, beside that of another optimizer."""
    if counting is None or counting.state_bytes is None:
        return None
    note = ""
    if other is not None and other is not counting and other.state_bytes is not None:
        share = times(counting.state_bytes, other.state_bytes, "less", "more", "as much")
        note = f"{share}: {display_name(other.optimizer)} keeps {size(other.state_bytes)}"
    elif counting.parameter_bytes:
        note = f"for {size(counting.parameter_bytes)} of weights"
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
    words = {
        label: "not known" if count is None else size(count) for label, count in states.items()
    }
    known = [count for count in states.values() if count is not None]
    if not known:
        return []
    rows = [
        {"run": label, "bytes": count or 0, "words": words[label]}
        for label, count in states.items()
    ]
    longest = max([*known, weights])
    words_of_weights = f"dotted: the model's weights, {size(weights)}"
    of_weights = level(weights, words_of_weights, upright=True, aside=True)
    spec = plot(
        series,
        rows,
        axis("bytes", "bytes", format="~s", domain=[0, 1.4 * longest or 1]),
        names_axis("run"),
        bars([("run", "optimizer", ""), ("words", "state", "")]),
        labels("words"),
        *(of_weights if weights else ()),
        height=40 + 34 * len(rows),
    )
    return [
        Chart(
            "state",
            title="Optimizer state",
            spec=spec,
            description="Bar chart of optimizer state: "
            f"{enumerate_words(f'{label} {each}' for label, each in words.items())}.",
            note="Bytes of the numbers that the optimizer keeps beside the weights.",
            table=table(["Optimizer", "State"], [list(row) for row in words.items()]),
        )
    ]


# ---- tables ------------------------------------------------------------------------------------


def runs_table(results: Results, columns: Sequence[Column[Run]], note: str = "") -> Table:
    """Return a row per run, with the colour that it has in charts."""
    series = series_of(results.runs)
    items = [
        (Cell(run.label, run.label, mark=one.style.light), run)
        for run, one in zip(results.runs, series, strict=True)
    ]
    return sortable_table("Optimizer", items, columns, label="All runs", note=note)


def settings_section(
    results: Results,
    data: str,
    batch: str = "Batch size",
    inapplicable: Collection[str] = (),
    names: Mapping[str, str] = OPTION_NAMES,
) -> Section:
    """Return the data in words, what was chosen for every run, how it ended, and the command.

    ``batch`` is what the size of a batch is called; ``inapplicable`` options mean nothing here.
    """
    return Section(
        "Data and settings",
        remarks=[data] if data else [],
        tables=[settings_table(results, batch, inapplicable, names)],
        command=results.command,
    )


def settings_table(
    results: Results, batch: str, inapplicable: Collection[str], names: Mapping[str, str]
) -> Table:
    """Return a column per run, a row per setting."""
    rows: dict[str, list[str | None]] = {}
    for place, run in enumerate(results.runs):
        for name, value in settings_of(run, batch, inapplicable, names):
            rows.setdefault(name, [None] * len(results.runs))[place] = value
    head = ["Setting", *(run.label for run in results.runs)]
    return table(head, [[name, *values] for name, values in rows.items()], kind="settings")


def settings_of(
    run: Run, batch: str, inapplicable: Collection[str], names: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield what is known of a run's settings, by name."""
    for key, name in {**SETTING_NAMES, "batch_size": batch}.items():
        if (value := getattr(run, key)) not in (None, ""):
            yield name, setting(value)
    for key, value in options_of(run.options):
        told_elsewhere = key in (*SETTING_NAMES, *inapplicable, "optimizer", "epochs")
        if not told_elsewhere and value != USUAL.get(key):
            yield names.get(key, key), VALUE_NAMES.get((key, value), value)
    if run.parameter_bytes:
        yield "Weights", size(run.parameter_bytes)
    if run.examples is not None:
        yield "Examples", thousands(run.examples)
    else:
        planned = f" of {run.epochs_planned}" if run.epochs_planned else ""
        yield "Epochs", f"{len(run.epochs)}{planned}"
    if run.stopped:
        still = ", while its losses still fell" if run.still_learning else ""
        yield "Ended by", ENDINGS.get(run.stopped, run.stopped) + still


def options_of(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield options by name, also those within others."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from options_of(entry, str(key))
    elif value is not None and name:
        yield name, setting(value)


def setting(value: object) -> str:
    """Return a setting as text."""
    return f"{value:g}" if isinstance(value, float) else str(value)
