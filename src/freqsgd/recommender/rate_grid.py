"""The learning rates that one pass tries, and the finished ones of a comparison."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from freqsgd.documents import written
from freqsgd.documents.results import Tried
from freqsgd.errors import DataError
from freqsgd.files import make_folder
from freqsgd.optimizers import Rule
from freqsgd.runs import checkpoint
from freqsgd.runs.documents import MODELS
from freqsgd.runs.resume import check_options, refusing_others

__all__ = ["candidates", "capped"]

_MOST = 0.03


def check_optimizer(rule: Rule) -> None:
    """Refuse an optimizer that cannot learn from a stream."""
    if rule.facts.needs_frequencies:
        raise DataError(
            f"{rule.optimizer} must know beforehand how often each token will occur, which a "
            "stream does not tell: use cfsgd, which counts as it goes"
        )


def candidates(rule: Rule, batch_size: int) -> list[Rule]:
    """Return the rule at its own learning rate, or at each of its optimizer's grid.

    Where batches are counted, rates of the grid are times the root of the batch size.

    Example:
        >>> [rule.lr for rule in candidates(Rule("cfsgd"), batch_size=1024)]
        [0.1, 0.3, 1.0, 3.0, 10.0]
        >>> [rule.lr for rule in candidates(Rule("cfsgd", count="batch"), batch_size=1024)]
        [3.2, 9.6, 32.0, 96.0, 320.0]
    """
    check_optimizer(rule)
    if rule.lr is not None:
        return [rule]
    if not rule.facts.grid:
        raise DataError(f"{rule.optimizer} has no grid of learning rates: give one (--lr)")
    scale = math.sqrt(batch_size) if rule.count == "batch" else 1.0
    return [replace(rule, lr=float(f"{scale * lr:.3g}")) for lr in rule.facts.grid]


def capped(rule: Rule, batch_size: int) -> Rule:
    """Cap the rate of a token, if the rule has no cap and counts occurrences, as cfsgd.

    A token that is new after n examples would have the rate lr * sqrt(n), whatever n. A single
    occurrence moves a row by its rate / batch size, times its gradient: the cap keeps that at 3% of
    lr at most, so it grows with the batch. Where batches are counted there is no cap unless it is
    asked for: TorchRec, which counts them, knows none.

    Example:
        >>> capped(Rule("cfsgd", lr=2.0), batch_size=1000).max_lr
        60.0
    """
    counts = rule.facts.counts and rule.facts.capped and rule.count == "occurrence"
    if not counts or rule.max_lr is not None or rule.lr is None:
        return rule
    return replace(rule, max_lr=_MOST * rule.lr * batch_size)


def best_of(
    rules: list[Rule], train: Callable[[Rule, Path | None], dict[str, Any]], store: RateStore
) -> dict[str, Any]:
    """Train at several rates; return the record of the best, which tells of the others too.

    Args:
        rules: one optimizer at its rates
        train: trains at a rate, in a folder
        store: keeps finished rates
    """
    records: list[dict[str, Any]] = []
    best = 0
    store.check_rates(rules)
    for number, rule in enumerate(rules):
        record = store.record(rule)
        if record is None:
            record = train(rule, store.place(rule))
            store.keep(rule, record)
        records.append(record)
        best = min(best, number, key=lambda k: _loss(records[k]))
        store.settle(rule, best == number and "error" not in record)
    search = [
        written(Tried(each["lr"], each["train_ne"], each["test_ne"], each.get("error")))
        for each in records
    ]
    at_edge = len(rules) > 1 and best in (0, len(rules) - 1)
    return {**records[best], "search": search, "search_edge": at_edge}


def _loss(record: dict[str, Any]) -> float:
    """Return the progressive NE; a rate that diverged is worse than any other."""
    ne = record["train_ne"]
    return float("inf") if ne is None or "error" in record else float(ne)


RATES = "rates"


class RateStore:
    """The rates that are finished, so that a resumed comparison does not run them again.

    A rate is trained in a folder of its own. When it ends its record is written, and then the
    folder becomes that of the optimizer's model, or goes: what a kill leaves undone is done by
    the next call of :meth:`settle`.

    Args:
        folder: the comparison's folder; None to keep nothing
        shared: options of all rates; a record that was made with others is refused
    """

    def __init__(self, folder: Path | None, shared: dict[str, Any]) -> None:
        self._folder, self._shared = folder, shared

    def place(self, rule: Rule) -> Path | None:
        """Return the folder in which a rate is trained; its record lies beside it."""
        return self._folder and self._folder / RATES / f"{rule.optimizer}-{rule.lr:g}"

    def check_rates(self, rules: list[Rule]) -> None:
        """Refuse what is not the beginning of a comparison of these rates of an optimizer.

        Of the rates that are finished only the best has left its model, which might not be the
        best of others.
        """
        if self._folder is None:
            return
        found = set(self._folder.glob(f"{RATES}/{rules[0].optimizer}-[0-9]*.safetensors"))
        if found != {_record_of(self.place(rule)) for rule in rules[: len(found)]}:
            rates = ", ".join(sorted(path.stem for path in found))
            raise DataError(
                f"{self._folder} holds a comparison of other rates ({rates}): use another --out"
            )

    def record(self, rule: Rule) -> dict[str, Any] | None:
        """Return the record of a rate that is finished."""
        path = _record_of(self.place(rule))
        if path is None or not path.exists():
            return None
        try:
            saved = checkpoint.load(path)[1]
        except DataError as error:
            raise DataError(f"{error}: remove it to run this rate again") from error
        with refusing_others(path):
            check_options(path, saved["asked"], {**self._shared, **rule.plain})
            record: dict[str, Any] = saved["record"]
        return record

    def keep(self, rule: Rule, record: dict[str, Any]) -> None:
        """Write the record of a rate that is finished."""
        path = _record_of(self.place(rule))
        if path is not None:
            make_folder(path.parent)
            checkpoint.save(path, {}, {"asked": {**self._shared, **rule.plain}, "record": record})

    def settle(self, rule: Rule, best: bool) -> None:
        """Make a finished rate's folder that of the model if it is the best; else remove it."""
        place = self.place(rule)
        if self._folder is None or place is None or not place.exists():
            return
        if best:
            model = self._folder / MODELS / rule.optimizer
            shutil.rmtree(model, ignore_errors=True)
            make_folder(model.parent)
            place.replace(model)
        else:
            shutil.rmtree(place)


def _record_of(place: Path | None) -> Path | None:
    return place and place.with_name(f"{place.name}.safetensors")
