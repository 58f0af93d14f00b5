"""What a search says, in sentences."""

from __future__ import annotations

from freqsgd.report.results import Results
from freqsgd.report.tuning import CLOSE, GoodRange, good_range, read_studies
from freqsgd.report.wording import enumerate_words, ratio

__all__ = ["factor_words", "good_rates", "tuned"]


def tuned(results: Results) -> str:
    """How much was searched, and what the scores of the search are worth."""
    studies = read_studies(results)
    if not studies:
        return ""
    counts = {len(study.trials) for study in studies}
    each = f"{counts.pop()} trials" if len(counts) == 1 else "Trials"
    sentences = [
        f"{each} of {enumerate_words(study.name for study in studies)}, each chosen by the best "
        "validation AUC. The more trials, the more of that is luck: compare by the test scores."
    ]
    failed = [study.name for study in studies if study.best is None]
    if failed:
        sentences.append(f"No trial of {enumerate_words(failed)} came to its end.")
    return " ".join(sentences)


def good_rates(results: Results) -> str:
    """How wide each optimizer's good range of learning rates is, the widest first."""
    found = [(good, study) for study in read_studies(results) if (good := good_range(study.sweep))]
    if not found:
        return ""
    found.sort(key=lambda pair: -pair[0].factor)
    told = [f"{study.name} {width(good)}" for good, study in found]
    return (
        f"With all else at its best, the validation AUC stays within {CLOSE} of the best: "
        f"{'; '.join(told)}."
    )


def width(good: GoodRange) -> str:
    """The factor, the ends, and whether the good range goes on where the sweep ends."""
    sides = {"below": good.open_below, "above": good.open_above}
    ends = [side for side, is_open in sides.items() if is_open]
    beyond = f", and may go on {enumerate_words(ends)}" if ends else ""
    if good.low == good.high:
        return f"only at {good.low:.3g}{beyond}"
    return f"over a factor of {factor_words(good)}, {good.low:.3g} to {good.high:.3g}{beyond}"


def factor_words(good: GoodRange) -> str:
    """How many times the smallest good rate is the largest."""
    edge = good.open_below or good.open_above
    return f"{'at least ' if edge else ''}{ratio(good.factor)}"
