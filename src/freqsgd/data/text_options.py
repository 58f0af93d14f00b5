"""What is asked for as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freqsgd.data.catalogue import text_dataset
from freqsgd.data.dataset import DataError
from freqsgd.data.option_checks import refuse_options

if TYPE_CHECKING:
    from freqsgd.data.corpus import Corpus

__all__ = ["GENERATED", "TOKENIZERS", "UNKNOWN", "TextOptions", "load_text"]

GENERATED = "zipf-text"
TOKENIZERS = ("whitespace", "words")
UNKNOWN = ("remove", "token")


@dataclass(frozen=True)
class TextOptions:
    """A text that is known by name, or files of one's own: a sentence or paragraph a line.

    Misused options raise ``DataError`` when the text is loaded.

    Args:
        dataset: "zipf-text" (if there is no path), "wikitext-2" or "wikitext-103"
        path: a file of plain text, packed if its name ends with .gz, or a folder of such; files
            that are to validate or test on are left out
        validation_path: the same, to validate on; by default 5% of the paragraphs, and of a folder
            with wiki.train.tokens in it wiki.valid.tokens
        test_path: the same, to test on; by default 5% of the paragraphs, or wiki.test.tokens
        tokenizer: "whitespace", or "words": letters, digits and underscores, with apostrophes
            inside; all else separates words
        lowercase: by default for the tokenizer "words" and for wikitext, by name or as a folder
        min_count: words seen less often in the training part are rare; None: 50 for wikitext, by
            name or as a folder, else 5
        max_vocab: the most words that are not rare: the most frequent ones
        unknown: "remove" rare words before windows are formed, or let one "token", <unk>, stand
            for all of them. A word <unk> of the text is always rare
        longest: paragraphs of more words are cut into pieces of so many
        split_seed: of the paragraphs that are held out
    """

    dataset: str | None = None
    path: str | None = None
    validation_path: str | None = None
    test_path: str | None = None
    tokenizer: str = "whitespace"
    lowercase: bool | None = None
    min_count: int | None = None
    max_vocab: int | None = None
    unknown: str = "remove"
    longest: int = 256
    split_seed: int = 0

    @property
    def name(self) -> str | None:
        """The dataset that is known by name; None for files of one's own."""
        return self.dataset or (GENERATED if self.path is None else None)

    def check(self) -> None:
        """Raise unless the options fit together."""
        if self.path is not None:
            refuse_options(self, "own files", "dataset")
        else:
            name = text_dataset(self.name or "").name
            refuse_options(self, f"the dataset {name}", "validation_path", "test_path", "tokenizer")
            if name == GENERATED:
                refuse_options(self, f"the dataset {name}", "lowercase", "unknown")
        for what, known in (("tokenizer", TOKENIZERS), ("unknown", UNKNOWN)):
            if getattr(self, what) not in known:
                value = getattr(self, what)
                raise DataError(f"{what} must be {' or '.join(known)}, not {value!r}")
        for what, least in (("min_count", 1), ("max_vocab", 2), ("longest", 2), ("split_seed", 0)):
            value = getattr(self, what)
            if value is not None and value < least:
                name = what.replace("_", " ")
                raise DataError(f"{name} must be at least {least}, not {value}")


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
        from freqsgd.data.zipf_text import zipf_corpus

        return zipf_corpus(options)
    try:
        from freqsgd.data.text_loading import load_text_files
    except ImportError as error:
        raise DataError(f"text is read with {error.name}: pip install 'freqsgd[text]'") from error
    return load_text_files(options, progress)
