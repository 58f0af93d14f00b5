"""What a reader must know beside the scores: what was trained on what, and how runs ended."""

from __future__ import annotations

from freqsgd.report.old.comparison import alike
from freqsgd.report.old.data_words import model_words
from freqsgd.report.old.kinds import Kind
from freqsgd.report.old.measures import Metric, best, optimum
from freqsgd.report.old.results import Results, Run
from freqsgd.report.old.wording import enumerate_words, score, small_number

UNEVEN = 2  # epochs of one run do the same work: a larger spread of speeds is not the optimizer's


def compared(results: Results, kind: Kind) -> str:
    """Which optimizers, which model, which data."""
    what = f"{model_words(results.model)} on {results.dataset.name or 'unnamed data'}"
    if len(results.runs) == 1:
        opening = f"{results.runs[0].label} trained {what}."
    else:
        who = enumerate_words(map(group_words, alike(results.runs)))
        opening = f"{count_words(results).capitalize()} trained {what}: {who}."
    return f"{opening} {kind.data(results)}".rstrip()


def group_words(runs: list[Run]) -> str:
    """An optimizer, and how often it ran."""
    if len(runs) == 1:
        return runs[0].label
    return f"{runs[0].family} ({small_number(len(runs))} times)"


def count_words(results: Results) -> str:
    """How many optimizers ran; how many runs there were, if one ran more than once."""
    distinct = len({run.optimizer for run in results.runs}) == len(results.runs)
    return f"{small_number(len(results.runs))} {'optimizers' if distinct else 'runs'}"


def caveats(results: Results, by: Metric) -> str:
    """What limits what the numbers can show."""
    sentences = [sentence for run in results.runs if (sentence := ending(run, by))]
    uneven = [run.label for run in results.runs if speed_spread(run) > UNEVEN]
    if uneven:
        sentences.append(
            f"Some epochs of {enumerate_words(uneven)} took over {UNEVEN} times as long as "
            "others, as when kernels are compiled or the machine does other work: "
            "do not rely on the seconds."
        )
    optimizers = {run.optimizer for run in results.runs}
    if 1 < len(optimizers) == len(results.runs):
        seeds = {run.seed for run in results.runs}
        seed = f" (seed {seeds.pop()})" if len(seeds) == 1 and None not in seeds else ""
        sentences.append(
            f"Each optimizer ran once{seed}, and scores differ from seed to seed: "
            "small differences do not rank them."
        )
    return " ".join(sentences)


def speed_spread(run: Run) -> float:
    """How many times faster than the slowest epoch the fastest one was."""
    speeds = [speed for epoch in run.epochs if (speed := epoch.speed)]
    return max(speeds) / min(speeds) if speeds else 1.0


def ending(run: Run, by: Metric) -> str:
    """What is unusual about how a run ended."""
    last = run.epochs[-1].epoch if run.epochs else 0
    so_far = f"after {last} {'epoch' if last == 1 else 'epochs'}" if last else "in its first epoch"
    if run.stopped == "diverged":
        reason = f": {run.error.rstrip('.')}" if run.error else ""
        before = " Its figures are from the time before." if last else ""
        return f"{run.label} diverged {so_far}{reason}.{before}"
    if run.stopped == "interrupted":
        planned = f" ({run.epochs_planned} were planned)" if run.epochs_planned else ""
        return f"{run.label} was interrupted {so_far}{planned}."
    if run.stopped is None and run.epochs_planned and last < run.epochs_planned:
        return f"{run.label} is not done: {last} of {run.epochs_planned} epochs."
    if run.still_learning:
        return (
            f"{run.label} ended by patience after epoch {last} while its training and validation "
            "losses still fell: it might have become better. Compare it with a larger patience."
        )
    return whether_best(run, by, last)


def whether_best(run: Run, by: Metric, last: int) -> str:
    """Whether the epoch that was kept is the best that the run had, or could have had."""
    found, top = best(run, by), optimum(run, by)
    if found is None or top is None:
        return ""
    if found.value != top.value:
        return (
            f"{run.label} had a better {by.name}, {score(top.value)}, in epoch {top.epoch.epoch} "
            f"than in epoch {found.epoch.epoch}, whose weights were kept: stop early to keep those."
        )
    if run.stopped == "epochs" and found.epoch.epoch == last and not rate_fell(run):
        return f"{run.label} was at its best in its last epoch, {last}: it may not have finished."
    return ""


def rate_fell(run: Run) -> bool:
    """Whether the learning rate fell as planned, so that the last epoch is meant to be the best."""
    rates = [epoch.lr for epoch in run.epochs if epoch.lr is not None]
    return bool(rates) and rates[-1] < rates[0]
