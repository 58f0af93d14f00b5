"""Load texts of files, encoding them first unless that was done before."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from freqsgd.data.cache import cached, file_key
from freqsgd.data.catalogue import known_dataset, locate
from freqsgd.data.corpus import Corpus, Paragraphs
from freqsgd.data.dataset import DataWarning
from freqsgd.data.files import read_json
from freqsgd.data.text_encoding import SUMMARY, WORDS, Progress, TextSource, encode_text, mapped
from freqsgd.data.text_files import text_name
from freqsgd.data.text_parts import default_min_count, files_of_parts, is_wikitext
from freqsgd.data.word_ids import PARTS

if TYPE_CHECKING:
    from freqsgd.data.text_options import TextOptions

__all__ = ["encoded_text", "load_text_files", "replaced_warning"]

_FORMAT = 1  # of the encoded text: raised when it changes, so that old ones are made anew
_SHOWN = 5  # files, in a warning


def load_text_files(options: TextOptions, progress: Progress | None = None) -> Corpus:
    """Load what the options name."""
    folder = encoded_text(options, progress)
    replaced = read_json((folder / SUMMARY).read_bytes(), dict)["replaced"]
    if replaced:
        warnings.warn(replaced_warning(replaced), DataWarning, stacklevel=3)
    return _corpus(folder, _name(options))


def _corpus(folder: Path, name: str) -> Corpus:
    summary = read_json((folder / SUMMARY).read_bytes(), dict)
    parts = (
        Paragraphs(
            mapped(folder / f"{part}-ids.bin", np.int32),
            mapped(folder / f"{part}-starts.bin", np.int64),
            raw_words,
        )
        for part, raw_words in zip(PARTS, summary["raw_words"], strict=True)
    )
    words = read_json((folder / WORDS).read_bytes(), list)
    return Corpus(name, words, np.array(summary["counts"], np.int64), *parts)


def _check(folder: Path) -> None:
    """Raise ValueError if there are words or paragraphs that training cannot use."""
    corpus = _corpus(folder, "")
    if len(corpus.words) != len(corpus.counts):
        raise ValueError(f"{len(corpus.words)} words, {len(corpus.counts)} counts")
    for part in (corpus.train, corpus.validation, corpus.test):
        if len(part.ids) and not 0 <= part.ids.min() <= part.ids.max() < len(corpus.words):
            raise ValueError("a word is not of the vocabulary")
        if [part.starts[0], part.starts[-1]] != [0, len(part.ids)] or np.any(
            part.starts[1:] < part.starts[:-1]
        ):
            raise ValueError("paragraphs do not begin one after another")


def encoded_text(options: TextOptions, progress: Progress | None = None) -> Path:
    """The folder of the encoded text."""
    source = _source(options)
    key = {
        **vars(source),
        "place": "",
        "files": [[file_key(path) for path in files] for files in source.files],
        "text": _FORMAT,
    }
    return cached(_name(options), key, lambda folder: encode_text(source, folder, progress), _check)


def replaced_warning(files: list[tuple[str, int]]) -> str:
    """What to warn of if not all text was UTF-8: in how many places of which files."""
    shown = [f"{path} ({places:,})" for path, places in files[:_SHOWN]]
    if len(files) > _SHOWN:
        shown.append("...")
    return (
        "Text that is not UTF-8 was replaced by the character U+FFFD, "
        f"{sum(places for _, places in files):,} times: {', '.join(shown)}"
    )


def _name(options: TextOptions) -> str:
    return options.dataset or text_name(Path(str(options.path)))


def _source(options: TextOptions) -> TextSource:
    name = options.dataset
    path = locate(known_dataset(name)).parent if name else Path(str(options.path))
    own = options.min_count
    lowercase = is_wikitext(path) or options.tokenizer == "words"
    return TextSource(
        name or str(path),
        files_of_parts(path, options.validation_path, options.test_path),
        options.tokenizer,
        lowercase if options.lowercase is None else options.lowercase,
        default_min_count(path) if own is None else own,
        options.max_vocab,
        options.unknown,
        options.longest,
        options.split_seed,
    )
