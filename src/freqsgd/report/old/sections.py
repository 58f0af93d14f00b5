"""Which sections a report of results has, in their order."""

from __future__ import annotations

from freqsgd.documents.results import Machine
from freqsgd.report.old.background import count_words
from freqsgd.report.old.charts import cost_charts, learning_charts
from freqsgd.report.old.diagnosis_sections import diagnosis_sections
from freqsgd.report.old.headline import headline, point
from freqsgd.report.old.kinds import Kind
from freqsgd.report.old.page import Section, command_html, footer_html, opening_html
from freqsgd.report.old.results import Results, display_name
from freqsgd.report.old.settings import settings_table
from freqsgd.report.old.summary import summarize
from freqsgd.report.old.tables import comparison_table, seeds_table
from freqsgd.report.old.tuning_sections import tuning_sections
from freqsgd.report.old.wording import enumerate_words


def title(results: Results) -> str:
    """The heading of the page."""
    data = results.dataset.name or "unnamed data"
    if results.tuning:
        names = dict.fromkeys(display_name(run.optimizer) for run in results.runs)
        return f"{enumerate_words(names)}, tuned on {data}"
    labels = [run.label for run in results.runs]
    who = enumerate_words(labels) if len(labels) <= 4 else count_words(results).capitalize()
    return f"{who} on {data}"


def opening(results: Results, kind: Kind) -> str:
    """The numbers and sentences that come first."""
    return opening_html(headline(results, kind), summarize(results, kind))


def sections(results: Results, kind: Kind) -> list[Section]:
    """All sections that have something to show."""
    rare = kind.breakdowns[0].topic.lower()
    settings = settings_table(results, kind.batch, kind.inapplicable)
    parts = [
        *tuning_sections(results),
        Section(curves_title(results, kind), charts=tuple(learning_charts(results, kind.by))),
        Section("All runs", comparison_table(results, kind)),
        Section("Mean and spread over seeds", seeds_table(results, kind)),
        Section(f"Optimizer state and {rare}", charts=tuple(cost_charts(results, kind))),
        *diagnosis_sections(results),
        Section("Settings", settings + command_html(results.command)),
    ]
    return [part for part in parts if part.html or part.charts]


def curves_title(results: Results, kind: Kind) -> str:
    """The heading of the learning curves, which says what they show."""
    return ": ".join(filter(None, ("Learning curves", point(results, kind))))


def footer(results: Results) -> str:
    """Where, with what and when the results were made."""
    parts = machine_words(results.machine)
    if results.dataset.source:
        parts.append(f"data: {results.dataset.source}")
    return footer_html(parts, results.created)


def machine_words(machine: Machine) -> list[str]:
    """The machine and the programs."""
    known = {
        "{}": machine.cpu,
        "cores: {}": machine.cores,
        "threads: {}": machine.threads,
        "torch {}": machine.torch,
        "Python {}": machine.python,
    }
    return [way.format(value) for way, value in known.items() if value]
