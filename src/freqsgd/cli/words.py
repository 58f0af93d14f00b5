"""``freqsgd words train`` and ``compare``: word vectors of text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli import options as opt
from freqsgd.cli.options import DATA, MODEL, OPTIMIZER, made, option, path_option
from freqsgd.cli.session import target
from freqsgd.cli.training import (
    check_single,
    compare_and_report,
    save_results,
    show_trained,
    trained,
)
from freqsgd.errors import DataError
from freqsgd.optimizers import CAPPED, Rule
from freqsgd.words.settings import LOSSES, TextSettings, check_rule
from freqsgd.words.spec import TextOptions

__all__ = ["compare", "train"]

_Dataset = Annotated[
    str | None,
    option(
        "Built-in text: zipf-text, wikitext-2 or wikitext-103 (default: zipf-text).", panel=DATA
    ),
]
_TextPath = Annotated[
    str | None,
    path_option(
        "Your own text: a file with a paragraph per line, .gz too, or a folder of these.",
        "--data",
    ),
]
_MinCount = Annotated[
    int | None,
    option(
        "Occurrences below which words are left out (default: 50 for wikitext, else 5).",
        panel=DATA,
    ),
]
_MaxVocab = Annotated[
    int | None,
    option("Maximum size of the vocabulary, the most frequent words (default: all).", panel=DATA),
]
_Unknown = Annotated[
    str,
    option("What becomes of rare words: remove, or token, one for all of them.", panel=DATA),
]
_Tokenizer = Annotated[
    str,
    option("What separates words: whitespace, or words, punctuation too.", panel=DATA),
]
_Lowercase = Annotated[
    bool | None,
    option(
        "Convert words to lower case (default: for wikitext, and with --tokenizer words).",
        "--lowercase/--no-lowercase",
        panel=DATA,
    ),
]
_Model = Annotated[str, option("Model to train: skipgram or cbow.", panel=MODEL)]
_Loss = Annotated[
    str, option("Loss: negative (negative sampling) or softmax over all words.", panel=MODEL)
]
_Dim = Annotated[int, option("Dimension of the vectors.", panel=MODEL)]
_Window = Annotated[int, option("Number of context words on each side of a word.", panel=MODEL)]
_Windows = Annotated[
    str | None,
    option(
        "Windows at the ends of a paragraph: full leaves them out, all cuts them (default: full "
        "with softmax, all with negative).",
        panel=MODEL,
    ),
]
_Subsample = Annotated[
    float, option("Subsampling threshold for frequent words; 0 disables it.", panel=MODEL)
]
_Epochs = Annotated[
    int | None,
    option("Maximum number of epochs (default: 20 with softmax, 5 with negative).", panel=MODEL),
]
_Patience = Annotated[
    int | None,
    option(
        "Number of epochs without a lower validation loss after which training stops "
        "(default: never).",
        panel=MODEL,
    ),
]
_BatchSize = Annotated[
    int | None,
    option(
        "Batch size, in paragraphs (default: 96 with softmax, 1024 with negative).", panel=MODEL
    ),
]
_LrDecay = Annotated[
    str | None,
    option(
        "Learning rate schedule: constant, linear (to 0, step by step) or epochs (to 0, epoch by "
        "epoch) (default: epochs with softmax, linear with negative).",
        panel=MODEL,
    ),
]
_Seed = Annotated[
    int, option("Random seed for initialization, shuffling and noise words.", panel=MODEL)
]
_Negatives = Annotated[int, option("Number of noise words per sample, with negative.", panel=MODEL)]
_MaxNorm = Annotated[
    float | None,
    option(
        "Maximum length of a word vector, with softmax; 0 sets no limit (default: 1, the paper's).",
        panel=MODEL,
    ),
]
_MaxLr = Annotated[
    float | None,
    option(
        "Cap on the learning rate of a word, for fasgd and cfsgd (default: none with --lr; else "
        "the cap that goes with the default rate).",
        panel=OPTIMIZER,
    ),
]


def train(
    context: typer.Context,
    out: Annotated[Path, target("Folder for the model.")] = Path("model"),
    optimizer: opt.OptimizerName = "cfsgd",
    lr: Annotated[str, option("Learning rate (default: by model, loss, optimizer and text).")] = "",
    resume: opt.Resume = False,
    threads: opt.Threads = None,
    dataset: _Dataset = None,
    path: _TextPath = None,
    validation_path: opt.ValidationPath = None,
    test_path: opt.TestPath = None,
    split_seed: opt.SplitSeed = 0,
    min_count: _MinCount = None,
    max_vocab: _MaxVocab = None,
    unknown: _Unknown = TextOptions.unknown,
    tokenizer: _Tokenizer = TextOptions.tokenizer,
    lowercase: _Lowercase = None,
    model: _Model = "skipgram",
    loss: _Loss = TextSettings.loss,
    dim: _Dim = TextSettings.dim,
    window: _Window = TextSettings.window,
    windows: _Windows = None,
    negatives: _Negatives = TextSettings.negatives,
    max_norm: _MaxNorm = None,
    subsample: _Subsample = 0.0,
    epochs: _Epochs = None,
    patience: _Patience = None,
    batch_size: _BatchSize = None,
    lr_decay: _LrDecay = None,
    seed: _Seed = 0,
    checkpoint_steps: opt.CheckpointSteps = None,
    weight_decay: opt.WeightDecay = 0.0,
    weight_decay_power: opt.WeightDecayPower = 1.0,
    max_lr: _MaxLr = None,
) -> None:
    """Train word vectors and save them as a folder.

    Example: freqsgd words train --data corpus.txt --out vectors
    """
    data, settings = made(TextOptions, context), _settings(context)
    check_single(out, data, resume)
    (rule,) = _rules(context, settings, [(optimizer, lr)])
    results = trained(data, rule, settings, threads=threads, out=out, resume=resume)
    save_results(results, out)
    show_trained(results, out)


def compare(
    context: typer.Context,
    optimizers: Annotated[
        str | None,
        option(
            f"Optimizers to compare, comma-separated, of {opt.NAMES} (default: sgd,cfsgd and, "
            "with softmax, adam)."
        ),
    ] = None,
    lr: Annotated[
        str,
        option(
            "Learning rates such as sgd=1,cfsgd=0.5, or one for all (default: by model, loss, "
            "optimizer and text)."
        ),
    ] = "",
    out: Annotated[Path | None, target("Folder for results.json, report.html and models.")] = None,
    resume: opt.Resume = False,
    threads: opt.Threads = None,
    dataset: _Dataset = None,
    path: _TextPath = None,
    validation_path: opt.ValidationPath = None,
    test_path: opt.TestPath = None,
    split_seed: opt.SplitSeed = 0,
    min_count: _MinCount = None,
    max_vocab: _MaxVocab = None,
    unknown: _Unknown = TextOptions.unknown,
    tokenizer: _Tokenizer = TextOptions.tokenizer,
    lowercase: _Lowercase = None,
    model: _Model = "skipgram",
    loss: _Loss = TextSettings.loss,
    dim: _Dim = TextSettings.dim,
    window: _Window = TextSettings.window,
    windows: _Windows = None,
    negatives: _Negatives = TextSettings.negatives,
    max_norm: _MaxNorm = None,
    subsample: _Subsample = 0.0,
    epochs: _Epochs = None,
    patience: _Patience = None,
    batch_size: _BatchSize = None,
    lr_decay: _LrDecay = None,
    seed: _Seed = 0,
    checkpoint_steps: opt.CheckpointSteps = None,
    weight_decay: opt.WeightDecay = 0.0,
    weight_decay_power: opt.WeightDecayPower = 1.0,
    max_lr: _MaxLr = None,
) -> None:
    """Train word vectors with several optimizers and compare them.

    Example: freqsgd words compare --loss softmax --dataset wikitext-2 --out words
    """
    data, settings = made(TextOptions, context), _settings(context)
    usual = "sgd,cfsgd,adam" if settings.loss == "softmax" else "sgd,cfsgd"
    names = opt.compared(usual if optimizers is None else optimizers)
    lrs = opt.rates(lr, names)
    rules = _rules(context, settings, [(name, lrs[name]) for name in names])
    compare_and_report(data, rules, settings, threads=threads, out=out, resume=resume)


_FOR_LOSS = {"negatives": "negative", "max_norm": "softmax", "weight_decay_power": "softmax"}
_PAPERS_NORM = 1.0


def _settings(context: typer.Context) -> TextSettings:
    """Make the settings; refuse options that are for the other loss."""
    loss, longest = context.params["loss"], context.params["max_norm"]
    for name in opt.given(context) & _FOR_LOSS.keys():
        if loss in LOSSES and loss != _FOR_LOSS[name]:
            raise DataError(f"{opt.flag(context, name)} does not go with --loss {loss}")
    if longest is None and loss == "softmax":
        longest = _PAPERS_NORM
    return made(TextSettings, context, max_norm=longest or None)


def _rules(
    context: typer.Context, settings: TextSettings, lrs: Iterable[tuple[str, str]]
) -> list[Rule]:
    rules = []
    for name, lr in lrs:
        if lr == "auto":
            raise DataError(
                "--lr auto is for recommenders: word vectors have default rates; leave --lr out "
                "to use them"
            )
        rules.append(opt.rule_of(context, name, lr))
        check_rule(rules[-1], settings)
    names = [rule.optimizer for rule in rules]
    if context.params["max_lr"] is not None and not set(CAPPED) & set(names):
        raise DataError(f"--max-lr is for {' and '.join(CAPPED)}, not for {', '.join(names)}")
    return rules
