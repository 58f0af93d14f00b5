"""How well word vectors agree with what people say of pairs of words."""

from __future__ import annotations

from freqsgd.report.old.comparison import ranked
from freqsgd.report.old.measures import Measure
from freqsgd.report.old.results import Results, Run
from freqsgd.report.old.wording import enumerate_words

NAMES = {  # with hyphens at which no line is broken
    "wordsim353": "WordSim\N{NON-BREAKING HYPHEN}353",
    "simlex999": "SimLex\N{NON-BREAKING HYPHEN}999",
}


def similarity_measures(results: Results) -> list[Measure]:
    """The correlation with each list of pairs that the results have."""
    return [agreement(results, key) for key in lists(results)]


def lists(results: Results) -> list[str]:
    """The lists of pairs, those we know first."""
    found = {key for run in results.runs for key in run.similarity}
    return [key for key in NAMES if key in found] + sorted(found - set(NAMES))


def agreement(results: Results, key: str) -> Measure:
    """The correlation with one list, and how many of its pairs the vocabulary covers."""

    def value(run: Run) -> float | None:
        return run.similarity[key].spearman if key in run.similarity else None

    return Measure(
        f"{NAMES.get(key, key)}{coverage(results, key)}",
        value,
        higher_is_better=True,
        show=correlation,
    )


def correlation(value: float) -> str:
    """A correlation, to more digits than so few pairs tell."""
    return f"{value:.3f}".replace("-", "\N{MINUS SIGN}")


def coverage(results: Results, key: str) -> str:
    """How many pairs count, if it is the same for all runs, as it is for one vocabulary."""
    found = [run.similarity[key] for run in results.runs if key in run.similarity]
    counts = {(one.covered, one.pairs) for one in found if one.covered is not None and one.pairs}
    told = [f", {covered:,} of {pairs:,} pairs" for covered, pairs in counts]
    return told[0] if len(told) == 1 else ""


def similarity_words(results: Results) -> str:
    """The correlations, and what they are worth."""
    told = [ranked(measure.name, results, measure) for measure in similarity_measures(results)]
    if not any(told):
        return ""
    meaning = "These are Spearman's correlations of the vectors' cosines with people's judgement"
    return " ".join([*filter(None, told), f"{meaning}{chance_words(results)}."])


def chance_words(results: Results) -> str:
    """How far chance alone moves a correlation over so few pairs: one standard error."""
    fewest: dict[str, int] = {}
    for run in results.runs:
        for key, one in run.similarity.items():
            if one.spearman is not None and one.covered is not None and one.covered > 2:
                fewest[key] = min(one.covered, fewest.get(key, one.covered))
    errors = [f"{1 / (fewest[key] - 1) ** 0.5:.2f}" for key in lists(results) if key in fewest]
    if not errors:
        return ""
    sizes = enumerate_words(dict.fromkeys(errors))
    return f"; by the choice of pairs alone they vary by about {sizes}"
