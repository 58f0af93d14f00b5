"""What was chosen for every run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from freqsgd.report.old.results import Results, Run
from freqsgd.report.old.tables import plain_table
from freqsgd.report.old.wording import size, thousands

ENDINGS = {
    "patience": "early stopping",
    "epochs": "all epochs done",
    "end": "all examples seen",
    "interrupted": "interrupted",
    "diverged": "diverged",
}
SETTING_NAMES = {
    "lr": "Learning rate",
    "weight_decay": "Weight decay",
    "weight_decay_rule": "Decay rule",
    "state_rule": "State",
    "batch_size": "",
    "seed": "Seed",
}
OPTION_NAMES = {
    "weight_decay_power": "Decay's power of frequency",
    "max_lr": "Cap on a token's rate",
    "halflife": "Samples in which counts halve",
    "count": "What is counted",
    "dense_lr": "Rate of bias and network",
    "linear_lr_scale": "Rate of linear weights, times that of vectors",
    "linear_decay_scale": "Decay of linear weights, times that of vectors",
    "model": "Model",
    "loss": "Loss",
    "dim": "Dimension",
    "hidden": "Hidden layers",
    "dropout": "Dropout",
    "init_scale": "Scale of the start",
    "window": "Words on each side",
    "windows": "Windows",
    "negatives": "Noise words of a sample",
    "subsample": "Words are subsampled above frequency",
    "max_norm": "Longest word vector",
    "patience": "Patience",
    "lr_decay": "Learning rate over time",
    "diagnose": "Diagnosed",
    "checkpoint_steps": "Steps between checkpoints",
}
VALUE_NAMES = {
    ("count", "batch"): "batches that hold a token",
    ("diagnose", "True"): "yes",
    ("lr_decay", "linear"): "linear to 0",
    ("lr_decay", "epochs"): "linear to 0, epoch by epoch",
    ("windows", "full"): "within the paragraph only",
    ("windows", "all"): "cut at the ends of a paragraph",
    ("subsample", "0"): "none",
}
USUAL = {"count": "occurrence"}  # goes without saying


def settings_table(
    results: Results,
    batch: str,
    inapplicable: Collection[str] = (),
    option_names: Mapping[str, str] = OPTION_NAMES,
) -> str:
    """What was chosen for every run, and how it ended: a column per run, a row per setting.

    ``batch`` is what the size of a batch is called; ``inapplicable`` options mean nothing here.
    """
    rows: dict[str, list[str | None]] = {}
    for place, run in enumerate(results.runs):
        for name, value in settings(run, batch, inapplicable, option_names):
            rows.setdefault(name, [None] * len(results.runs))[place] = value
    head = ["Setting", *(run.label for run in results.runs)]
    return plain_table(head, [[name, *values] for name, values in rows.items()], kind="settings")


def settings(
    run: Run, batch: str, inapplicable: Collection[str], option_names: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """What is known of a run's settings, by name."""
    for key, name in {**SETTING_NAMES, "batch_size": batch}.items():
        if (value := getattr(run, key)) not in (None, ""):
            yield name, setting(value)
    for key, value in options(run.options):
        told_elsewhere = key in (*SETTING_NAMES, *inapplicable, "optimizer", "epochs")
        if not told_elsewhere and value != USUAL.get(key):
            yield option_names.get(key, key), VALUE_NAMES.get((key, value), value)
    if run.parameter_bytes:
        yield "Weights", size(run.parameter_bytes)
    if run.examples is not None:
        yield "Examples", thousands(run.examples)
    else:
        planned = f" of {run.epochs_planned}" if run.epochs_planned else ""
        yield "Epochs", f"{len(run.epochs)}{planned}"
    if run.stopped:
        still = ", while its losses still fell" if run.still_learning else ""
        yield "Ended by", ENDINGS.get(run.stopped, run.stopped) + still


def options(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Options by name, also those within others."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from options(entry, str(key))
    elif value is not None and name:
        yield name, setting(value)


def setting(value: object) -> str:
    """A setting as text."""
    return f"{value:g}" if isinstance(value, float) else str(value)
