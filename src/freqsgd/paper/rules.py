"""What is asked of measurements before the paper's claims count as seen here.

A rule looks at the document of one run (``results.json``, ``inspect.json`` or ``theory.json``) and
says whether it holds and what was measured. Rules and their thresholds were written down before
the experiments were run; the report prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from freqsgd.documents.inspection import InspectedField, Inspection
from freqsgd.documents.results import Results, Run
from freqsgd.documents.theory import Improvement, Theory
from freqsgd.report.results import display_name as named
from freqsgd.report.wording import enumerate_words

ADAPTIVE = ("adagrad", "adam")
_CONDITION = "Condition of "  # how the statement of a condition begins in theory.json
_T = TypeVar("_T")


@dataclass(frozen=True)
class Finding:
    """The answer to a rule."""

    holds: bool | None  # None: what is needed was not measured
    measured: str


@dataclass(frozen=True)
class Rule:
    """A statement that a run's document can be held against."""

    says: str
    look: Callable[[Any], Finding]  # given Results, an Inspection or a Theory
    of_data: bool = False  # about the paper's dataset alone: a stand-in cannot tell

    def find(self, document: Any) -> Finding:
        """Hold a run's document against it; a run that ended too soon has no answer."""
        try:
            return self.look(document)
        except (ArithmeticError, LookupError, ValueError):
            return Finding(None, "not measured: the run did not come so far")


def slowest(optimizer: str, margin: float = 0.002) -> Rule:
    """It is the last to come near what all reach."""

    def look(results: Results) -> Finding:
        curves = {name: _curve(run, "val_auc") for name, run in _by_optimizer(results).items()}
        goal = min(map(max, curves.values())) - margin
        taken = {
            name: 1 + next(at for at, auc in enumerate(curves[name]) if auc >= goal)
            for name in (optimizer, "cfsgd", *ADAPTIVE)
        }
        others = [epochs for name, epochs in taken.items() if name != optimizer]
        said = f"validation AUC {goal:.4f} after epochs: {_listed(taken, '{}')}"
        return Finding(taken[optimizer] > max(others), said)

    return Rule(
        f"{named(optimizer)} needs more epochs than CF-SGD, Adagrad and Adam to reach the lowest "
        f"of the best validation AUCs less {margin:g}",
        look,
    )


def leads_training(optimizer: str, others: Sequence[str], epochs: int) -> Rule:
    """Its training loss is the lowest from the start."""

    def look(results: Results) -> Finding:
        curves = _curves(results, (optimizer, *others), "train_loss")
        last = min(epochs, *map(len, curves.values()))
        own = curves[optimizer][:last]
        holds = all(
            mine < its for name in others for mine, its in zip(own, curves[name], strict=False)
        )
        losses = {name: curve[last - 1] for name, curve in curves.items()}
        when = f"in epoch {last}" if last == epochs else f"in epoch {last}, the last that all have"
        return Finding(holds, f"{when}: {_listed(losses, '{:.4f}')}")

    spans = "the first epoch" if epochs == 1 else f"each of the first {epochs} epochs"
    return Rule(
        f"the training loss of {named(optimizer)} is below that of {_names(others)} in {spans}",
        look,
    )


def peaks_near(level: float, within: float, optimizers: Sequence[str]) -> Rule:
    """Best validation AUCs are about what the paper says."""

    def look(results: Results) -> Finding:
        curves = _curves(results, optimizers, "val_auc")
        best = {name: max(curve) for name, curve in curves.items()}
        holds = all(abs(auc - level) <= within for auc in best.values())
        return Finding(holds, f"best validation AUC: {_listed(best, '{:.4f}')}")

    return Rule(
        f"the best validation AUC of {_names(optimizers)} is within {within:g} of {level:g}",
        look,
        of_data=True,
    )


def peaks_first(optimizer: str, others: Sequence[str], behind: float) -> Rule:
    """It has its best epoch before the others, and it is as good."""

    def look(results: Results) -> Finding:
        curves = _curves(results, (optimizer, *others), "val_auc")
        best = {name: max(curve) for name, curve in curves.items()}
        at = {name: curve.index(best[name]) + 1 for name, curve in curves.items()}
        sooner = all(at[optimizer] < at[name] for name in others)
        good = best[optimizer] >= max(best.values()) - behind
        shown = ", ".join(f"{named(name)} {best[name]:.4f} in epoch {at[name]}" for name in curves)
        return Finding(sooner and good, shown)

    return Rule(
        f"{named(optimizer)} has its best validation AUC in an earlier epoch than "
        f"{_names(others)}, at most {behind:g} below the best of all",
        look,
    )


def follows_counts(
    optimizer: str, *, pearson: float, slope: tuple[float, float], epoch: int
) -> Rule:
    """Its second moments are nearly proportional to CF-SGD's counts."""

    def look(results: Results) -> Finding:
        moments = _known(_by_optimizer(results)[optimizer].diagnosis).moments
        entry = [each for each in moments if each.epoch <= epoch][-1]
        correlation, found = _known(entry.pearson), _known(entry.slope)
        holds = correlation >= pearson and slope[0] <= found <= slope[1]
        return Finding(
            holds,
            f"after epoch {entry.epoch}: correlation {correlation:.3f} "
            f"({_known(entry.pearson_log):.3f} of logarithms), slope {found:.2f}",
        )

    return Rule(
        f"the second moments of {named(optimizer)} have a correlation of {pearson:g} or more with "
        f"the counts of CF-SGD by epoch {epoch}, and a slope of {slope[0]:g} to {slope[1]:g} on "
        "log scales",
        look,
    )


def leads_progressively(optimizer: str, other: str) -> Rule:
    """Its NE over all examples so far is the lower one throughout."""

    def look(results: Results) -> Finding:
        runs = _by_optimizer(results)
        pairs = list(zip(runs[optimizer].windows, runs[other].windows, strict=True))
        quarters = [pairs[max(1, round(len(pairs) * part / 4)) - 1] for part in (1, 2, 3, 4)]
        changes = [_percent_above(own.lifetime_ne, its.lifetime_ne) for own, its in quarters]
        said = ", ".join(f"{change:+.2f}%" for change in changes)
        return Finding(all(change < 0 for change in changes), f"difference of NE: {said}")

    return Rule(
        f"after each quarter of the examples the NE of {named(optimizer)} so far is below that of "
        f"{named(other)}",
        look,
    )


def lower_evaluation_ne(optimizer: str, other: str, percent: float) -> Rule:
    """It is better on days that it did not learn."""

    def look(results: Results) -> Finding:
        values = _of_each(results, (optimizer, other), "test_ne")
        change = _percent_above(values[optimizer], values[other])
        return Finding(change <= -percent, f"{_listed(values, '{:.4f}')}: {change:+.2f}%")

    return Rule(
        f"the evaluation NE of {named(optimizer)} is at least {percent:g}% below that of "
        f"{named(other)}",
        look,
    )


def near_tuned(optimizer: str, paper: float, factor: float) -> Rule:
    """The paper's rate is of the size that a search finds here."""

    def look(results: Results) -> Finding:
        studies = {study.optimizer: study for study in _known(results.tuning).studies}
        found = _known(_known(studies[optimizer].best).lr)
        holds = max(found / paper, paper / found) <= factor
        return Finding(holds, f"{found:.3g} found, {paper:g} in the paper")

    return Rule(
        f"the learning rate found here for {named(optimizer)} is within a factor of {factor:g} of "
        f"the paper's {paper:g}",
        look,
    )


def keeps(optimizer: str, times_weights: Callable[[int], float], words: str) -> Rule:
    """Its state is as large as the paper says, for vectors of the model's length."""

    def look(results: Results) -> Finding:
        run = _by_optimizer(results)[optimizer]
        expected, state = times_weights(_known(results.model.dim)), _known(run.state_bytes)
        ratio = state / _known(run.parameter_bytes)
        said = f"{ratio:.3g} times the weights ({state:,.0f} bytes)"
        return Finding(abs(ratio - expected) <= 0.02 * expected, said)

    return Rule(f"{named(optimizer)} keeps {words}, within 2%", look)


def closes_gap(optimizer: str, below: str, near: str, percent: float, within: float) -> Rule:
    """Its test loss is well below one and close to the other."""

    def look(results: Results) -> Finding:
        losses = _of_each(results, (below, optimizer, near), "test_loss")
        gain = 100 * (1 - losses[optimizer] / losses[below])
        behind = 100 * (losses[optimizer] / losses[near] - 1)
        said = f"test loss: {_listed(losses, '{:.3f}')}"
        return Finding(gain >= percent and behind <= within, said)

    return Rule(
        f"the test loss of {named(optimizer)} is at least {percent:g}% below that of "
        f"{named(below)} and at most {within:g}% above that of {named(near)}",
        look,
    )


def few_hold_most(part: float, share: float, of_fields: float, first: int | None = None) -> Rule:
    """Some of the tokens hold most of the occurrences."""

    def look(inspection: Inspection) -> Finding:
        held = {field.name: _share_of_top(field, part) for field in inspection.fields[:first]}
        most = sum(value > share for value in held.values())
        said = f"in {most} of {len(held)} fields; " + _extremes(held)
        return Finding(most >= of_fields * len(held), said)

    return Rule(
        f"in {_fields(of_fields)} the most frequent {part:.0%} of the tokens hold more than "
        f"{share:.0%} of the occurrences",
        look,
        of_data=True,
    )


def tail_is_found(of_fields: float, first: int | None = None) -> Rule:
    """Counts fall as the paper's corollaries suppose."""

    def look(inspection: Inspection) -> Finding:
        families = [field.fit.family for field in inspection.fields[:first]]
        found = {name: families.count(name) for name in ("exponential", "polynomial")}
        counted = ", ".join(f"{count} {name}" for name, count in found.items())
        holds = sum(found.values()) >= of_fields * len(families)
        return Finding(holds, f"{counted}, of {len(families)}")

    said = f"an exponential or polynomial tail can be fitted in {_fields(of_fields)}"
    return Rule(said, look, of_data=True)


def bounds_hold() -> Rule:
    """Every statement that the simulation checks is true, conditions left aside."""
    return _checks("every bound and lemma that the simulation checks holds", conditions=False)


def conditions_are_met() -> Rule:
    """The corollaries apply to what was simulated."""
    return _checks("the condition of the corollaries is met", conditions=True)


def _checks(says: str, conditions: bool) -> Rule:
    """Return the rule that all conditions, or all other statements, hold."""

    def look(theory: Theory) -> Finding:
        checks = [
            check for check in theory.checks if check.statement.startswith(_CONDITION) == conditions
        ]
        if not checks:  # of none everything would hold
            raise LookupError
        failed = [check.statement for check in checks if not check.holds]
        kind = "conditions are met" if conditions else "statements hold"
        said = f"{len(checks) - len(failed)} of {len(checks)} {kind}"
        return Finding(not failed, said + (f"; not: {'; '.join(failed)}" if failed else ""))

    return Rule(says, look)


def counts_follow_bounds(optimizer: str) -> Rule:
    """Along the tail it gains on SGD, as much as the bounds say."""

    def look(theory: Theory) -> Finding:
        slope = _known(_improvement(theory, optimizer).slope)
        said = (
            f"slope {slope.measured:.3f} ({slope.low:.3f} to {slope.high:.3f}), "
            f"predicted {slope.predicted:.3f}"
        )
        return Finding(slope.low > 0 and slope.low <= slope.predicted <= slope.high, said)

    return Rule(
        f"SGD's error over that of {named(optimizer)} rises along the tail, at the slope of the "
        "bounds (within the 95% interval, which is above 0)",
        look,
    )


def uniform_is_sgd(within: float) -> Rule:
    """With tokens equally frequent nothing is to be gained."""

    def look(theory: Theory) -> Finding:
        ratios = _improvement(theory, "fasgd").measured
        said = f"SGD's error over FA-SGD's: {min(ratios):.3f} to {max(ratios):.3f}"
        return Finding(all(abs(ratio - 1) <= within for ratio in ratios), said)

    return Rule(f"equally frequent tokens: FA-SGD's errors are SGD's, within {within:.0%}", look)


def _known(value: _T | None) -> _T:
    """Return what was measured; of what was not there is no answer."""
    if value is None:
        raise LookupError
    return value


def _by_optimizer(results: Results) -> dict[str, Run]:
    return {run.optimizer: run for run in results.runs}


def _curve(run: Run, measure: str) -> list[float]:
    return [_known(getattr(epoch, measure)) for epoch in run.epochs]


def _curves(results: Results, optimizers: Sequence[str], measure: str) -> dict[str, list[float]]:
    """Return what was measured after each epoch; a run without epochs has no answer."""
    runs = _by_optimizer(results)
    return {name: _curve(runs[name], measure) for name in optimizers}


def _of_each(results: Results, optimizers: Sequence[str], measure: str) -> dict[str, float]:
    runs = _by_optimizer(results)
    return {name: _known(getattr(runs[name], measure)) for name in optimizers}


def _percent_above(own: float | None, other: float | None) -> float:
    return 100 * (_known(own) / _known(other) - 1)


def _improvement(theory: Theory, optimizer: str) -> Improvement:
    return {each.optimizer: each for each in theory.improvements}[optimizer]


def _share_of_top(field: InspectedField, part: float) -> float:
    """Return the share of occurrences that the most frequent part of a field's tokens hold.

    Counts between the ranks that are listed lie on a line of logarithms.
    """
    import numpy as np

    ranks, counts = np.array(field.ranks, dtype=float).T
    every = np.arange(1, field.tokens + 1)
    along = np.exp(np.interp(np.log(every), np.log(ranks), np.log(counts)))
    top = max(1, round(part * field.tokens))
    return float(along[:top].sum() / along.sum())


def _extremes(shares: Mapping[str, float]) -> str:
    low, high = (choose(shares, key=lambda name: shares[name]) for choose in (min, max))
    return f"least {shares[low]:.0%} ({low}), most {shares[high]:.0%} ({high})"


def _fields(share: float) -> str:
    return "every field" if share == 1 else f"{share:.0%} of the fields"


def _names(optimizers: Sequence[str]) -> str:
    return enumerate_words(map(named, optimizers))


def _listed(values: Mapping[str, Any], form: str) -> str:
    return ", ".join(f"{named(name)} {form.format(value)}" for name, value in values.items())
