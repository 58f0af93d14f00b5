"""Which sections a report of results has, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from html import escape

from freqsgd.report import figures
from freqsgd.report.background import count_words
from freqsgd.report.comparison import Metric, metric
from freqsgd.report.headline import headline
from freqsgd.report.page import Chart, Section
from freqsgd.report.results import Results, Run, display_name
from freqsgd.report.seeds import seeds_table
from freqsgd.report.summary import Statement, summarize
from freqsgd.report.tables import comparison_table, plain_table
from freqsgd.report.tuning_sections import tuning_sections
from freqsgd.report.wording import enumerate_words, score, size

__all__ = ["footer", "opening", "sections", "title"]

TRAINING_LOSS = Metric("train_loss", "training loss", higher_is_better=False)
ENDINGS = {
    "patience": "early stopping",
    "epochs": "all epochs done",
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
    "linear_lr_scale": "Rate of linear weights, times that of vectors",
    "linear_decay_scale": "Decay of linear weights, times that of vectors",
    "model": "Model",
    "dim": "Dimension",
    "hidden": "Hidden layers",
    "dropout": "Dropout",
    "init_scale": "Scale of the start",
    "patience": "Patience",
    "lr_decay": "Learning rate over time",
    "checkpoint_steps": "Steps between checkpoints",
}
FREQUENCY_NOTE = (
    "A sample belongs to the class of its rarest token. Head tokens make up the first 80% of a "
    "field's training occurrences, torso tokens the next 15%, tail tokens the last 5%."
)


def title(results: Results) -> str:
    """The heading of the page."""
    data = results.dataset.get("name", "unnamed data")
    if results.tuning:
        names = dict.fromkeys(display_name(run.optimizer) for run in results.runs)
        return f"{enumerate_words(names)}, tuned on {data}"
    labels = [run.label for run in results.runs]
    who = enumerate_words(labels) if len(labels) <= 4 else count_words(results).capitalize()
    return f"{who} on {data}"


def opening(results: Results) -> str:
    """The numbers and sentences that come first."""
    by = metric(results)
    tiles = "".join(
        f'<div class="card tile"><dt>{escape(tile.title)}</dt>'
        f"<dd><strong>{escape(tile.value)}</strong><span>{escape(tile.note)}</span></dd></div>"
        for tile in headline(results, by)
    )
    sentences = "".join(map(statement_html, summarize(results, by)))
    return f'<dl class="tiles">{tiles}</dl><dl class="summary card">{sentences}</dl>'


def statement_html(statement: Statement) -> str:
    """A topic and what is said of it."""
    return f"<div><dt>{escape(statement.topic)}</dt><dd>{escape(statement.text)}</dd></div>"


def sections(results: Results) -> list[Section]:
    """All sections that have something to show."""
    by = metric(results)
    parts = [
        Section("All runs", comparison_table(results, by)),
        Section("Mean and spread over seeds", seeds_table(results, by)),
        *tuning_sections(results),
        Section("Learning curves", charts=tuple(learning_charts(results, by))),
        Section("Optimizer state and rare tokens", charts=tuple(cost_charts(results))),
        Section("Settings", settings_table(results) + command_html(results)),
    ]
    return [part for part in parts if part.html or part.charts]


def learning_charts(results: Results, by: Metric) -> Iterator[Chart]:
    """Training loss and the validation measure over time."""
    for name, measure in (("training-loss", TRAINING_LOSS), ("validation", by)):
        figure = figures.curves(results, measure, by)
        if figure is not None:
            yield Chart(
                name,
                title=measure.name[0].upper() + measure.name[1:],
                figure=figure,
                description=curves_description(results, measure),
                note="The large marker is the epoch whose weights were kept.",
                data=curves_table(results, measure),
            )


def curves_description(results: Results, measure: Metric) -> str:
    """Start and end of every line, in words."""
    lines = []
    for run in results.runs:
        shown = [(epoch, value) for epoch in run.epochs if (value := measure.of(epoch)) is not None]
        if shown:
            ends = (
                f"{score(value)} in epoch {epoch.epoch}" for epoch, value in (shown[0], shown[-1])
            )
            lines.append(f"{run.label} {', '.join(ends)}")
    return f"Line chart of the {measure.name}, one line per run: {'; '.join(lines)}."


def curves_table(results: Results, measure: Metric) -> str:
    """Every point of the lines: value and second, by epoch and run."""
    points = {(run.label, epoch.epoch): epoch for run in results.runs for epoch in run.epochs}
    labels = [run.label for run in results.runs]
    head = ["Epoch", *(f"{label}{unit}" for label in labels for unit in ("", ", s"))]
    rows: list[list[str | None]] = []
    for number in sorted({number for _, number in points}):
        rows.append([str(number)])
        for label in labels:
            epoch = points.get((label, number))
            seconds = None if epoch is None else epoch.seconds
            rows[-1].append(None if epoch is None else shown(measure.of(epoch)))
            rows[-1].append(None if seconds is None else f"{seconds:.2f}")
    return plain_table(head, rows)


def cost_charts(results: Results) -> Iterator[Chart]:
    """What the state costs, and where quality differs."""
    memory = figures.state_memory(results)
    if memory is not None:
        sizes = [(run.label, figures.state_words(run)) for run in results.runs]
        listed = enumerate_words(" ".join(entry) for entry in sizes)
        scale = "The axis is logarithmic. " if memory.layout.xaxis.type == "log" else ""
        yield Chart(
            "state",
            title="Optimizer state",
            figure=memory,
            description=f"Bar chart of optimizer state: {listed}.",
            note=f"{scale}Numbers that the optimizer keeps beside the weights, in bytes.",
            data=plain_table(["Optimizer", "State"], sizes),
        )
    by_frequency = figures.auc_by_frequency(results)
    if by_frequency is not None:
        rows = [
            [run.label, *(shown(run.test_auc_by_frequency.get(name)) for name in figures.CLASSES)]
            for run in results.runs
        ]
        start = by_frequency.layout.yaxis.range[0]
        axis = f" The axis starts at {start:.2f}, not at 0." if start > 0 else ""
        yield Chart(
            "frequency",
            title="Test AUC by token frequency",
            figure=by_frequency,
            description="Bar chart of test AUC for samples with head, torso and tail tokens: "
            + "; ".join(" ".join(entry or "unknown" for entry in row) for row in rows)
            + f".{axis}",
            note=FREQUENCY_NOTE + axis,
            data=plain_table(["Optimizer", *figures.CLASSES], rows),
        )


def shown(value: float | None) -> str | None:
    """A score that may be missing."""
    return None if value is None else score(value)


def settings_table(results: Results) -> str:
    """What was chosen for every run, and how it ended: a column per run, a row per setting."""
    rows: dict[str, list[str | None]] = {}
    for place, run in enumerate(results.runs):
        for name, value in settings(run):
            rows.setdefault(name, [None] * len(results.runs))[place] = value
    head = ["Setting", *(run.label for run in results.runs)]
    return plain_table(head, [[name, *values] for name, values in rows.items()], kind="settings")


def settings(run: Run) -> Iterator[tuple[str, str]]:
    """What is known of a run's settings, by name."""
    for key, name in SETTING_NAMES.items():
        if key in run.settings:
            yield name, setting(run.settings[key])
    yield from options(run.settings.get("options"))
    if run.parameter_bytes:
        yield "Weights", size(run.parameter_bytes)
    yield "Epochs", f"{len(run.epochs)}{f' of {run.epochs_planned}' if run.epochs_planned else ''}"
    if run.stopped:
        yield "Ended by", ENDINGS.get(run.stopped, run.stopped)


def options(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Options by name, also those within others, without what the table has already."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if key not in (*SETTING_NAMES, "optimizer", "epochs"):
                yield from options(entry, str(key))
    elif value is not None and name:
        yield OPTION_NAMES.get(name, name), setting(value)


def setting(value: object) -> str:
    """A setting as text."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def command_html(results: Results) -> str:
    """The command that makes these results again."""
    if results.command is None:
        return ""
    return f"<h3>To do it again</h3><pre><code>{escape(results.command)}</code></pre>"


def footer(results: Results) -> str:
    """Where, with what and when the results were made."""
    machine = results.machine
    ways = {
        "cpu": "{}",
        "cores": "cores: {}",
        "threads": "threads: {}",
        "torch": "torch {}",
        "python": "Python {}",
    }
    parts = [way.format(machine[key]) for key, way in ways.items() if machine.get(key)]
    if results.dataset.get("source"):
        parts.append(f"data: {results.dataset['source']}")
    if results.created:
        parts.append(f"made {moment(results.created)}")
    return " · ".join(escape(part) for part in ("Report by freqsgd", *parts))


def moment(written: str) -> str:
    """An ISO time to the minute; anything else as it is."""
    try:
        return f"{datetime.fromisoformat(written):%Y-%m-%d %H:%M %Z}".strip()
    except ValueError:
        return written
