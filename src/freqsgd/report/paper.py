"""The page of the paper's figures: what the paper says, what was measured here, and the verdict.

Charts and tables are those of the runs' own pages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from msgspec import structs

from freqsgd.documents import check_kind, load_object, read_document
from freqsgd.documents.paper import NOT_MEASURED, VERDICTS, PaperFigure, PaperRun, PaperSummary
from freqsgd.documents.results import Study
from freqsgd.errors import DataError
from freqsgd.optimizers import OPTIMIZERS
from freqsgd.report.charts import Chart, axis, chart, lines, log_axis
from freqsgd.report.comparison import comparison_page
from freqsgd.report.inspection import LINES, inspection_page, read_inspection
from freqsgd.report.one_pass import one_pass_page, read_one_pass
from freqsgd.report.page import Page, Section, Tile, machine_words
from freqsgd.report.results import display_name, read_results
from freqsgd.report.tables import ABSENT, Cell, Column, Table, sortable_table, table
from freqsgd.report.theory import read_theory, theory_page
from freqsgd.report.wording import (
    capitalized,
    count_of,
    duration,
    enumerate_words,
    factor,
    score,
)

MAIN = "ml-fm"  # the run that speaks for all
LEARNING = (MAIN, "ml-deepfm", "criteo-fm", "criteo-deepfm")  # runs with epochs and AUCs
BESIDE = "sbcd"  # simulations have it too; the figures do not speak of it
ENDED = "done"
FEW = 6  # charts; more are drawn small
MOST = 28  # charts of a run: Appendix C has so many features
SIGNS = dict(zip(VERDICTS, ("✓", "◐", "✗", ABSENT), strict=True))
ANSWERS = {True: "✓ holds", False: "✗ does not hold", None: f"{ABSENT} not measured"}
COUNTED = dict(
    zip(VERDICTS, ("agree", "agree in part", "differ", "could not be measured"), strict=True)
)
NOTE = (
    "A figure agrees if all of its rules hold, agrees in part if some do, and differs if none "
    "does. Rules and thresholds were written down before anything was run."
)
LINES_NOTE = "Solid: counted. Dashed: the exponential tail that fits best; dotted: the polynomial."
CURVES, RANKS, RATES = "validation|training-loss", "ranks-.*", "learning-rates"
CHARTS = {  # by figure and part of it, each of which is a picture: names of charts of its runs
    "fig1": {"tails": "", "counts": RANKS},
    "fig2": {"": CURVES},
    "fig3ab": {"": "moments-.*"},
    "fig3cd": {"": CURVES},
    "fig4ab": {"": CURVES},
    "table1": {"": "lifetime-ne|difference"},
    "table2": {"": RATES},
    "table3": {"": RATES},
    "memory": {"": "state"},
    "fig5": {"": CURVES},
    "appendix-c": {"": RANKS},
    "theory": {"exponential": "improvement-.*", "polynomial": "improvement-.*"},
}
ALL_RUNS = ("table1", "fig5")  # figures with the table of all runs of a run's page


@dataclass(frozen=True)
class Paper:
    """The figures that were asked for, their runs, and what can be read of these."""

    summary: PaperSummary
    figures: tuple[PaperFigure, ...]
    runs: Mapping[str, PaperRun]
    studies: Mapping[str, tuple[Study, ...]]  # of runs that tuned
    pages: Mapping[str, Page]

    def runs_of(self, figure: PaperFigure) -> list[PaperRun]:
        """Return the runs of a figure that are known."""
        return [self.runs[name] for name in figure.runs if name in self.runs]

    def label(self, run: str) -> str:
        """Return what a run is called."""
        return self.runs[run].label if run in self.runs else run


# ---- reading -------------------------------------------------------------------------------------


def read_paper(document: Mapping[str, Any], folder: Path) -> Paper:
    """Return the content of a ``paper.json``, and of the documents that it names in ``folder``."""
    check_kind(document, "paper", "paper")
    found = read_document(document, PaperSummary, "paper.json")
    idle = {name for name, run in found.runs.items() if run.status == "not asked"}
    asked = tuple(figure for figure in found.figures if not idle.intersection(figure.runs))
    asked = asked or found.figures
    needed = {name for figure in asked for name in figure.runs}
    runs, studies, pages = {}, {}, {}
    for name in [name for name in found.runs if name in needed]:
        run = found.runs[name]
        path, report = _inside(run.document), _inside(run.report)
        content = load_object(folder / path) if path else None
        lost = path is not None and content is None
        runs[name] = structs.replace(
            run,
            title=run.title or name,
            why=f"{run.why} Its document, {path}, cannot be read.".strip() if lost else run.why,
            document=None if content is None else path,
            report=report if report is not None and (folder / report).is_file() else None,
        )
        try:
            if content is not None:
                pages[name] = _page(content)
                if "tuning" in content:
                    tuning = read_results(content).tuning
                    studies[name] = tuning.studies if tuning else ()
        except DataError:  # a run that ended too soon may have a document that is of no use
            continue
    return Paper(found, asked, runs, studies, pages)


def _page(content: Mapping[str, Any]) -> Page:
    """Return the page of a run's document."""
    if content.get("kind") == "inspection":
        return inspection_page(read_inspection(content))
    if "kind" not in content:
        if content.get("one_pass") is True:
            return one_pass_page(read_one_pass(content))
        return comparison_page(read_results(content))
    theory = read_theory(content)
    runs = tuple(run for run in theory.runs if run.optimizer != BESIDE)
    improvements = tuple(each for each in theory.improvements if each.optimizer != BESIDE)
    return theory_page(structs.replace(theory, runs=runs, improvements=improvements))


def _inside(path: str | None) -> str | None:
    """Return a path if it is below the page's folder."""
    found = PurePosixPath(path or "")
    return None if not path or found.is_absolute() or ".." in found.parts else path


# ---- the page ------------------------------------------------------------------------------------


def paper_page(paper: Paper) -> Page:
    """Return the page of all figures that were asked for."""
    charts = {figure.name: _charts(paper, figure) for figure in paper.figures}
    series = [one for page in paper.pages.values() for one in page.legend]
    legend = {one.label: one for one in series if one not in LINES}
    order = {name: place for place, name in enumerate(OPTIMIZERS)}
    return Page(
        "Frequency-aware SGD: the paper's figures, measured here",
        list(_tiles(paper)),
        list(_sentences(paper)),
        [
            *_leading(paper),
            Section("Figures and tables", tables=[_verdicts(paper)], name="figures"),
            *(_section(paper, figure, charts[figure.name]) for figure in paper.figures),
            Section("All of it", command=paper.summary.command),
        ],
        legend=sorted(legend.values(), key=lambda one: order.get(one.optimizer, len(order))),
        colours=[*LINES, *(one for page in paper.pages.values() for one in page.colours)],
        made=machine_words(paper.summary.machine),
        created=paper.summary.created,
        pictures={name: some for parts in charts.values() for name, some in parts.items()},
    )


def _leading(paper: Paper) -> Iterator[Section]:
    """Yield the chart that makes the point: FM on MovieLens-1M, or the next best."""
    for run in LEARNING:
        for one in _of_run(paper, run, "validation"):
            yield Section("How the optimizers learn", [replace(one, name="leading")])
            return


def _of_run(paper: Paper, run: str, names: str) -> list[Chart]:
    """Return charts of a run's page; their titles say of which run they are."""
    charts = paper.pages[run].charts if run in paper.pages else []
    label = paper.label(run)
    return [
        replace(one, title=f"{one.title}: {label}")
        for one in charts
        if re.fullmatch(names, one.name)
    ][:MOST]


def _charts(paper: Paper, figure: PaperFigure) -> dict[str, list[Chart]]:
    """Return the charts of a figure by picture."""
    pictures = {}
    for part, names in CHARTS.get(figure.name, {}).items():
        found = [_tail_chart(family) for family in TAILS] if part == "tails" else []
        for order, run in enumerate(figure.runs):
            if figure.name != "theory" or run == f"theory-{part}":
                for one in _of_run(paper, run, names):
                    found.append(replace(one, name=f"{figure.name}-{order}-{one.name}"))
        if names == RANKS and found:
            found[0] = replace(found[0], note=f"{found[0].note} {LINES_NOTE}")
        if found:
            pictures[f"{figure.name}-{part}" if part else figure.name] = found
    return pictures


def _section(paper: Paper, figure: PaperFigure, pictures: Mapping[str, list[Chart]]) -> Section:
    """Return the charts, what the paper says, what was asked, and the runs."""
    charts = [one for some in pictures.values() for one in some]
    return Section(
        f"{figure.number}: {figure.title}",
        charts,
        list(_remarks(paper, figure)),
        [*_numbers(paper, figure), *_rules(paper, figure), *_files(paper, figure, pictures)],
        figure.command,
        figure.name,
        small=len(charts) > FEW,
    )


# ---- words ---------------------------------------------------------------------------------------


def _tiles(paper: Paper) -> Iterator[Tile]:
    verdicts = [figure.verdict for figure in paper.figures]
    others = [
        f"{verdicts.count(verdict)} {words}"
        for verdict, words in COUNTED.items()
        if verdict != "agrees" and verdict in verdicts
    ]
    agreed = f"{verdicts.count('agrees')} of {len(verdicts)}"
    yield Tile("Figures and tables that agree", agreed, enumerate_words(others))
    for tile in paper.pages[MAIN].tiles if MAIN in paper.pages else ():
        yield replace(tile, note=f"{tile.note} ({paper.label(MAIN)})")
    if paper.summary.mode is not None:
        ended = sum(run.status == ENDED for run in paper.runs.values())
        seconds = paper.summary.seconds
        took = "" if seconds is None else f" in {duration(seconds)}"
        done = f"{ended} of {count_of(len(paper.runs), 'run')} done{took}"
        yield Tile("Sizes", capitalized(paper.summary.mode), done)


def _sentences(paper: Paper) -> Iterator[str]:
    """Yield what to read with care."""
    there = [run for run in paper.runs.values() if run.document is not None]
    if not there:
        yield "Nothing has been run yet."
    if generated := [figure.number for figure in paper.figures if figure.is_on_stand_in]:
        yield (
            f"Generated data stand in for those of the paper in {enumerate_words(generated)}: the "
            "verdicts there are on the method, not on the paper's data."
        )
    if smaller := sum(bool(run.smaller) for run in there):
        larger = "; --full has larger ones" if paper.summary.mode == "quick" else ""
        yield f"Smaller than in the paper, as each figure says: {count_of(smaller, 'run')}{larger}."
    if troubles := [run.label for run in paper.runs.values() if run.status != ENDED]:
        yield f"Not done: {enumerate_words(troubles)}; the figures say why."


def _remarks(paper: Paper, figure: PaperFigure) -> Iterator[str]:
    """Yield what the paper says, the verdict, and what is not as in the paper."""
    yield f"The paper: {figure.claim}"
    rules = "" if figure.verdict == NOT_MEASURED else f" ({_held(figure)} rules hold)"
    yield f"Verdict: {_verdict(figure)}{rules}."
    if figure.private:
        yield f"{figure.private.rstrip('.')}: these are generated."
    for run in paper.runs_of(figure):
        if run.document is None:
            yield f"Missing: {run.label}: {(run.why or run.status).rstrip('.')}."


def _verdict(figure: PaperFigure) -> str:
    """Return the verdict with its sign; on generated data it is said to be that."""
    generated = figure.is_on_stand_in and figure.verdict != NOT_MEASURED
    return f"{SIGNS[figure.verdict]} {figure.verdict}{', on generated data' * generated}"


def _held(figure: PaperFigure) -> str:
    return f"{sum(rule.holds is True for rule in figure.rules)} of {len(figure.rules)}"


def _data(paper: Paper, figure: PaperFigure) -> str:
    """Return what the figure was measured on."""
    runs = paper.runs_of(figure)
    names = enumerate_words(dict.fromkeys(run.dataset for run in runs if run.dataset))
    if figure.data == "none":
        return f"{names or 'the data'}: missing"
    if figure.is_on_stand_in:
        return f"generated, a stand-in for {names}" if names else "generated, a stand-in"
    return names or "simulated"


# ---- tables --------------------------------------------------------------------------------------


def _verdicts(paper: Paper) -> Table:
    """Return a row per figure with a link to its section, sortable by each column."""
    rows = []
    for place, figure in enumerate(paper.figures):
        holds = sum(rule.holds is True for rule in figure.rules)
        data = _data(paper, figure)
        rows.append(
            [
                Cell(figure.number, f"{place:03}", link=f"#{figure.name}"),
                Cell(_verdict(figure), VERDICTS.index(figure.verdict)),
                Cell(_held(figure), holds / max(1, len(figure.rules))),
                Cell(figure.title, figure.title),
                Cell(data, data),
            ]
        )
    head = ["Figure", "Verdict", "Rules that hold", "What it shows", "Data"]
    first = ["ascending"] * len(head)
    return Table(head, rows, "Figures and verdicts", "words", first, note=NOTE)


def _rules(paper: Paper, figure: PaperFigure) -> Iterator[Table]:
    """Yield what was asked, of which run, and the answers."""
    several = len(figure.runs) > 1
    head = ["Answer", *["Run"] * several, "Rule", "Measured"]
    rows = [
        [ANSWERS[rule.holds], *[paper.label(rule.run)] * several, rule.says, rule.measured]
        for rule in figure.rules
    ]
    if rows:
        yield table(head, rows, kind="settings", title="Rules")


def _files(
    paper: Paper, figure: PaperFigure, pictures: Mapping[str, list[Chart]]
) -> Iterator[Table]:
    """Yield how each run ended, what is smaller in it, its command and report; then pictures."""
    rows: list[list[str | Cell | None]] = []
    for run in paper.runs_of(figure):
        took = "" if run.seconds is None else f" in {duration(run.seconds)}"
        why = "" if run.status == ENDED or not run.why else f": {run.why.rstrip('.')}"
        own = Cell("Its own report", link=quote(run.report)) if run.report else None
        ended = f"{capitalized(run.status)}{took}{why}"
        rows.append([capitalized(run.label), ended, run.smaller, own, run.command])
    if rows:
        head = ["Run", "How it ended", "Smaller than in the paper", "Report", "Command"]
        yield table(head, rows, kind="settings", folded="Runs")
    if pictures:
        files = [f"paper-{name}.png" for name in pictures]
        links = [[Cell(name, link=name)] for name in files]
        yield table(["Picture"], links, kind="settings", folded="Pictures")


def _numbers(paper: Paper, figure: PaperFigure) -> Iterator[Table]:
    """Yield the tables of a figure that is one in the paper, or that numbers make clearer."""
    for run in figure.runs:
        title = capitalized(paper.label(run))
        if figure.rates and (studies := paper.studies.get(run)):
            yield replace(_rates(figure, studies), title=title)
        if figure.name in ALL_RUNS and run in paper.pages:
            every = [each for part in paper.pages[run].sections for each in part.tables]
            yield from (replace(each, title=title) for each in every if each.label == "All runs")


def _rates(figure: PaperFigure, studies: Iterable[Study]) -> Table:
    """Return the paper's learning rates beside those found."""
    fm, deepfm = (figure.rates.get(model, {}) for model in ("fm", "deepfm"))
    best = {study.optimizer: study.best for study in studies}
    found = {name: trial.lr for name, trial in best.items() if trial is not None and trial.lr}
    values = {name: trial.value for name, trial in best.items() if trial is not None}

    def apart(name: str) -> float | None:
        one, other = fm.get(name), found.get(name)
        return max(one / other, other / one) if one and other else None

    columns = [
        Column("FM, in the paper", fm.get, "{:g}".format),
        Column("FM, found here", found.get, "{:.3g}".format),
        Column("Times apart", apart, factor),
        Column("Its validation AUC", values.get, score),
        Column("DeepFM, in the paper", deepfm.get, "{:g}".format),
    ]
    items = [(Cell(display_name(name), display_name(name)), name) for name in best]
    return sortable_table("Optimizer", items, columns, label="Learning rates")


# ---- the tails of Figure 1 -----------------------------------------------------------------------

SHOWN_RANKS = 50
TAU, NU = 0.2, 2.0  # as freqsgd theory has them
TAILS: dict[str, tuple[str, Callable[[int], float]]] = {
    "exponential": (f"exp(-{TAU:g} n)", lambda rank: math.exp(-TAU * rank)),
    "polynomial": (f"1 / n^{NU:g}", lambda rank: rank**-NU),
}


def _tail_chart(family: str) -> Chart:
    """Return probabilities that fall by a formula; nothing was measured.

    An exponential tail is straight where ranks are linear.
    """
    formula, weight = TAILS[family]
    ranks = range(1, SHOWN_RANKS + 1)
    total = sum(map(weight, ranks))
    shares = {rank: weight(rank) / total for rank in ranks}
    (label,) = (one.label for one in LINES if one.optimizer == family)
    return chart(
        f"fig1-{family}",
        f"{capitalized(family)} tail, by its formula",
        LINES,
        [{"run": label, "rank": rank, "p": share} for rank, share in shares.items()],
        log_axis("rank", "rank", ranks, grid=False)
        if family == "polynomial"
        else axis("rank", "rank", whole=True, grid=False),
        log_axis("p", "p", shares.values()),
        lines(),
        tips=[("rank", "rank", ".0f"), ("p", "p", ".3~g")],
        note=f"Drawn from the formula, p in proportion to {formula}: no data.",
    )
