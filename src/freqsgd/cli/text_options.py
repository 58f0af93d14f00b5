"""Options of word vectors; those that other training has too say what they mean for all."""

from __future__ import annotations

from typing import Annotated, Any

from freqsgd.cli.options import DATA, MODEL, option
from freqsgd.words.settings import TextSettings
from freqsgd.words.spec import TextOptions

__all__ = ["text_data", "text_settings"]

_TEXT = "Text (--model cbow or skipgram)"


def text_data(
    dataset: Annotated[
        str | None,
        option(
            "synthetic (default), movielens-1m, criteo; one pass: clicks-small (default); "
            "text: zipf-text (default), wikitext-2, wikitext-103.",
            panel=DATA,
        ),
    ] = None,
    path: Annotated[
        str | None,
        option(
            "Your own .csv, .tsv, .inter, .parquet or a folder of these; "
            "one pass: a folder of days, or a pattern such as 'logs/day-*'; "
            "text: a file of one paragraph a line, .gz, or a folder.",
            "--data",
            panel=DATA,
        ),
    ] = None,
    validation_data: Annotated[str | None, option("A file to validate on.", panel=DATA)] = None,
    test_data: Annotated[str | None, option("A file to test on.", panel=DATA)] = None,
    split_seed: Annotated[int, option("Of the random split.", panel=DATA)] = 0,
    min_count: Annotated[
        int | None,
        option(
            "Rarer tokens share an id (default: 10 for criteo, else 1); "
            "text: rarer words are left out (50 for wikitext, else 5).",
            panel=DATA,
        ),
    ] = None,
    max_vocab: Annotated[
        int | None, option("Keep at most so many words, the most frequent.", panel=_TEXT)
    ] = None,
    unknown: Annotated[
        str, option("What becomes of rare words: remove, or token: one for all.", panel=_TEXT)
    ] = "remove",
    tokenizer: Annotated[
        str, option("whitespace, or words: without punctuation.", panel=_TEXT)
    ] = "whitespace",
    lowercase: Annotated[
        bool | None,
        option(
            "Take words in lower case (default: for wikitext, and for --tokenizer words).",
            "--lowercase/--no-lowercase",
            panel=_TEXT,
        ),
    ] = None,
) -> TextOptions:
    """The text."""
    return TextOptions(
        dataset=dataset,
        path=path,
        validation_path=validation_data,
        test_path=test_data,
        split_seed=split_seed,
        min_count=min_count,
        max_vocab=max_vocab,
        unknown=unknown,
        tokenizer=tokenizer,
        lowercase=lowercase,
    )


def text_settings(
    model: Annotated[str, option("fm, deepfm; text: cbow, skipgram.", panel=MODEL)] = "skipgram",
    dim: Annotated[
        int,
        option("Size of the vectors (default: 64, deepfm and one pass 16, text 300).", panel=MODEL),
    ] = 300,
    epochs: Annotated[
        int | None, option("At most (default: 60; text: softmax 20, negative 5).", panel=MODEL)
    ] = None,
    patience: Annotated[
        int | None,
        option(
            "Epochs without a better validation AUC, for text loss, before it ends "
            "(default: 5, movielens-1m and criteo 2; text: never).",
            panel=MODEL,
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        option(
            "Samples of a step (default: 1024); text: paragraphs (softmax 96, negative 1024).",
            panel=MODEL,
        ),
    ] = None,
    lr_decay: Annotated[
        str | None,
        option(
            "constant, linear: to 0 over all epochs, or for text epochs: the same by epoch "
            "(default: constant; text: softmax epochs, negative linear).",
            panel=MODEL,
        ),
    ] = None,
    seed: Annotated[int, option("Of start, order, dropout and noise words.", panel=MODEL)] = 0,
    checkpoint_steps: Annotated[
        int | None, option("Checkpoints within epochs too, after so many steps.", panel=MODEL)
    ] = None,
    loss: Annotated[
        str, option("softmax over all words, or negative: negative sampling.", panel=_TEXT)
    ] = "negative",
    window: Annotated[
        int,
        option(
            "Text: words on each side (default: 4); "
            "one pass: examples of a window of the metrics (100,000).",
            panel=MODEL,
        ),
    ] = 4,
    windows: Annotated[
        str | None,
        option(
            "full: within the paragraph only, or all: cut at its ends "
            "(default: softmax full, negative all).",
            panel=_TEXT,
        ),
    ] = None,
    negatives: Annotated[int, option("Noise words of a sample.", panel=_TEXT)] = 5,
    subsample: Annotated[
        float, option("Leave out words above this frequency now and then; 0: none.", panel=_TEXT)
    ] = 0.0,
    max_norm: Annotated[
        float | None,
        option("Longest word vector, 0: any (default: softmax 1, the paper's).", panel=_TEXT),
    ] = None,
) -> TextSettings:
    """What all optimizers of a comparison of word vectors share."""
    by_loss: dict[str, Any] = {
        "windows": windows,
        "epochs": epochs,
        "batch_size": batch_size,
        "lr_decay": lr_decay,
    }
    return TextSettings(
        model=model,
        loss=loss,
        dim=dim,
        window=window,
        negatives=negatives,
        subsample=subsample,
        max_norm=max_norm or None,
        patience=patience,
        seed=seed,
        checkpoint_steps=checkpoint_steps,
        **by_loss,
    )
