"""All scores of one measure in a sentence."""

from __future__ import annotations

from freqsgd.report.comparison import alike, standings
from freqsgd.report.measures import Measure
from freqsgd.report.results import Results
from freqsgd.report.wording import enumerate_words, small_number, spread

__all__ = ["ranked"]


def ranked(what: str, results: Results, by: Measure) -> str:
    """Who scores what, best first, and who has no score; of several seeds, mean and spread."""
    found = sorted(standings(results, by), key=lambda one: -by.gain(one.value))
    if not found:
        return ""
    counts = {one.seeds for one in found}
    if max(counts) > 1:
        seeds = f"{small_number(max(counts))} seeds" if len(counts) == 1 else "seeds"
        what += f", mean and standard deviation over {seeds}"
    entries = []
    for one in found:
        seeds = f" ({one.seeds} {'seed' if one.seeds == 1 else 'seeds'})" if len(counts) > 1 else ""
        entries.append(f"{one.label} {spread(one.values, by.show)}{seeds}")
    known = {run.family for one in found for run in one.runs}
    missing = [runs[0].family for runs in alike(results.runs) if runs[0].family not in known]
    none = f" There is none for {enumerate_words(missing)}." if missing else ""
    return f"{what}: {enumerate_words(entries)}.{none}"
