"""What is in a dataset."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from freqsgd.data.corpus import Corpus
from freqsgd.data.dataset import Dataset
from freqsgd.data.loading import encoded_folder
from freqsgd.data.options import DataOptions
from freqsgd.data.sources import Request
from freqsgd.data.text_loading import encoded_text
from freqsgd.data.text_options import GENERATED, TextOptions

__all__ = ["cache_place", "describe", "describe_text", "text_place"]


def describe(dataset: Dataset) -> list[tuple[str, str]]:
    """Facts about loaded samples: what, and how much."""
    splits = dataset.splits
    parts = (len(splits.train), len(splits.validation), len(splits.test))
    summary = dataset.summary()
    facts = [
        ("rows", f"{dataset.rows:,}"),
        ("split", "{:,} train, {:,} validation, {:,} test".format(*parts)),
        ("positive rate", f"{summary['positive_rate']:.4f}"),
        ("fields", f"{len(dataset.fields)}"),
        ("tokens", f"{dataset.tokens:,}"),
        ("bytes", f"{dataset.ids.nbytes + dataset.labels.nbytes:,}"),
    ]
    for field in dataset.fields:
        width = f", bags of up to {field.width}" if field.width > 1 else ""
        facts.append((f"  {field.name}", f"{field.size:,} tokens{width}"))
    return facts


def cache_place(options: DataOptions) -> Path | None:
    """The folder of the encoded samples; None for generated ones, which are not kept."""
    if options.path is None and options.dataset == "synthetic":
        return None
    return encoded_folder(Request.of(options))


def describe_text(corpus: Corpus) -> list[tuple[str, str]]:
    """Facts about a loaded text: what, and how much."""
    parts = (corpus.train, corpus.validation, corpus.test)
    sizes = [len(part.ids) for part in parts]
    share = sizes[0] / max(corpus.train.raw_words, 1)
    shown = (f"{word} ({count:,})" for word, count in zip(corpus.words, corpus.counts, strict=True))
    return [
        ("words", "{:,} train, {:,} validation, {:,} test".format(*sizes)),
        ("paragraphs", "{:,} train, {:,} validation, {:,} test".format(*map(len, parts))),
        ("vocabulary", f"{len(corpus.words):,} words: {share:.1%} of all words of the text"),
        ("most frequent", ", ".join(islice(shown, 5))),
        (
            "least frequent",
            "seen once" if corpus.counts[-1] == 1 else f"seen {corpus.counts[-1]:,} times",
        ),
        ("bytes", f"{sum(part.ids.nbytes + part.starts.nbytes for part in parts):,}"),
    ]


def text_place(options: TextOptions) -> Path | None:
    """The folder of the encoded text; None for generated text, which is not kept."""
    return None if options.name == GENERATED else encoded_text(options)
