"""What commands that train have in common: open the data, train, show and report the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freqsgd.cli.progress import Watcher
from freqsgd.cli.results import print_results
from freqsgd.cli.session import COMPARISON, check_out, command_line, interruptible, use_threads
from freqsgd.errors import DataError, InterruptedFitError
from freqsgd.files import write_json
from freqsgd.optimizers import Rule
from freqsgd.report import write_report
from freqsgd.report.diagnosis import diagnosis_words
from freqsgd.report.results import read_results
from freqsgd.tables.loading import load, open_stream
from freqsgd.tables.spec import DataOptions, StreamOptions
from freqsgd.words.loading import load_text
from freqsgd.words.spec import TextOptions

if TYPE_CHECKING:
    from freqsgd.compare import AnyData, AnySettings

REPORT = "report.html"
AnyOptions = DataOptions | TextOptions | StreamOptions


@contextmanager
def session(
    options: AnyOptions, threads: int | None, out: Path | None, rules: Iterable[Rule] = ()
) -> Iterator[tuple[Any, Watcher]]:
    """Open the data and compile the kernels; after Ctrl-C say how to go on.

    Of a stream only the names and columns of its files are read yet. Words have kernels that each
    training compiles as it needs them.
    """
    use_threads(threads)
    resumable = "the same command with --resume goes on from here"
    advice = "with --out DIR a run can be resumed" if out is None else resumable
    with Watcher() as watcher, interruptible(f"interrupted; {advice}", InterruptedFitError):
        data: AnyData
        if isinstance(options, TextOptions):
            data = load_text(options, progress=watcher.loading)
            watcher.words = data.train.raw_words
        elif isinstance(options, DataOptions):
            data = load(options, progress=watcher.loading)
            _compile(fades=False)
        else:
            data = open_stream(options)
            for rule in rules:
                _compile(fades=rule.halflife is not None)
        yield data, watcher


def compare_and_report(
    options: AnyOptions,
    rules: Sequence[Rule],
    settings: AnySettings | Sequence[AnySettings],
    *,
    threads: int | None,
    out: Path | None,
    resume: bool,
    **more: Any,
) -> None:
    """Train with each optimizer, print the results and write their report."""
    from freqsgd.compare import compare

    check_out(out, COMPARISON, resume=resume)
    with session(options, threads, out, rules) as (data, watcher):
        results = compare(
            data,
            rules,
            settings,
            threads=threads,
            out=out,
            resume=resume,
            command=command_line(),
            **_listeners(options, watcher),
            **more,
        )
    print_results(results)
    for topic, told in diagnosis_words(read_results(results)):
        print(f"\n{topic}: {told}")
    if out is not None:
        write_report(results, out / REPORT)
        print(f"\nreport: {out / REPORT}")
    if all(run["stopped"] == "diverged" for run in results["runs"]):
        raise DataError("every optimizer diverged: try smaller learning rates (--lr)")


def _listeners(options: AnyOptions, watcher: Watcher) -> dict[str, Any]:
    if isinstance(options, StreamOptions):
        return {"listener": watcher.streaming, "finished": watcher.passed}
    return {"listener": watcher.training}


def trained(
    options: AnyOptions,
    rule: Rule,
    settings: AnySettings,
    *,
    threads: int | None,
    out: Path,
    resume: bool,
    **more: Any,
) -> dict[str, Any]:
    """Return the results of one run, whose model is written to the folder."""
    from freqsgd.compare import add_run, describe_any, fit_any

    with session(options, threads, out, [rule]) as (data, watcher):
        record = fit_any(
            data,
            rule,
            settings,
            threads=threads,
            folder=out,
            resume=resume,
            listener=_listeners(options, watcher)["listener"],
            **more,
        )
        results = describe_any(data, settings, threads, command_line())
        add_run(results, data, record)
    return results


def save_results(results: dict[str, Any], out: Path) -> None:
    """Write the results of a single run and their page into its folder."""
    from freqsgd.runs.documents import RESULTS

    write_json(out / RESULTS, results)
    write_report(results, out / REPORT)


def show_trained(results: dict[str, Any], out: Path) -> None:
    """Print the results of a single run, or raise if it diverged and left no model."""
    for run in results["runs"]:
        if run["stopped"] == "diverged" and run.get("best_epoch") is None:
            raise DataError(run["error"])
    print_results(results)
    print(f"\nmodel: {out}")


def _compile(*, fades: bool) -> None:
    """Compile the kernel of a step, with counts that fade or not."""
    import numpy as np

    from freqsgd.kernels.fm.step import step_kernel

    step_kernel(np.float64 if fades else np.int32)
