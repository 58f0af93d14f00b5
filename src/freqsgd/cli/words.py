"""``freqsgd words train`` and ``compare``: word vectors of text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli import options as opt
from freqsgd.cli.options import data_option, in_data, in_model, in_rule, made, option, takes, target
from freqsgd.cli.session import RUN, check_out
from freqsgd.cli.training import (
    compare_and_report,
    save_results,
    show_trained,
    trained,
)
from freqsgd.errors import DataError
from freqsgd.optimizers import CAPPED, Rule
from freqsgd.words.settings import LOSSES, TextSettings, check_rule
from freqsgd.words.spec import TextOptions

_BY_DEFAULT = "(default: by model, loss, optimizer and text)"


def _options(
    dataset: Annotated[
        str | None, in_data("Text: zipf-text, wikitext-2 or wikitext-103 (default: zipf-text).")
    ] = None,
    path: Annotated[
        str | None,
        data_option(
            "Your own text: a file, a paragraph a line, .gz too, or a folder of these.", "--data"
        ),
    ] = None,
    validation_path: opt.ValidationPath = None,
    test_path: opt.TestPath = None,
    split_seed: opt.SplitSeed = 0,
    min_count: Annotated[
        int | None,
        in_data("Occurrences below which words are left out (default: 50 for wikitext, else 5)."),
    ] = None,
    max_vocab: Annotated[
        int | None, in_data("Maximum size of the vocabulary, by frequency (default: none).")
    ] = None,
    unknown: Annotated[
        str, in_data("Rare words: remove, or token, one that stands for all.")
    ] = TextOptions.unknown,
    tokenizer: Annotated[
        str, in_data("Tokenizer: whitespace, or words, without punctuation.")
    ] = TextOptions.tokenizer,
    lowercase: Annotated[
        bool | None,
        in_data(
            "Convert to lower case (default: for wikitext, and with --tokenizer words).",
            "--lowercase/--no-lowercase",
        ),
    ] = None,
    model: Annotated[str, in_model("Model to train: skipgram or cbow.")] = "skipgram",
    loss: Annotated[
        str, in_model("Loss: negative, for negative sampling, or softmax over all words.")
    ] = TextSettings.loss,
    dim: Annotated[int, in_model("Dimension of the vectors.")] = TextSettings.dim,
    window: Annotated[int, in_model("Number of context words on each side.")] = TextSettings.window,
    windows: Annotated[
        str | None,
        in_model(
            "Windows that cross the end of a paragraph: full leaves them out, all cuts them "
            "(default: full with softmax, all with negative)."
        ),
    ] = None,
    negatives: Annotated[
        int, in_model("Number of noise words per sample, with negative.")
    ] = TextSettings.negatives,
    max_norm: Annotated[
        float | None,
        in_model(
            "Maximum length of a word vector, with softmax; 0: none (default: the paper's, 1)."
        ),
    ] = None,
    subsample: Annotated[
        float, in_model("Subsampling threshold for frequent words; 0 disables it.")
    ] = 0.0,
    epochs: Annotated[
        int | None, in_model("Maximum number of epochs (default: softmax 20, negative 5).")
    ] = None,
    patience: Annotated[
        int | None,
        in_model(
            "Number of epochs without a lower validation loss after which training stops (default: "
            "never)."
        ),
    ] = None,
    batch_size: Annotated[
        int | None, in_model("Batch size, in paragraphs (default: softmax 96, negative 1024).")
    ] = None,
    lr_decay: Annotated[
        str | None,
        in_model(
            "Learning rate schedule: constant, linear to 0 by step, or epochs, to 0 by epoch "
            "(default: softmax epochs, negative linear)."
        ),
    ] = None,
    seed: Annotated[
        int, in_model("Random seed for initialization, shuffling and noise words.")
    ] = 0,
    checkpoint_steps: opt.CheckpointSteps = None,
    weight_decay: opt.WeightDecay = 0.0,
    weight_decay_power: opt.WeightDecayPower = 1.0,
    max_lr: Annotated[
        float | None,
        in_rule(
            "Cap on a word's learning rate, for fasgd and cfsgd (default: none if --lr is given)."
        ),
    ] = None,
) -> None:
    """Describe the text, the model and its training."""


@takes(_options)
def train(
    context: typer.Context,
    out: Annotated[Path, target("Folder for the model.")] = Path("model"),
    optimizer: opt.Optimizer = "cfsgd",
    lr: Annotated[str, option(f"Learning rate {_BY_DEFAULT}.")] = "",
    resume: opt.Resume = False,
    threads: opt.Threads = None,
) -> None:
    """Train word vectors and save them as a folder.

    Example: freqsgd words train --data corpus.txt --out vectors
    """
    data, settings = made(TextOptions, context), _settings(context)
    check_out(out, RUN, resume=resume)
    (rule,) = _rules(context, settings, [(optimizer, lr)])
    results = trained(data, rule, settings, threads=threads, out=out, resume=resume)
    save_results(results, out)
    show_trained(results, out)


@takes(_options)
def compare(
    context: typer.Context,
    optimizers: Annotated[
        str | None,
        option(
            f"Optimizers, a,b,c, of {opt.NAMES} "
            "(default: sgd,cfsgd,cfadam and, with softmax, adam)."
        ),
    ] = None,
    lr: Annotated[
        str, option(f"Learning rates: sgd=1,cfsgd=0.5, or one for all {_BY_DEFAULT}.")
    ] = "",
    out: Annotated[Path | None, target("Folder for results.json, report.html and models.")] = None,
    resume: opt.Resume = False,
    threads: opt.Threads = None,
) -> None:
    """Train word vectors with several optimizers and compare them.

    Example: freqsgd words compare --loss softmax --dataset wikitext-2 --out words
    """
    data, settings = made(TextOptions, context), _settings(context)
    usual = "sgd,cfsgd,cfadam" + (",adam" if settings.loss == "softmax" else "")
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
            raise DataError(f"{name} does not go with --loss {loss}")
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
