"""Load a text, as options ask for it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from freqsgd.errors import DataError
from freqsgd.words.spec import GENERATED, TextOptions

if TYPE_CHECKING:
    from freqsgd.words.corpus import Corpus

__all__ = ["describe_text", "load_text", "text_place"]


def load_text(
    options: TextOptions, *, progress: Callable[[str, int, int | None], None] | None = None
) -> Corpus:
    """Load the text, encoding it first unless that was done before.

    Args:
        options: what to load
        progress: called now and then during long work with its stage, how much is done, and how
            much there is in all (None if unknown)

    Raises:
        DataError: it is not there, cannot be used, or the options do not fit together

    Example:
        >>> corpus = load_text(TextOptions(dataset="zipf-text"))
        >>> len(corpus.train) > 10 * len(corpus.validation) > 0
        True
    """
    options.check()
    if options.name == GENERATED:
        from freqsgd.words.zipf import zipf_corpus

        return zipf_corpus(options)
    try:
        from freqsgd.words.encoding import load_text_files
    except ImportError as error:
        raise DataError(f"text is read with {error.name}: pip install 'freqsgd[text]'") from error
    return load_text_files(options, progress)


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
    if options.name == GENERATED:
        return None
    from freqsgd.words.encoding import encoded_text

    return encoded_text(options)
