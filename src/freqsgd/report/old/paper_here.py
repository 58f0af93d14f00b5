"""What was measured for each figure of the paper, in sentences that hold whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from freqsgd.documents.paper import PaperFigure
from freqsgd.report.old.comparison import ranked
from freqsgd.report.old.diagnosis import read_moments
from freqsgd.report.old.inspection_words import imbalance, tails
from freqsgd.report.old.kinds import kind_of
from freqsgd.report.old.measures import optimum
from freqsgd.report.old.memory_figure import state_words
from freqsgd.report.old.one_pass_words import against_baseline, lowest
from freqsgd.report.old.paper import Paper
from freqsgd.report.old.results import Run
from freqsgd.report.old.theory import Theory
from freqsgd.report.old.theory_words import bounds, in_brief, top_gains
from freqsgd.report.old.tuning import read_studies
from freqsgd.report.old.wording import capitalized, enumerate_words, score, size


def here(paper: Paper, figure: PaperFigure) -> str:
    """What each run of a figure came to, a line for each."""
    say = SAY.get(figure.name)
    if say is None:
        return ""
    told = [
        f"{capitalized(paper.runs[run].label)}: {words}"
        for run in figure.runs
        if run in paper.runs and (words := say(paper, run))
    ]
    return "\n".join(told)


def best_scores(paper: Paper, run: str) -> str:
    """The best validation score of each optimizer, and when it had it."""
    results = paper.results(run)
    if results is None:
        return ""
    by = kind_of(results).by
    told = [
        f"{one.label} {score(best.value)} in epoch {best.epoch.epoch} of {last_epoch(one)}"
        for one in results.runs
        if (best := optimum(one, by)) is not None
    ]
    diverged = [one.label for one in results.runs if one.stopped == "diverged"]
    ends = f" {enumerate_words(diverged)} diverged." if diverged else ""
    return f"best {by.name}: {enumerate_words(told)}.{ends}" if told else ends.strip()


def last_epoch(run: Run) -> int:
    """How many epochs there were."""
    return run.epochs[-1].epoch


def moments(paper: Paper, run: str) -> str:
    """How second moments relate to counts."""
    results = paper.results(run)
    if results is None:
        return ""
    told = []
    for one in read_moments(results):
        parts = {
            "correlation {:.3f}": one.last.pearson,
            "{:.3f} of logarithms": one.last.pearson_log,
            "slope {:.2f} on log scales": one.last.slope,
        }
        shown = [way.format(value) for way, value in parts.items() if value is not None]
        if shown:
            told.append(f"{one.run.label} after epoch {one.last.epoch}: {', '.join(shown)}")
    return f"{'; '.join(told)}." if told else ""


def occurrences(paper: Paper, run: str) -> str:
    """How unequal tokens are, and how their counts fall."""
    inspection = paper.inspection(run)
    if inspection is None:
        return ""
    return " ".join([imbalance(inspection), *tails(inspection.fields)])


def progressive(paper: Paper, run: str) -> str:
    """NE, and differences to the baseline."""
    found = paper.one_pass(run)
    return "" if found is None else f"{lowest(found)} {against_baseline(found)}".rstrip()


def rates(paper: Paper, run: str) -> str:
    """The rates that were found."""
    results = paper.results(run)
    if results is None:
        return ""
    told = []
    for study in read_studies(results):
        if study.best is not None and study.best.lr is not None:
            scored = "" if study.best.value is None else f" ({score(study.best.value)})"
            told.append(f"{study.name} {study.best.lr:.3g}{scored}")
    words = "best learning rates, with their validation AUC"
    return f"{words}: {enumerate_words(told)}." if told else ""


def states(paper: Paper, run: str) -> str:
    """What each optimizer keeps beside the weights."""
    results = paper.results(run)
    if results is None or all(one.state_bytes is None for one in results.runs):
        return ""
    weights = max(one.parameter_bytes or 0 for one in results.runs)
    beside = f"beside {size(weights)} of weights" if weights else "beside the weights"
    told = enumerate_words(f"{one.label} {state_words(one)}" for one in results.runs)
    return f"{beside} an optimizer keeps: {told}."


def test_losses(paper: Paper, run: str) -> str:
    """The losses on the test text."""
    results = paper.results(run)
    return "" if results is None else ranked("test loss", results, kind_of(results).test)


def theorems(paper: Paper, run: str) -> str:
    """Whether bounds hold, and how improvements grow."""
    theory = paper.theory(run)
    return "" if theory is None else " ".join(told_of(theory))


def told_of(theory: Theory) -> Iterator[str]:
    """Bounds, and improvements along the tail, or of all tokens where there is none."""
    yield bounds(theory)
    if theory.problem.tail == "uniform":
        yield from top_gains(theory)
    else:
        yield in_brief(theory)


SAY: dict[str, Callable[[Paper, str], str]] = {
    "fig1": occurrences,
    "fig2": best_scores,
    "fig3ab": moments,
    "fig3cd": best_scores,
    "fig4ab": best_scores,
    "table1": progressive,
    "table2": rates,
    "table3": rates,
    "memory": states,
    "fig5": test_losses,
    "appendix-c": occurrences,
    "theory": theorems,
}
