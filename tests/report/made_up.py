"""Results to write reports of. Every number in them is made up: nothing was trained."""

from __future__ import annotations

import math
from typing import Any

HOSTILE = (  # a name that would run code if it were not escaped
    "</script></style><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\"&"
)
LIMITS = {  # optimizer: start, end and speed of learning, epochs, seconds per epoch, lr, state
    "sgd": (0.702, 0.8170, 0.18, 27, 0.33, 10.0, 0),
    "cfsgd": (0.741, 0.8175, 0.75, 8, 0.36, 1.0, 39_000),
    "adagrad": (0.752, 0.8150, 0.35, 17, 0.52, 0.02, 2_533_960),
    "adam": (0.748, 0.8205, 0.60, 9, 0.97, 0.001, 5_067_920),
    "fasgd": (0.743, 0.8172, 0.72, 8, 0.35, 1.0, 0),
    "cfadam": (0.744, 0.8190, 0.65, 8, 0.44, 0.001, 40_000),
    "rowwise-adagrad": (0.745, 0.8160, 0.40, 15, 0.41, 0.2, 39_000),
}
TAILS = {
    "sgd": (0.8197, 0.7702, 0.7211),
    "cfsgd": (0.8192, 0.7718, 0.7104),
    "adagrad": (0.8189, 0.7724, 0.7203),
    "adam": (0.8231, 0.7781, 0.7224),
}


def make_run(optimizer: str, /, **changes: Any) -> dict[str, Any]:
    start, end, speed, last, pace, lr, state = LIMITS[optimizer]
    epochs = []
    for epoch in range(1, last + 1):
        auc = (
            end - (end - start) * math.exp(-speed * (epoch - 1)) - 0.0008 * max(0, epoch - last + 2)
        )
        epochs.append(
            {
                "epoch": epoch,
                "train_loss": 0.46 + 0.19 * math.exp(-0.9 * speed * epoch),
                "val_loss": 1.05 - 0.65 * auc,
                "val_auc": auc,
                "val_ne": 1.5 - 0.9 * auc,
                "seconds": epoch * pace,
                "samples_per_second": 800_167 / pace,
                "lr": lr,
            }
        )
    best = max(epochs, key=lambda entry: entry["val_auc"])
    head, torso, tail = TAILS.get(optimizer, (0.819, 0.771, 0.715))
    run = {
        "optimizer": optimizer,
        "lr": lr,
        "weight_decay": 0.0,
        "weight_decay_rule": "none",
        "state_rule": "one counter per row" if optimizer == "cfsgd" else "made up",
        "seed": 0,
        "batch_size": 1024,
        "options": {"threads": 2, "lr_decay": "constant"},
        "state_bytes": state,
        "parameter_bytes": 2_533_960,
        "epochs": epochs,
        "epochs_planned": 60,
        "stopped": "patience",
        "seconds": epochs[-1]["seconds"],
        "best_epoch": best["epoch"],
        "best_val_auc": best["val_auc"],
        "test_loss": 1.052 - 0.65 * best["val_auc"],
        "test_auc": best["val_auc"] - 0.0025,
        "test_ne": 0.77,
        "test_auc_by_frequency": {"head": head, "torso": torso, "tail": tail},
        "samples_per_second": 800_167 / pace,
    }
    return {**run, **changes}


def make_results(*runs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Results of ``compare`` with its four default optimizers, or with the runs given."""
    names = ("sgd", "cfsgd", "adagrad", "adam")
    results = {
        "schema": 1,
        "created": "2024-05-01T12:00:00+00:00",
        "command": "freqsgd compare --dataset movielens-1m --model fm --seed 0 --out results",
        "machine": {
            "cpu": "Made-up CPU",
            "cores": 2,
            "threads": 2,
            "torch": "2.9",
            "python": "3.11",
        },
        "dataset": {
            "name": "movielens-1m",
            "rows": 1_000_209,
            "fields": 2,
            "tokens": 9_748,
            "positive_rate": 0.575,
            "source": "ratings.dat",
        },
        "splits": {"train": 800_167, "validation": 100_021, "test": 100_021},
        "model": {"name": "fm", "dim": 64, "hidden": None},
        "runs": list(runs) or [make_run(name) for name in names],
    }
    return {**results, **changes}


def point(epoch: int, auc: float | None, seconds: float | None = None) -> dict[str, Any]:
    """One epoch with little but a validation AUC."""
    return {"epoch": epoch, "train_loss": 1 / (1 + epoch), "val_auc": auc, "seconds": seconds}


def plain(text: str) -> str:
    """Words without the spaces and hyphens that keep a number beside its unit or name."""
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NON-BREAKING HYPHEN}", "-")


def make_study(optimizer: str, **changes: Any) -> dict[str, Any]:
    """A search of ten trials; the last was stopped, the one before diverged."""
    lr = LIMITS[optimizer][5]
    trials: list[dict[str, Any]] = [
        {
            "number": number,
            "value": 0.79 + 0.03 * math.sin(number) ** 2,
            "state": "complete",
            "epochs": 8,
            "params": {
                "lr": lr * 3 ** math.sin(5 * number),
                "init_scale": 0.5,
                "decay_epochs": 12 if number % 2 else None,
                "weight_decay": None,
            },
        }
        for number in range(10)
    ]
    trials[8] |= {"value": None, "state": "diverged"}
    trials[9] |= {"value": 0.77, "state": "pruned"}
    best = max(trials[:8], key=lambda trial: trial["value"])
    sweep = [
        {"lr": best["params"]["lr"] * 2.0**k, "val_auc": best["value"] - 0.0006 * k * k}
        for k in range(-4, 5)
    ]
    sweep[-1]["val_auc"] = None
    study = {"optimizer": optimizer, "trials": trials, "best": best, "lr_sweep": sweep}
    return {**study, **changes}


def make_tuned(*studies: dict[str, Any], runs: list[dict[str, Any]] | None = None) -> Any:
    """Results of ``tune``."""
    runs = runs or [make_run(study["optimizer"]) for study in studies]
    return make_results(*runs, tuning={"trials": 10, "studies": list(studies)})
