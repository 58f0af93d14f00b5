"""How far what was measured agrees with the paper, as words and tables."""

from __future__ import annotations

from html import escape

from freqsgd.documents.paper import VERDICTS, PaperFigure
from freqsgd.report.paper import Paper
from freqsgd.report.tables import ABSENT, header, plain_table
from freqsgd.report.wording import enumerate_words

__all__ = ["data_words", "figures_table", "held", "rules_table", "verdict_words"]

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
