"""The tables of the paper with the numbers of the runs, sortable by each column."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from freqsgd.documents.paper import PaperFigure
from freqsgd.report.old.kinds import kind_of
from freqsgd.report.old.measures import kept
from freqsgd.report.old.one_pass_words import ne_score, signed
from freqsgd.report.old.paper import Paper
from freqsgd.report.old.results import Results, display_name
from freqsgd.report.old.tables import Cells, sortable_table
from freqsgd.report.old.tuning import read_studies
from freqsgd.report.old.wording import capitalized, factor, megabytes, score, thousands


def own_tables(paper: Paper, figure: PaperFigure) -> Iterator[tuple[str, str]]:
    """Titles and tables of a figure that is one in the paper, or that numbers make clearer."""
    make = TABLES.get(figure.name)
    for run in figure.runs if make else ():
        if make and run in paper.runs and (table := make(paper, figure, run)):
            yield capitalized(paper.runs[run].label), table


def names(results: Results) -> list[tuple[str, str]]:
    """Runs as they are shown and as they are sorted."""
    return [(run.label, run.label) for run in results.runs]


def one_pass(paper: Paper, figure: PaperFigure, run: str) -> str:
    """Table 1: evaluation NE and its difference to the baseline."""
    found = paper.one_pass(run)
    if found is None:
        return ""
    base = found.baseline
    columns: list[Cells] = [
        ("Evaluation NE", ne_score, [each.test_ne for each in found.runs]),
        (
            f"Against {base.label}, %" if base else "",
            signed,
            [found.difference(each) for each in found.runs],
        ),
        ("NE while training", ne_score, [each.train_ne for each in found.runs]),
        ("Learning rate", "{:g}".format, [each.lr for each in found.runs]),
        ("State, MB", megabytes, [each.state_bytes for each in found.runs]),
    ]
    return sortable_table("Optimizer", names(found.results), columns)


def rates_of(figure: PaperFigure, model: str) -> dict[str, float]:
    """The paper's learning rates of a model, by the optimizer's name for readers."""
    return {display_name(name): lr for name, lr in figure.rates.get(model, {}).items()}


def rates(paper: Paper, figure: PaperFigure, run: str) -> str:
    """Tables 2 and 3: the paper's learning rates beside those found."""
    results = paper.results(run)
    studies = [] if results is None else read_studies(results)
    if not studies:
        return ""
    given, of_deepfm = (
        [rates_of(figure, model).get(study.name) for study in studies] for model in ("fm", "deepfm")
    )
    found = [None if study.best is None else study.best.lr for study in studies]
    apart = [
        max(one / other, other / one) if one and other else None
        for one, other in zip(given, found, strict=True)
    ]
    scores = [None if study.best is None else study.best.value for study in studies]
    columns: list[Cells] = [
        ("FM, in the paper", "{:g}".format, given),
        ("FM, found here", "{:.3g}".format, found),
        ("Times apart", factor, apart),
        ("Its validation AUC", score, scores),
        ("DeepFM, in the paper", "{:g}".format, of_deepfm),
    ]
    return sortable_table("Optimizer", [(study.name,) * 2 for study in studies], columns)


def memory(paper: Paper, figure: PaperFigure, run: str) -> str:
    """What optimizers keep, in bytes and against the weights."""
    results = paper.results(run)
    if results is None:
        return ""
    shares = [
        one.state_bytes / one.parameter_bytes
        if one.state_bytes is not None and one.parameter_bytes
        else None
        for one in results.runs
    ]
    columns: list[Cells] = [
        ("State, bytes", thousands, [one.state_bytes for one in results.runs]),
        ("Weights, bytes", thousands, [one.parameter_bytes for one in results.runs]),
        ("State, times the weights", "{:.3g}".format, shares),
    ]
    return sortable_table("Optimizer", names(results), columns)


def losses(paper: Paper, figure: PaperFigure, run: str) -> str:
    """Losses of text models in the end."""
    results = paper.results(run)
    if results is None:
        return ""
    by = kept(kind_of(results).by, kind_of(results).by.name)
    columns: list[Cells] = [
        ("Test loss", score, [one.test_loss for one in results.runs]),
        (capitalized(by.name), score, [by.of(one) for one in results.runs]),
        ("State, MB", megabytes, [one.state_bytes for one in results.runs]),
    ]
    return sortable_table("Optimizer", names(results), columns)


TABLES: dict[str, Callable[[Paper, PaperFigure, str], str]] = {
    "table1": one_pass,
    "table2": rates,
    "table3": rates,
    "memory": memory,
    "fig5": losses,
}
