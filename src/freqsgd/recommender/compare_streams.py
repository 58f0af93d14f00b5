"""Several optimizers on one pass over a stream, each at the best of its learning rates."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from freqsgd.errors import DataError
from freqsgd.files import locked, make_folder, read_json, write_json
from freqsgd.optimizers import Rule
from freqsgd.recommender.memory import check_memory, stream_plan
from freqsgd.recommender.one_pass import Pass, StreamListener, fit_stream
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.stream_pass import candidates, pass_settings
from freqsgd.runs.checkpoint import MODEL
from freqsgd.runs.documents import MODELS, RESULTS, check_empty, check_names, heading
from freqsgd.runs.resume import BEFORE, CHECKPOINT
from freqsgd.tables.clicks import ClickStream
from freqsgd.tables.stream import Stream

__all__ = ["RATES", "RateStore", "add_run", "compare_streams", "describe_stream"]


def compare_streams(
    stream: Stream,
    rules: Iterable[Rule],
    settings: Settings,
    plan: Pass | None = None,
    *,
    threads: int | None = None,
    out: Path | None = None,
    resume: bool = False,
    listener: StreamListener | None = None,
    finished: Callable[[dict[str, Any]], None] | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Train with each optimizer; return the content of ``results.json``.

    The best of an optimizer's rates is that of the lowest NE over the days that it learned from,
    each example scored before it was learned; the evaluation days play no part.

    Args:
        stream: the examples
        rules: the optimizers; one without learning rate is trained at each of its grid
        settings: what they share
        plan: windows, checkpoints and evaluation days
        threads: of the kernels
        out: a folder for results and the best model of each optimizer
        resume: go on where a comparison with the same options ended
        listener: called after each batch with the progress and record of the current rate
        finished: called with the record of every rate that has come to its end
        command: the command line that does the same, for ``results.json``
    """
    rules, plan = list(rules), plan or Pass()
    check_names(rules)
    tried = [candidates(rule, settings.batch_size) for rule in rules]
    for rule in chain(*tried):  # before the first of them has taken its hours
        check_memory(stream_plan(stream, rule, settings))
    if out is not None:
        _check_folder(out, resume)
    results = describe_stream(stream, settings, threads, command)
    store = None if out is None else RateStore(out, _shared(stream, settings, plan))

    def train(rule: Rule) -> dict[str, Any]:
        folder = None if store is None else store.place(rule)
        options: dict[str, Any] = {"folder": folder, "resume": resume, "listener": listener}
        record = fit_stream(stream, rule, settings, plan, threads=threads, **options)[1]
        if finished is not None:
            finished(record)
        return record

    with locked(out):
        for its_rates in tried:
            model = None if out is None else out / MODELS / its_rates[0].optimizer
            add_run(results, stream, _best_of(its_rates, train, store, model))
            if out is not None:
                write_json(out / RESULTS, results)
    return results


def _check_folder(out: Path, resume: bool) -> None:
    """Refuse a folder with other results, or with a run that is no comparison."""
    if any((out / name).exists() for name in (MODEL, CHECKPOINT)):
        raise DataError(f"{out} holds a single run (freqsgd train): use another --out")
    if not resume:
        check_empty(out, RESULTS, RATES)


def _best_of(
    rules: list[Rule],
    train: Callable[[Rule], dict[str, Any]],
    store: RateStore | None,
    model: Path | None,
) -> dict[str, Any]:
    """The record of the best rate, which tells of the others too."""
    records: list[dict[str, Any]] = []
    best = 0
    if store is not None:
        store.check_rates(rules)
    for number, rule in enumerate(rules):
        record = None if store is None else store.record(rule)
        if record is None:
            record = train(rule)
            if store is not None:
                store.keep(rule, record)
        records.append(record)
        best = min(best, number, key=lambda k: _loss(records[k]))
        if store is not None and model is not None:
            store.settle(rule, model, best == number and "error" not in record)
    search = [
        {"lr": record["lr"], "train_ne": record["train_ne"], "test_ne": record["test_ne"],
         "error": record.get("error")}
        for record in records
    ]  # fmt: skip
    at_edge = len(rules) > 1 and best in (0, len(rules) - 1)
    return {**records[best], "search": search, "search_edge": at_edge}


def _loss(record: dict[str, Any]) -> float:
    """What the best rate has least of; a rate that diverged is worse than any other."""
    ne = record["train_ne"]
    return float("inf") if ne is None or "error" in record else float(ne)


def _shared(stream: Stream, settings: Settings, plan: Pass) -> dict[str, Any]:
    """What decides on results, whatever the rate."""
    how = {**pass_settings(settings), **asdict(plan)}
    del how["checkpoint_examples"]
    return {"data": stream.fingerprint, **how}


def describe_stream(
    stream: Stream, settings: Settings, threads: int | None, command: str | None = None
) -> dict[str, Any]:
    """The content of ``results.json`` without runs."""
    results = heading(
        stream.summary(), {"train": 0, "test": 0}, settings.about_model, threads, command
    )
    return {**results, "one_pass": True}


def add_run(results: dict[str, Any], stream: Stream, record: dict[str, Any]) -> None:
    """Add a run, and what its end tells of the examples."""
    results["runs"].append(record)
    if record["stopped"] == "end":
        results["splits"] = {"train": record["examples"], "test": record["test_rows"] or 0}
        if isinstance(stream, ClickStream) and "best_possible" not in results:
            results["best_possible"] = _best_possible(stream, len(record["days"]))


def _best_possible(stream: ClickStream, learned: int) -> dict[str, float | None]:
    """What the true probabilities score on the days learned from, and on those after."""
    train, test = stream.truth(0, learned), stream.truth(learned, len(stream.days))
    return {"train_ne": train.ne, "test_ne": test.ne, "test_auc": test.auc}


RATES = "rates"


class RateStore:
    """The rates that are finished, so that a resumed comparison does not run them again.

    A rate is trained in a folder of its own. When it ends its record is written, and then the
    folder becomes that of the optimizer's model, or goes: what a kill leaves undone is done by
    the next call of :meth:`settle`.

    Args:
        folder: of the comparison
        shared: options of all rates; a record that was made with others is refused
    """

    def __init__(self, folder: Path, shared: dict[str, Any]) -> None:
        self._folder, self._shared = folder, shared

    def place(self, rule: Rule) -> Path:
        """The folder in which a rate is trained."""
        return self._folder / RATES / f"{rule.optimizer}-{rule.lr:g}"

    def check_rates(self, rules: list[Rule]) -> None:
        """Refuse what is not the beginning of a comparison of these rates of an optimizer.

        Of the rates that are finished only the best has left its model, which might not be the
        best of others.
        """
        found = set(self._folder.glob(f"{RATES}/{rules[0].optimizer}-[0-9]*.json"))
        if found != {self._path(rule) for rule in rules[: len(found)]}:
            rates = ", ".join(sorted(path.stem for path in found))
            raise DataError(
                f"{self._folder} holds a comparison of other rates ({rates}): use another --out"
            )

    def record(self, rule: Rule) -> dict[str, Any] | None:
        """The record of a rate that is finished."""
        path = self._path(rule)
        if not path.exists():
            return None
        try:
            saved = read_json(path.read_bytes(), dict)
            record: dict[str, Any] = saved["record"]
            then: dict[str, Any] = BEFORE | saved["asked"]
            if "checksum" in saved and saved["checksum"] != _checksum(saved):
                raise ValueError("it was changed after it was written")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} is damaged ({error}): remove it to run this rate again"
            ) from error
        for name, now in self._asked(rule).items():
            if then.get(name) != now:
                raise DataError(
                    f"cannot resume from {path}: it was written with {name} {then.get(name)}, now "
                    f"{name} is {now}; use the same options and data, or another folder"
                )
        return record

    def keep(self, rule: Rule, record: dict[str, Any]) -> None:
        """Write the record of a rate that is finished."""
        content: dict[str, Any] = {"asked": self._asked(rule), "record": record}
        content["checksum"] = _checksum(content)
        write_json(self._path(rule), content)

    def settle(self, rule: Rule, model: Path, best: bool) -> None:
        """The folder of a finished rate becomes that of the model if it is the best, or goes."""
        place = self.place(rule)
        if not place.exists():
            return
        if best:
            shutil.rmtree(model, ignore_errors=True)
            make_folder(model.parent)
            place.replace(model)
        else:
            shutil.rmtree(place)

    def _asked(self, rule: Rule) -> dict[str, Any]:
        """Options, as JSON reads them back."""
        asked: dict[str, Any] = json.loads(json.dumps({**self._shared, **rule.plain}))
        return asked

    def _path(self, rule: Rule) -> Path:
        place = self.place(rule)
        return place.with_name(f"{place.name}.json")


def _checksum(content: dict[str, Any]) -> str:
    """Tell what is asked for and the record from others."""
    text = json.dumps([content["asked"], content["record"]], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
