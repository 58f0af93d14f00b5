"""What a reader must know beside the scores: what was trained on what, and how runs ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from freqsgd.report.comparison import Metric, best
from freqsgd.report.results import Results, Run, display_name
from freqsgd.report.wording import enumerate_words, small_number, thousands

__all__ = ["caveats", "compared", "count_words"]

UNEVEN = 2  # epochs of one run do the same work: a larger spread of speeds is not the optimizer's


def compared(results: Results) -> str:
    """Which optimizers, which model, which data."""
    labels = [run.label for run in results.runs]
    what = f"{model_words(results.model)} on {results.dataset.get('name', 'unnamed data')}"
    if len(labels) == 1:
        opening = f"{labels[0]} trained {what}."
    else:
        opening = f"{count_words(results).capitalize()} trained {what}: {enumerate_words(labels)}."
    sentences = (opening, data_words(results.dataset), split_words(results.splits))
    return " ".join(sentence for sentence in sentences if sentence)


def count_words(results: Results) -> str:
    """How many optimizers ran; how many runs there were, if one ran more than once."""
    distinct = len({run.optimizer for run in results.runs}) == len(results.runs)
    return f"{small_number(len(results.runs))} {'optimizers' if distinct else 'runs'}"


def model_words(model: Mapping[str, Any]) -> str:
    """The model and its sizes."""
    words = display_name(str(model.get("name", "a model")))
    sizes = [f"{model['dim']} dimensions"] if model.get("dim") else []
    hidden = model.get("hidden")
    if isinstance(hidden, list) and hidden:
        sizes.append(f"hidden layers of {enumerate_words(str(width) for width in hidden)}")
    return f"{words} ({', '.join(sizes)})" if sizes else words


def data_words(data: Mapping[str, Any]) -> str:
    """How large the data are and how many labels are positive."""
    sizes = [
        f"{thousands(data[key])} {word}"
        for key, word in (("rows", "samples"), ("fields", "fields"), ("tokens", "tokens"))
        if isinstance(data.get(key), int)
    ]
    if not sizes:
        return ""
    rate = data.get("positive_rate")
    labels = f"; {rate:.1%} of the labels are positive" if isinstance(rate, float) else ""
    return f"The data hold {enumerate_words(sizes)}{labels}."


def split_words(splits: Mapping[str, float]) -> str:
    """How many samples were for what."""
    uses = (("train", "training"), ("validation", "validation"), ("test", "the test"))
    parts = [
        f"{thousands(splits[key]) if splits[key] else 'none'} for {use}"
        for key, use in uses
        if key in splits
    ]
    return f"Of the samples there are {enumerate_words(parts)}." if parts else ""


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
        seeds = {run.settings.get("seed") for run in results.runs}
        seed = f" (seed {seeds.pop()})" if len(seeds) == 1 and None not in seeds else ""
        sentences.append(
            f"Each optimizer ran once{seed}, and scores differ from seed to seed: "
            "small differences do not rank them."
        )
    return " ".join(sentences)


def speed_spread(run: Run) -> float:
    """How many times faster than the slowest epoch the fastest one was."""
    speeds = [speed for epoch in run.epochs if (speed := epoch.samples_per_second)]
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
    found = best(run, by)
    if run.stopped == "epochs" and found is not None and found.epoch.epoch == last:
        return f"{run.label} was at its best in its last epoch, {last}: it may not have finished."
    return ""
