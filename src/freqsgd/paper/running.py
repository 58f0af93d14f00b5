"""Run what the paper's figures need, once each, and write ``paper.json`` as it goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from freqsgd.documents import SCHEMA
from freqsgd.documents.paper import (
    NOT_MEASURED,
    PaperFigure,
    PaperRun,
    PaperSummary,
    Ruling,
    Verdict,
)
from freqsgd.documents.results import Machine
from freqsgd.errors import DataError
from freqsgd.files import locked, write_json
from freqsgd.paper.experiments import FIGURES, RUNS, Figure, Run
from freqsgd.paper.process import PROGRAM, execute, last_line
from freqsgd.paper.rules import Finding, Rule
from freqsgd.paper.tasks import (
    DONE,
    FAILED,
    LOG,
    MEASURED,
    NO_DATA,
    NOT_ASKED,
    NOT_INSTALLED,
    OUT_OF_TIME,
    PAPER,
    RUNNING,
    PaperFolder,
    Task,
    plan_task,
)
from freqsgd.report.wording import duration
from freqsgd.runs.machine import describe_machine

_ERROR = "freqsgd: error: "


@dataclass(frozen=True)
class PaperProgress:
    """How far the whole is."""

    run: str  # the current run
    title: str
    number: int  # which it is, from 1
    count: int  # of all that are done now
    share: float  # of the expected time that is over
    seconds_left: float
    said: str = ""  # the last line of its log
    entry: PaperRun | None = None  # what came of it, once it has ended
    cached: bool = False  # it was there already


Listener = Callable[[PaperProgress], None]


def chosen_figures(only: Sequence[str], figures: Sequence[Figure] = FIGURES) -> tuple[Figure, ...]:
    """Return the figures of these names, in the paper's order; all if none is named."""
    known = {name for figure in figures for name in (figure.name, *figure.also)}
    for name in only:
        if name not in known | {"all"}:
            listed = ", ".join(figure.name for figure in figures)
            raise DataError(f"--only knows no {name!r}: there are all, {listed}")
    if not only or "all" in only:
        return tuple(figures)
    asked = set(only)
    return tuple(figure for figure in figures if asked & {figure.name, *figure.also})


def run_paper(
    out: Path,
    *,
    only: Sequence[str] = (),
    full: bool = False,
    threads: int | None = None,
    seed: int | None = None,
    command: str | None = None,
    listener: Listener | None = None,
    figures: Sequence[Figure] = FIGURES,
    runs: Mapping[str, Run] = RUNS,
    program: Sequence[str] = PROGRAM,
) -> dict[str, Any]:
    """Run what is not there yet; return the content of ``paper.json``.

    Args:
        out: the folder for it, and for the runs; an earlier one is gone on with
        only: names of figures; the others keep what was measured of them before
        full: the paper's sizes instead of those that take minutes
        threads: of every run
        seed: of every run that has one
        command: the command line that does the same, for ``paper.json``
        listener: called some times a second
        figures: of the paper
        runs: by name, what the figures need
        program: what runs commands
    """
    asked = chosen_figures(only, figures)
    folder = PaperFolder(out)
    with locked(out):
        numbers = {"--threads": threads, "--seed": seed}
        given = [f"{name} {value}" for name, value in numbers.items() if value is not None]
        tasks = {name: plan_task(name, run, full, given) for name, run in runs.items()}
        document = _Document(
            folder,
            figures,
            tasks,
            options=[*["--full"] * full, *given],
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            mode="full" if full else "quick",
            command=command,
            machine=msgspec.convert(describe_machine(threads), Machine),
        )
        wanted = dict.fromkeys(name for figure in asked for name in figure.runs)
        todo = [task for name in wanted if not (task := tasks[name]).lacks]
        for task in (tasks[name] for name in wanted if tasks[name].lacks):
            document.note(task, folder.entry(task, task.lacks, task.why))
        content = document.write()
        clock = Clock([task.way.usual for task in todo])
        for number, task in enumerate(todo, 1):
            tell = partial(_tell, listener, clock, (task.name, task.title, number, len(todo)))
            tell(0.0, "")
            entry = document.runs[task.name]
            cached = entry.status == DONE
            if not cached:
                entry = do_run(folder, task, program, tell)
                document.note(task, entry)
                content = document.write()
            clock.ended(None if cached else entry.seconds)
            tell(0.0, "", entry, cached)
        return content


def do_run(
    folder: PaperFolder, task: Task, program: Sequence[str], watch: Callable[[float, str], None]
) -> PaperRun:
    """Run a task's command, or go on with what was cut short."""
    status, before = folder.look(task)
    goes_on = status in (RUNNING, OUT_OF_TIME) and task.resumable
    if not goes_on:
        folder.clear(task)
        before = 0.0
    status, why = RUNNING, ""
    folder.seal(task, status, before)
    own = folder.of(task)
    command = [*task.command, "--out", str(own), *["--resume"] * goes_on]
    begun = time.monotonic()
    try:
        code = execute(program, command, own / LOG, task.way.budget, watch)
        status, why = _judge(folder, task, code, time.monotonic() - begun)
    finally:
        seconds = before + time.monotonic() - begun
        folder.seal(task, status, seconds)
    return folder.entry(task, status, why or task.why, seconds)  # of a stand-in: how to get data


def _judge(folder: PaperFolder, task: Task, code: int, seconds: float) -> tuple[str, str]:
    """Return the status of a run that has ended, and why it is not done."""
    if code == 0:
        whole = folder.document(task) is not None
        return (DONE, "") if whole else (FAILED, f"it wrote no {task.written[0]}")
    if seconds > task.way.budget:
        how = "goes on with it" if task.resumable else "begins it again"
        return OUT_OF_TIME, f"stopped after {duration(task.way.budget)}; the same command {how}"
    said = last_line(folder.of(task) / LOG).removeprefix(_ERROR)
    if code < 0:
        return FAILED, f"ended by signal {-code}; it said last: {said or '-'}"
    return FAILED, said or f"ended with exit code {code}"


def _tell(
    listener: Listener | None,
    clock: Clock,
    place: tuple[str, str, int, int],
    seconds: float,
    said: str,
    entry: PaperRun | None = None,
    cached: bool = False,
) -> None:
    if listener is not None:
        share, left = clock.share(seconds), clock.left(seconds)
        listener(PaperProgress(*place, share, left, said, entry, cached))


class Clock:
    """How long the rest will take, from what runs usually take and how this machine compares.

    Args:
        usual: seconds of each; what is there already takes none, which is known when it ends
    """

    def __init__(self, usual: Sequence[float]) -> None:
        self._left = list(usual)
        self._total = sum(usual)
        self._expected = self._taken = 0.0

    def ended(self, seconds: float | None) -> None:
        """Note that the current run has ended after so many; None: it was there already."""
        usual = self._left.pop(0)
        if seconds is not None:
            self._expected += usual
            self._taken += seconds

    def left(self, seconds: float) -> float:
        """Return seconds to the end, so many after the current run began."""
        if not self._left:
            return 0.0
        pace = self._taken / self._expected if self._expected else 1.0
        return max(0.0, pace * self._left[0] - seconds) + pace * sum(self._left[1:])

    def share(self, seconds: float) -> float:
        """Return the part of the expected time that is over."""
        if not self._left:
            return 1.0
        here = min(seconds, self._left[0])
        return (self._total - sum(self._left) + here) / self._total


# ---- paper.json ----------------------------------------------------------------------------------


class _Document:
    """``paper.json`` as runs come to their ends; it begins with what an earlier call measured.

    Args:
        folder: that it is written to
        figures: of the paper
        tasks: every run of the table
        options: with which a figure is measured again as it was
        about: what it says beside figures and runs
    """

    def __init__(
        self,
        folder: PaperFolder,
        figures: Sequence[Figure],
        tasks: Mapping[str, Task],
        options: Sequence[str],
        **about: Any,
    ) -> None:
        self._folder, self._figures, self._options, self._about = folder, figures, options, about
        self.runs: dict[str, PaperRun] = {}
        self._measured: dict[str, Any] = {}  # the documents of the runs
        for task in tasks.values():
            status, seconds = folder.look(task)
            entry = folder.entry(task, NOT_ASKED)
            if status in MEASURED and folder.document(task) is not None:
                entry = folder.entry(task, status, task.why, seconds)
            self.note(task, entry)

    def note(self, task: Task, entry: PaperRun) -> None:
        """Keep what came of a run."""
        self.runs[task.name] = entry
        self._measured[task.name] = self._folder.document(task) if entry.document else None

    def write(self) -> dict[str, Any]:
        """Write ``paper.json`` with the verdicts of now; return its content."""
        figures = []
        for figure in self._figures:
            command = ("freqsgd paper --only", figure.name, *self._options)
            figures.append(judged(figure, self.runs, self._measured, " ".join(command)))
        summary = PaperSummary(
            schema=SCHEMA,
            kind="paper",
            **self._about,
            seconds=sum(run.seconds or 0.0 for run in self.runs.values()),
            figures=tuple(figures),
            runs=self.runs,
        )
        content: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(summary))
        write_json(self._folder.path / PAPER, content)
        return content


def judged(
    figure: Figure, runs: Mapping[str, PaperRun], documents: Mapping[str, Any], command: str
) -> PaperFigure:
    """Return a figure as ``paper.json`` has it.

    Args:
        figure: of the paper
        runs: by name
        documents: what the runs measured, None where there is nothing
        command: that measures it again
    """
    rulings = []
    for name, rule in figure.rules:
        finding = _look(rule, runs[name], documents[name])
        rulings.append(Ruling(name, rule.says, finding.holds, finding.measured))
    names = ("name", "number", "title", "claim", "brief", "private", "rates", "runs")
    return PaperFigure(
        **{name: getattr(figure, name) for name in names},
        data=_data(figure, [runs[name] for name in figure.runs]),
        verdict=verdict([ruling.holds for ruling in rulings]),
        rules=tuple(rulings),
        command=command,
    )


def verdict(answers: Sequence[bool | None]) -> Verdict:
    """Return one word for the answers of a figure's rules; None is a rule without an answer.

    >>> verdict([True, True]), verdict([True, None]), verdict([False, None]), verdict([None])
    ('agrees', 'agrees in part', 'differs', 'not measured')
    """
    known = [answer for answer in answers if answer is not None]
    if not known:
        return NOT_MEASURED
    if not any(known):
        return "differs"
    return "agrees" if all(known) and len(known) == len(answers) else "agrees in part"


def _look(rule: Rule, run: PaperRun, document: Any) -> Finding:
    if document is None:
        return Finding(None, f"not measured: {run.status}")
    if rule.of_data and run.stand_in:
        return Finding(None, f"not measured: this is about {run.dataset}")
    return rule.find(document)


def _data(figure: Figure, runs: Sequence[PaperRun]) -> str:
    """Return what the figure was measured on."""
    if any(run.status in (NO_DATA, NOT_INSTALLED, NOT_ASKED) for run in runs):
        return "none"
    if figure.private or any(run.stand_in for run in runs):
        return "stand-in"
    return "real" if any(run.dataset for run in runs) else "simulated"
