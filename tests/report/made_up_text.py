"""Results of text models to write reports of. Every number is made up: nothing was trained."""

from __future__ import annotations

import math
from typing import Any

LEVELS = {  # optimizer: end of validation loss, speed of learning, seconds per epoch, lr, state
    "sgd": (6.02, 0.12, 41.0, 1.0, 0),
    "cfsgd": (5.61, 0.33, 43.0, 1.0, 34_536),
    "adam": (5.58, 0.40, 61.0, 0.025, 20_756_136),
    "fasgd": (5.62, 0.33, 42.0, 1.0, 34_536),
    "adagrad": (5.66, 0.30, 55.0, 0.1, 10_378_068),
    "rowwise-adagrad": (5.70, 0.28, 47.0, 0.1, 69_072),
}
CLASSES = {  # optimizer: test loss less that of all words
    "sgd": (-1.15, 2.43, 3.86),
    "cfsgd": (-1.02, 2.16, 2.95),
    "adam": (-1.03, 2.20, 3.04),
}
PAIRS = {"wordsim353": (353, 203), "simlex999": (999, 482)}
RAW_WORDS, WORDS, VOCABULARY = 2_051_910, 1_681_243, 4_317


def make_text_run(optimizer: str, /, **changes: Any) -> dict[str, Any]:
    """A run of skip-gram over 20 epochs."""
    end, speed, pace, lr, state = LEVELS[optimizer]
    epochs = [
        {
            "epoch": epoch,
            "train_loss": end - 0.16 + 1.4 * math.exp(-speed * epoch),
            "val_loss": end + 1.3 * math.exp(-speed * epoch),
            "seconds": pace * epoch,
            "words_per_second": RAW_WORDS / pace,
            "lr": lr * (1 - (epoch - 1) / 20),
        }
        for epoch in range(1, 21)
    ]
    test = epochs[-1]["val_loss"] - 0.06
    run = {
        "optimizer": optimizer,
        "lr": lr,
        "max_lr": None,
        "weight_decay": 0.0,
        "seed": 0,
        "batch_size": 96,
        "options": {"settings": {"window": 4, "max_norm": 1.0, "lr_decay": "epochs"}},
        "state_bytes": state,
        "state_rule": "made up",
        "parameter_bytes": 10_378_068,
        "epochs_planned": 20,
        "stopped": "epochs",
        "error": None,
        "epochs": epochs,
        "seconds": epochs[-1]["seconds"],
        "best_epoch": 20,
        "best_val_loss": epochs[-1]["val_loss"],
        "test_loss": test,
        "test_loss_by_frequency": by_class(optimizer, test, 1.0),
        "test_loss_by_centre_frequency": by_class(optimizer, test, 0.1),
        "similarity": {
            name: {"spearman": 0.5 - 0.05 * test, "pairs": pairs, "covered": covered}
            for name, (pairs, covered) in PAIRS.items()
        },
        "words_per_second": RAW_WORDS / pace,
    }
    return {**run, **changes}


def by_class(optimizer: str, test: float, scale: float) -> dict[str, float]:
    """Losses of head, torso and tail."""
    apart = CLASSES.get(optimizer, CLASSES["cfsgd"])
    names = ("head", "torso", "tail")
    return {name: test + scale * more for name, more in zip(names, apart, strict=True)}


def make_text_results(*runs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Results of ``words compare --loss softmax``, or with the runs given."""
    results = {
        "schema": 1,
        "created": "2024-05-01T12:00:00+00:00",
        "command": "freqsgd words compare --loss softmax --dataset wikitext-2 --seed 0",
        "machine": {"cpu": "Made-up CPU", "cores": 2, "threads": 2},
        "dataset": {
            "name": "wikitext-2",
            "kind": "text",
            "tokens": VOCABULARY,
            "words": WORDS,
            "raw_words": RAW_WORDS,
            "paragraphs": 17_556,
        },
        "splits": {"train": WORDS, "validation": 174_012, "test": 195_803},
        "model": {"name": "skipgram", "loss": "softmax", "dim": 300, "window": 4, "hidden": []},
        "runs": list(runs) or [make_text_run(name) for name in ("sgd", "cfsgd", "adam")],
    }
    return {**results, **changes}


def make_cbow_run(optimizer: str, /, **changes: Any) -> dict[str, Any]:
    """A run of CBOW, which has no losses by centre word."""
    run = make_text_run(optimizer, **changes)
    del run["test_loss_by_centre_frequency"]
    return run
