"""Progress: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from freqsgd.cli.output import number

if TYPE_CHECKING:
    from freqsgd.recommender.one_pass import StreamProgress
    from freqsgd.recommender.tune import TuneProgress
    from freqsgd.runs.epochs import Progress

console = Console(stderr=True, highlight=False)
_FIRST_LINE, _LINES_APART = 2.0, 10.0  # seconds of loading, where there are no bars


class Screen:
    """Bars that are shown while it is entered."""

    def __init__(self, *columns: ProgressColumn, **options: Any) -> None:
        hidden = not console.is_terminal
        self._bars = Bars(*columns, console=console, transient=True, disable=hidden, **options)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()


class Watcher(Screen):
    """Shows how far loading and training are.

    Attributes:
        words: of an epoch, where a text is trained on
    """

    def __init__(self) -> None:
        self.words: int | None = None
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
        )
        self._tasks: dict[str, Any] = {}
        self._told: set[tuple[str, int]] = set()
        self._next_line = monotonic() + _FIRST_LINE

    def loading(self, stage: str, done: int, total: int | None) -> None:
        """What :func:`freqsgd.tables.loading.load` reports: a bar, or a line now and then."""
        self._show(stage, done, total, "")
        if not console.is_terminal and monotonic() >= self._next_line:
            share = f" {done / total:4.0%}" if total else ""
            console.print(f"{stage}{share}", soft_wrap=True)
            self._next_line = monotonic() + _LINES_APART

    def training(self, progress: Progress, record: dict[str, Any]) -> None:
        """Show an epoch of :func:`freqsgd.recommender.fit`: a line, and bars in between."""
        name, epochs = record["optimizer"], record["epochs"]
        done = progress.epoch + progress.step / max(progress.steps, 1)
        total = record["epochs_planned"] if record["stopped"] is None else progress.epoch
        note = _best_auc(epochs) if self.words is None else self._speed(done, progress)
        self._show(f"{name}, epoch {min(progress.epoch + 1, total)}", done, total, note, key=name)
        if progress.step == 0 and epochs and (name, len(epochs)) not in self._told:
            self._told.add((name, len(epochs)))
            console.print(f"{name:>15} {_line(epochs[-1])}", soft_wrap=True)

    def _speed(self, done: float, progress: Progress) -> str:
        """Words per second so far."""
        words = done * (self.words or 0)
        return f"{words / progress.seconds:,.0f} words/s" if progress.seconds else ""

    def streaming(self, progress: StreamProgress, record: dict[str, Any]) -> None:
        """What :func:`freqsgd.recommender.one_pass.fit_stream` reports: a bar for the pass."""
        name = _rate_of(record)
        parts = [f"{progress.examples:,} examples"]
        if progress.ne is not None:
            parts.append(f"NE {progress.ne:.4f}")
        if progress.seconds:
            parts.append(f"{progress.examples / progress.seconds:,.0f}/s")
        self._show(name, progress.done, 1.0, ", ".join(parts))

    def passed(self, record: dict[str, Any]) -> None:
        """A pass has come to its end: one line."""
        if "error" in record:
            console.print(f"{_rate_of(record):>25}  diverged: {record['error']}", soft_wrap=True)
            return
        console.print(
            f"{_rate_of(record):>25}  train NE {number(record['train_ne'])}  "
            f"evaluation NE {number(record['test_ne'])}  {record['examples']:,} examples  "
            f"{record['samples_per_second']:,.0f}/s",
            soft_wrap=True,
        )

    def tuning(self, progress: TuneProgress) -> None:
        """What :func:`freqsgd.recommender.tune` reports: one line per trial, one bar for all."""
        name, outcome, left = progress.optimizer, progress.outcome, progress.seconds_left
        note = "" if progress.best is None else f"best validation AUC {progress.best:.4f}"
        text = f"{name}, {progress.job}"
        self._show(text, progress.done, progress.total, note, key="tuning")
        if outcome is not None:
            ended = {"complete": "", "pruned": ", stopped", "diverged": ", diverged"}[outcome.state]
            value, best = (
                "-" if auc is None else f"{auc:.4f}" for auc in (outcome.value, progress.best)
            )
            count = len(outcome.curve)
            epochs = f"{count:2} {'epoch' if count == 1 else 'epochs'}{ended}"
            time_left = "" if left is None else f"  {_minutes(left)} left"
            console.print(
                f"{name:>15} {progress.job:<22} val AUC {value:<6}  {epochs:<19}  "
                f"best {best:<6}{time_left}",
                soft_wrap=True,
            )

    def _show(
        self, text: str, done: float, total: float | None, note: str, key: str | None = None
    ) -> None:
        key = key or text
        if key not in self._tasks:
            for task in self._tasks.values():
                self._bars.update(task, visible=False)
            self._tasks[key] = self._bars.add_task(text, total=total, note=note)
        self._bars.update(
            self._tasks[key], description=text, completed=done, total=total, note=note
        )


def _rate_of(record: dict[str, Any]) -> str:
    return f"{record['optimizer']}, lr {record['lr']:g}"


def _line(epoch: dict[str, Any]) -> str:
    """A finished epoch."""
    parts = [f"epoch {epoch['epoch']:2}", f"train loss {number(epoch['train_loss'])}"]
    if epoch["val_loss"] is not None:
        parts.append(f"val loss {number(epoch['val_loss'])}")
    if "words_per_second" in epoch:
        parts.append(f"{epoch['words_per_second']:>9,.0f} words/s")
    else:
        parts.append(f"val AUC {epoch['val_auc']:.4f}")
    return "  ".join([*parts, f"{epoch['seconds']:6.1f} s"])


def _best_auc(epochs: list[dict[str, Any]]) -> str:
    best = max((epoch["val_auc"] for epoch in epochs), default=None)
    return "" if best is None else f"best validation AUC {best:.4f}"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
