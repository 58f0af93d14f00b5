"""Load texts of files, encoding them first unless that was done before."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from freqsgd.data.cache import cached, file_key
from freqsgd.data.catalogue import known_dataset, locate
from freqsgd.data.corpus import Corpus, Paragraphs
from freqsgd.data.dataset import DataError, DataWarning
from freqsgd.data.text_encoding import SUMMARY, WORDS, Progress, TextSource, encode_text, mapped
from freqsgd.data.text_files import list_text_files
from freqsgd.data.word_ids import PARTS

if TYPE_CHECKING:
    from freqsgd.data.text_options import TextOptions

__all__ = ["encoded_text", "load_text_files", "wikitext_files"]

_FORMAT = 1  # of the encoded text: raised when it changes, so that old ones are made anew
_WIKITEXT = tuple(f"wiki.{part}.tokens" for part in ("train", "valid", "test"))
_SHOWN = 5  # files, in a warning
_MIN_COUNT, _WIKITEXT_MIN_COUNT = 5, 50


def load_text_files(options: TextOptions, progress: Progress | None = None) -> Corpus:
    """Load what the options name."""
    folder = encoded_text(options, progress)
    summary = json.loads((folder / SUMMARY).read_bytes())
    if summary["replaced"]:
        warnings.warn(_replaced(summary["replaced"]), DataWarning, stacklevel=3)
    parts = (
        Paragraphs(
            mapped(folder / f"{part}-ids.bin", np.int32),
            mapped(folder / f"{part}-starts.bin", np.int64),
            raw_words,
        )
        for part, raw_words in zip(PARTS, summary["raw_words"], strict=True)
    )
    words = json.loads((folder / WORDS).read_bytes())
    return Corpus(_name(options), words, np.array(summary["counts"], np.int64), *parts)


def encoded_text(options: TextOptions, progress: Progress | None = None) -> Path:
    """The folder of the encoded text."""
    source = _source(options)
    key = {
        **vars(source),
        "place": "",
        "files": [[file_key(path) for path in files] for files in source.files],
        "text": _FORMAT,
    }
    return cached(_name(options), key, lambda folder: encode_text(source, folder, progress))


def wikitext_files(folder: Path) -> tuple[tuple[Path, ...], ...]:
    """The files of each part in the layout of WikiText."""
    paths = [folder / name for name in _WIKITEXT]
    for path in paths:
        if not path.is_file():
            raise DataError(f"{path}: there is no such file, though {_WIKITEXT[0]} is there")
    return tuple((path,) for path in paths)


def _replaced(files: list[tuple[str, int]]) -> str:
    """What to warn of if not all text was UTF-8: in how many places of which files."""
    shown = [f"{path} ({places:,})" for path, places in files[:_SHOWN]]
    if len(files) > _SHOWN:
        shown.append("...")
    return (
        "Text that is not UTF-8 was replaced by the character U+FFFD, "
        f"{sum(places for _, places in files):,} times: {', '.join(shown)}"
    )


def _name(options: TextOptions) -> str:
    return options.dataset or Path(str(options.path)).resolve().name.partition(".")[0]


def _source(options: TextOptions) -> TextSource:
    own, known = options.min_count, options.dataset is not None
    lowercase = known or options.tokenizer == "words"
    return TextSource(
        options.dataset or str(options.path),
        _files(options),
        options.tokenizer,
        lowercase if options.lowercase is None else options.lowercase,
        (_WIKITEXT_MIN_COUNT if known else _MIN_COUNT) if own is None else own,
        options.max_vocab,
        options.unknown,
        options.longest,
        options.split_seed,
    )


def _files(options: TextOptions) -> tuple[tuple[Path, ...], ...]:
    if options.dataset is not None:
        return wikitext_files(locate(known_dataset(options.dataset)).parent)
    folder = Path(str(options.path))
    if (folder / _WIKITEXT[0]).is_file() and not (options.validation_path or options.test_path):
        return wikitext_files(folder)
    paths = (options.path, options.validation_path, options.test_path)
    return tuple(list_text_files(Path(path)) if path else () for path in paths)
