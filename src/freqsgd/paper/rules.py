"""What is asked of measurements before the paper's claims count as seen here.

Every rule looks at the document of one run (``results.json``, ``inspect.json`` or ``theory.json``)
and says whether it holds and what was measured. Rules and their thresholds were written down before
the experiments were run; the report prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from freqsgd.report.results import display_name as named
from freqsgd.report.wording import enumerate_words

__all__ = [
    "Finding",
    "Rule",
    "bounds_hold",
    "closes_gap",
    "counts_follow_bounds",
    "few_hold_most",
    "follows_counts",
    "keeps",
    "leads_progressively",
    "leads_training",
    "lower_evaluation_ne",
    "near_tuned",
    "peaks_first",
    "peaks_near",
    "slowest",
    "tail_is_found",
    "uniform_is_sgd",
]

Document = Mapping[str, Any]
ADAPTIVE = ("adagrad", "adam")


@dataclass(frozen=True)
class Finding:
    """What came out."""

    holds: bool | None  # None: what is needed was not measured
    measured: str


@dataclass(frozen=True)
class Rule:
    """A statement that a run's document can be held against."""

    says: str
    look: Callable[[Document], Finding]
    of_data: bool = False  # about the paper's dataset alone: a stand-in cannot tell

    def find(self, document: Document) -> Finding:
        """What the document says of it; a run that ended too soon has no answer."""
        try:
            return self.look(document)
        except (ArithmeticError, LookupError, StopIteration, TypeError, ValueError):
            return Finding(None, "not measured: the run did not come so far")


def slowest(optimizer: str, margin: float = 0.002) -> Rule:
    """It is the last to come near what all reach."""

    def look(results: Document) -> Finding:
        runs = _by_optimizer(results)
        goal = min(max(_curve(run, "val_auc")) for run in runs.values()) - margin
        taken = {
            name: next(n for n, auc in enumerate(_curve(runs[name], "val_auc"), 1) if auc >= goal)
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

    def look(results: Document) -> Finding:
        runs = _by_optimizer(results)
        curves = {name: _curve(runs[name], "train_loss") for name in (optimizer, *others)}
        last = min(epochs, *map(len, curves.values()))
        holds = all(
            curves[optimizer][epoch] < curves[name][epoch]
            for epoch in range(last)
            for name in others
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

    def look(results: Document) -> Finding:
        runs = _by_optimizer(results)
        best = {name: max(_curve(runs[name], "val_auc")) for name in optimizers}
        holds = all(abs(auc - level) <= within for auc in best.values())
        return Finding(holds, f"best validation AUC: {_listed(best, '{:.4f}')}")

    return Rule(
        f"the best validation AUC of {_names(optimizers)} is within {within:g} of {level:g}",
        look,
        of_data=True,
    )


def peaks_first(optimizer: str, others: Sequence[str], behind: float) -> Rule:
    """It has its best epoch before the others, and it is as good."""

    def look(results: Document) -> Finding:
        runs = _by_optimizer(results)
        curves = {name: _curve(runs[name], "val_auc") for name in (optimizer, *others)}
        at = {name: curve.index(max(curve)) + 1 for name, curve in curves.items()}
        best = {name: max(curve) for name, curve in curves.items()}
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

    def look(results: Document) -> Finding:
        moments = _by_optimizer(results)[optimizer]["diagnosis"]["moments"]
        entry = [each for each in moments if each["epoch"] <= epoch][-1]
        holds = entry["pearson"] >= pearson and slope[0] <= entry["slope"] <= slope[1]
        return Finding(
            holds,
            f"after epoch {entry['epoch']}: correlation {entry['pearson']:.3f} "
            f"({entry['pearson_log']:.3f} of logarithms), slope {entry['slope']:.2f}",
        )

    return Rule(
        f"the second moments of {named(optimizer)} have a correlation of {pearson:g} or more with "
        f"the counts of CF-SGD by epoch {epoch}, and a slope of {slope[0]:g} to {slope[1]:g} on "
        "log scales",
        look,
    )


def leads_progressively(optimizer: str, other: str) -> Rule:
    """Its NE over all examples so far is the lower one throughout."""

    def look(results: Document) -> Finding:
        runs = _by_optimizer(results)
        pairs = list(zip(runs[optimizer]["windows"], runs[other]["windows"], strict=True))
        quarters = [pairs[max(1, round(len(pairs) * part / 4)) - 1] for part in (1, 2, 3, 4)]
        changes = [100 * (a["lifetime_ne"] / b["lifetime_ne"] - 1) for a, b in quarters]
        said = ", ".join(f"{change:+.2f}%" for change in changes)
        return Finding(all(change < 0 for change in changes), f"difference of NE: {said}")

    return Rule(
        f"after each quarter of the examples the NE of {named(optimizer)} so far is below that of "
        f"{named(other)}",
        look,
    )


def lower_evaluation_ne(optimizer: str, other: str, percent: float) -> Rule:
    """It is better on days that it did not learn."""

    def look(results: Document) -> Finding:
        runs = _by_optimizer(results)
        own, its = runs[optimizer]["test_ne"], runs[other]["test_ne"]
        change = 100 * (own / its - 1)
        said = f"{named(optimizer)} {own:.4f}, {named(other)} {its:.4f}: {change:+.2f}%"
        return Finding(change <= -percent, said)

    return Rule(
        f"the evaluation NE of {named(optimizer)} is at least {percent:g}% below that of "
        f"{named(other)}",
        look,
    )


def near_tuned(optimizer: str, paper: float, factor: float) -> Rule:
    """The paper's rate is of the size that a search finds here."""

    def look(results: Document) -> Finding:
        studies = results["tuning"]["studies"]
        study = next(each for each in studies if each["optimizer"] == optimizer)
        found = study["best"]["params"]["lr"]
        holds = max(found / paper, paper / found) <= factor
        return Finding(holds, f"{found:.3g} found, {paper:g} in the paper")

    return Rule(
        f"the learning rate found here for {named(optimizer)} is within a factor of {factor:g} of "
        f"the paper's {paper:g}",
        look,
    )


def keeps(optimizer: str, times_weights: Callable[[int], float], words: str) -> Rule:
    """Its state is as large as the paper reckons, for vectors of the model's length."""

    def look(results: Document) -> Finding:
        run = _by_optimizer(results)[optimizer]
        expected = times_weights(results["model"]["dim"])
        ratio = run["state_bytes"] / run["parameter_bytes"]
        said = f"{ratio:.3g} times the weights ({run['state_bytes']:,} bytes)"
        return Finding(abs(ratio - expected) <= 0.02 * expected, said)

    return Rule(f"{named(optimizer)} keeps {words}, within 2%", look)


def closes_gap(optimizer: str, below: str, near: str, percent: float, within: float) -> Rule:
    """Its test loss is well below one and close to the other."""

    def look(results: Document) -> Finding:
        losses = {
            name: _by_optimizer(results)[name]["test_loss"] for name in (below, optimizer, near)
        }
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

    def look(inspection: Document) -> Finding:
        fields = _some(inspection["fields"][:first])
        held = {field["name"]: _share_of_top(field, part) for field in fields}
        most = sum(value > share for value in held.values())
        said = f"in {most} of {len(held)} fields; " + _extremes(held)
        return Finding(most >= of_fields * len(held), said)

    fields = "every field" if of_fields == 1 else f"{of_fields:.0%} of the fields"
    return Rule(
        f"in {fields} the most frequent {part:.0%} of the tokens hold more than {share:.0%} of the "
        "occurrences",
        look,
        of_data=True,
    )


def tail_is_found(of_fields: float, first: int | None = None) -> Rule:
    """Counts fall as the paper's corollaries suppose."""

    def look(inspection: Document) -> Finding:
        fields = _some(inspection["fields"][:first])
        families = [field["fit"]["family"] for field in fields]
        found = {name: families.count(name) for name in ("exponential", "polynomial")}
        counted = ", ".join(f"{count} {name}" for name, count in found.items())
        said = f"{counted}, of {len(fields)}"
        return Finding(sum(found.values()) >= of_fields * len(fields), said)

    fields = "every field" if of_fields == 1 else f"{of_fields:.0%} of the fields"
    return Rule(f"an exponential or polynomial tail can be fitted in {fields}", look, of_data=True)


def bounds_hold() -> Rule:
    """Every statement that the simulation checks."""

    def look(theory: Document) -> Finding:
        checks = _some(theory["checks"])
        failed = [check["statement"] for check in checks if not check["holds"]]
        said = f"{len(checks) - len(failed)} of {len(checks)} statements hold"
        return Finding(not failed, said + (f"; not: {'; '.join(failed)}" if failed else ""))

    return Rule("every bound and lemma that the simulation checks holds", look)


def counts_follow_bounds(optimizer: str) -> Rule:
    """Along the tail it gains on SGD, as much as the bounds say."""

    def look(theory: Document) -> Finding:
        improvement = next(
            each for each in theory["improvements"] if each["optimizer"] == optimizer
        )
        slope = improvement["slope"]
        holds = slope["low"] > 0 and slope["low"] <= slope["predicted"] <= slope["high"]
        said = (
            f"slope {slope['measured']:.3f} ({slope['low']:.3f} to {slope['high']:.3f}), "
            f"predicted {slope['predicted']:.3f}"
        )
        return Finding(holds, said)

    return Rule(
        f"SGD's error over that of {named(optimizer)} rises along the tail, at the slope of the "
        "bounds (within the 95% interval, which is above 0)",
        look,
    )


def uniform_is_sgd(within: float) -> Rule:
    """With tokens equally frequent nothing is to be gained."""

    def look(theory: Document) -> Finding:
        improvement = next(each for each in theory["improvements"] if each["optimizer"] == "fasgd")
        ratios = improvement["measured"]
        said = f"SGD's error over FA-SGD's: {min(ratios):.3f} to {max(ratios):.3f}"
        return Finding(all(abs(ratio - 1) <= within for ratio in ratios), said)

    return Rule(f"equally frequent tokens: FA-SGD's errors are SGD's, within {within:.0%}", look)


def _some(entries: Sequence[Any]) -> Sequence[Any]:
    """Entries, of which there must be one: of none everything would hold."""
    if not entries:
        raise LookupError
    return entries


def _by_optimizer(results: Document) -> dict[str, Document]:
    return {run["optimizer"]: run for run in results["runs"]}


def _curve(run: Document, key: str) -> list[float]:
    return [epoch[key] for epoch in run["epochs"]]


def _share_of_top(field: Document, part: float) -> float:
    """The share of occurrences that the most frequent part of a field's tokens hold.

    Counts between the ranks that are listed lie on a line of logarithms.
    """
    import numpy as np

    ranks, counts = np.array(field["ranks"], dtype=float).T
    every = np.arange(1, field["tokens"] + 1)
    along = np.exp(np.interp(np.log(every), np.log(ranks), np.log(counts)))
    top = max(1, round(part * field["tokens"]))
    return float(along[:top].sum() / along.sum())


def _extremes(shares: Mapping[str, float]) -> str:
    low, high = (choose(shares, key=lambda name: shares[name]) for choose in (min, max))
    return f"least {shares[low]:.0%} ({low}), most {shares[high]:.0%} ({high})"


def _names(optimizers: Sequence[str]) -> str:
    return enumerate_words(map(named, optimizers))


def _listed(values: Mapping[str, Any], form: str) -> str:
    return ", ".join(f"{named(name)} {form.format(value)}" for name, value in values.items())
