"""The page and the pictures of all figures of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from urllib.parse import quote

from freqsgd.documents.paper import NOT_MEASURED, VERDICTS, PaperFigure, PaperRun
from freqsgd.report.old.page import (
    Section,
    Statement,
    command_html,
    footer_html,
    opening_html,
    render,
    statements_html,
)
from freqsgd.report.old.paper import Paper
from freqsgd.report.old.paper_charts import FEW, Parts, leading_chart, legend_of, placed
from freqsgd.report.old.paper_here import here
from freqsgd.report.old.paper_tables import own_tables
from freqsgd.report.old.paper_words import ENDED, TITLE, headline, summarize, why
from freqsgd.report.old.picture import Panel, Picture
from freqsgd.report.old.sections import machine_words
from freqsgd.report.old.tables import ABSENT, header, plain_table
from freqsgd.report.old.wording import capitalized, duration, enumerate_words


def render_paper(paper: Paper, parts: Mapping[str, Parts]) -> str:
    """The whole page, with the charts of each figure by its name."""
    sections = [
        leading(paper),
        Section("Figures and tables", figures_table(paper), name="figures"),
        *(figure_section(paper, figure, parts[figure.name]) for figure in paper.figures),
        Section("All of it", command_html(paper.command)),
    ]
    runs, others = legend_of(chart for section in sections for chart in section.charts)
    return render(
        title=TITLE,
        opening=opening_html(headline(paper), summarize(paper)),
        sections=[
            replace(
                section, charts=tuple(placed(chart, [*runs, *others]) for chart in section.charts)
            )
            for section in sections
            if section.html or section.charts
        ],
        footer=footer_html(machine_words(paper.machine), paper.created),
        runs=runs,
        others=others,
    )


def paper_pictures(paper: Paper, parts: Mapping[str, Parts]) -> dict[str, Picture]:
    """The pictures by name: a figure's parts each have one."""
    found = {}
    for figure in paper.figures:
        for part, charts in parts[figure.name].items():
            title = f"{figure.number}: {figure.title}"
            stand_in = " (stand-in: generated data)" if figure.is_on_stand_in else ""
            panels = [Panel(chart.title, chart.figure) for chart in charts]
            found[picture_name(figure, part)] = Picture(title + stand_in, panels)
    return found


def picture_name(figure: PaperFigure, part: str) -> str:
    """Of a part of a figure."""
    return f"{figure.name}-{part}" if part else figure.name


def leading(paper: Paper) -> Section:
    """The chart that the reader sees first."""
    found = leading_chart(paper)
    return Section("") if found is None else Section(found[0], charts=(found[1],))


def figure_section(paper: Paper, figure: PaperFigure, parts: Parts) -> Section:
    """What the paper says, what was measured, the charts, what was asked, how to do it again."""
    charts = [chart for some in parts.values() for chart in some]
    statements = [Statement(topic, words) for topic, words in told(paper, figure) if words]
    return Section(
        f"{figure.number}: {figure.title}",
        statements_html(statements),
        tuple(charts),
        small=len(charts) > FEW,
        name=figure.name,
        after=tables_html(paper, figure) + runs_html(paper, figure) + files_html(figure, parts),
    )


def told(paper: Paper, figure: PaperFigure) -> Iterator[tuple[str, str]]:
    """The words of a figure by topic."""
    yield "The paper", figure.claim
    yield "Here", here(paper, figure) or "nothing was measured."
    rules = "" if figure.verdict == NOT_MEASURED else f" ({held(figure)} rules hold)"
    yield "Verdict", verdict_words(figure) + rules
    if figure.private:
        yield "Data", f"{figure.private.rstrip('.')}: these are generated."
    elif figure.is_on_stand_in:
        yield "Data", "Generated data stand in for those of the paper."
    yield (
        "Missing",
        " ".join(
            f"{capitalized(run.label)}{why(run.why or run.status)}."
            for run in runs_of(paper, figure)
            if run.document is None
        ),
    )


def runs_of(paper: Paper, figure: PaperFigure) -> list[PaperRun]:
    """The runs that are known."""
    return [paper.runs[name] for name in figure.runs if name in paper.runs]


def tables_html(paper: Paper, figure: PaperFigure) -> str:
    """The numbers, and what was asked of them."""
    own = "".join(f"<h3>{escape(title)}</h3>{table}" for title, table in own_tables(paper, figure))
    asked = rules_table(paper, figure)
    return own + (f"<h3>Rules</h3>{asked}" if asked else "")


def runs_html(paper: Paper, figure: PaperFigure) -> str:
    """How to do the figure again, and what each of its runs was."""
    entries = "".join(
        f"<div><dt>{escape(capitalized(run.label))}</dt><dd>{run_html(run)}</dd></div>"
        for run in runs_of(paper, figure)
    )
    runs = f'<dl class="summary card">{entries}</dl>' if entries else ""
    return command_html(figure.command) + runs


def run_html(run: PaperRun) -> str:
    """How a run ended, what is smaller in it, its command and its own report."""
    took = "" if run.seconds is None else f" in {duration(run.seconds)}"
    reason = "" if run.status == ENDED else why(run.why)
    sentences = [f"{capitalized(run.status)}{took}{reason}."]
    if run.smaller:
        sentences.append(f"Smaller than in the paper: {run.smaller.rstrip('.')}.")
    parts = [escape(" ".join(sentences))]
    if run.report is not None:
        parts.append(f'<a href="{escape(quote(run.report))}">Its own report</a>')
    if run.command is not None:
        parts.append(f"<code>{escape(run.command)}</code>")
    return "<br>".join(parts)


def files_html(figure: PaperFigure, parts: Parts) -> str:
    """Where its pictures are."""
    names = [f"paper-{picture_name(figure, part)}.png" for part in parts]
    links = ", ".join(f'<a href="{name}">{name}</a>' for name in names)
    return f'<p class="note">As pictures: {links}</p>' if names else ""


SIGNS = dict(zip(VERDICTS, ("✓", "◐", "✗", ABSENT), strict=True))
ANSWERS = {True: "✓ holds", False: "✗ does not hold", None: f"{ABSENT} not measured"}
NOTE = (
    "A figure agrees if all of its rules hold, agrees in part if some do, and differs if none "
    "does. Rules and thresholds were written down before anything was run."
)


def verdict_words(figure: PaperFigure) -> str:
    """The verdict with its sign; on generated data it is said to be that."""
    words = f"{SIGNS[figure.verdict]} {figure.verdict}"
    generated = figure.is_on_stand_in and figure.verdict != "not measured"
    return f"{words}, on generated data" if generated else words


def held(figure: PaperFigure) -> str:
    """How many rules hold."""
    return f"{sum(rule.holds is True for rule in figure.rules)} of {len(figure.rules)}"


def data_words(paper: Paper, figure: PaperFigure) -> str:
    """What the figure was measured on."""
    runs = [paper.runs[name] for name in figure.runs if name in paper.runs]
    names = enumerate_words(dict.fromkeys(run.dataset for run in runs if run.dataset))
    if figure.data == "none":
        return f"{names or 'the data'}: missing"
    if figure.is_on_stand_in:
        return f"generated, a stand-in for {names}" if names else "generated, a stand-in"
    return names or "simulated"


def figures_table(paper: Paper) -> str:
    """A row per figure with a link to its section, sortable by each column."""
    titles = ("Figure", "Verdict", "Rules that hold", "What it shows", "Data")
    head = "".join(header(title, "ascending") for title in titles)
    rows = []
    for place, figure in enumerate(paper.figures):
        data = data_words(paper, figure)
        holds = sum(rule.holds is True for rule in figure.rules)
        cells = (
            (verdict_words(figure), str(VERDICTS.index(figure.verdict))),
            (held(figure), f"{holds / max(1, len(figure.rules))}"),
            (figure.title, figure.title),
            (data, data),
        )
        link = f'<a href="#{figure.name}">{escape(figure.number)}</a>'
        rows.append(
            f'<tr><th scope="row" data-value="{place:03}">{link}</th>'
            + "".join(
                f'<td data-value="{escape(value)}">{escape(shown)}</td>' for shown, value in cells
            )
            + "</tr>"
        )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Figures and verdicts">'
        f'<table class="sortable words"><thead><tr>{head}</tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table></div><p class="note">{NOTE}</p>'
    )


def rules_table(paper: Paper, figure: PaperFigure) -> str:
    """What was asked, of which run, and the answers."""
    several = len(figure.runs) > 1
    head = ["Answer", *(["Run"] if several else []), "Rule", "Measured"]
    rows: list[list[str | None]] = []
    for rule in figure.rules:
        run = paper.runs.get(rule.run)
        where = [run.label if run else rule.run] if several else []
        rows.append([ANSWERS[rule.holds], *where, rule.says, rule.measured or None])
    return plain_table(head, rows, kind="settings") if rows else ""
