"""Mean and spread of runs that differ in their seed alone."""

from __future__ import annotations

from freqsgd.report.comparison import alike
from freqsgd.report.kinds import Kind, is_known
from freqsgd.report.results import Results
from freqsgd.report.tables import plain_table
from freqsgd.report.wording import capitalized, spread

__all__ = ["seeds_table"]


def seeds_table(results: Results, kind: Kind) -> str:
    """Mean and standard deviation of what matters, one row per optimizer with several seeds."""
    scores = [measure for measure in kind.scores if is_known(results, measure)]
    rows: list[list[str | None]] = []
    for runs in alike(results.runs):
        if len({repr(run.seed) for run in runs}) == len(runs) > 1:
            rows.append([runs[0].family, str(len(runs))])
            for measure in scores:
                values = [value for run in runs if (value := measure.of(run)) is not None]
                rows[-1].append(spread(values, measure.show) if len(values) > 1 else None)
    head = ["Optimizer", "Seeds", *(capitalized(measure.name) for measure in scores)]
    return plain_table(head, rows) if rows else ""
