"""Turn files of text into arrays of word ids on disk, in bounded memory.

Files are read once. A word gets a code when it is first met, and the codes are written to the disk;
when all words of the training part have been counted, the codes of words that are kept become ids.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.files import read_json
from freqsgd.tables.cache import cached, file_key
from freqsgd.tables.catalog import known_dataset, locate
from freqsgd.words.corpus import Corpus, Paragraphs
from freqsgd.words.files import text_name
from freqsgd.words.spec import default_min_count, files_of_parts, is_wikitext
from freqsgd.words.tokenizer import WordReader
from freqsgd.words.vocabulary import (
    PARTS,
    CodedText,
    WordIds,
    choose_words,
    draw_parts,
    training_counts,
)

if TYPE_CHECKING:
    from freqsgd.words.spec import TextOptions

__all__ = [
    "SUMMARY",
    "WORDS",
    "Progress",
    "TextSource",
    "encode_text",
    "encoded_text",
    "load_text_files",
    "mapped",
    "replaced_warning",
]

Progress = Callable[[str, int, int | None], None]  # stage, done, total

WORDS, SUMMARY = "words.json", "summary.json"
_CODES, _LENGTHS = "codes.tmp", "lengths.tmp"
_WORDS_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class TextSource:
    """Files of text, and how they become ids."""

    place: str  # for messages
    files: tuple[tuple[Path, ...], ...]  # of each part
    tokenizer: str
    lowercase: bool
    min_count: int
    max_vocab: int | None
    unknown: str
    longest: int
    split_seed: int


def encode_text(source: TextSource, folder: Path, progress: Progress | None = None) -> None:
    """Write ids and starts of each part, the vocabulary, and a summary into the folder."""
    reader = WordReader(source.tokenizer, lowercase=source.lowercase, longest=source.longest)
    parts = _parts(source, _write_codes(source, reader, folder, progress))
    chosen = choose_words(
        training_counts(_read_codes(folder, parts, source.longest), len(reader.table)),
        reader.text_of,
        source.place,
        source.min_count,
        source.max_vocab,
        never=(0,),
        unknown=source.unknown == "token",
    )
    words = reader.table.texts(np.maximum(chosen.codes, 0)).to_list()
    texts = _read_codes(folder, parts, source.longest)
    raw_words = _write_ids(texts, len(parts), chosen, folder, progress)
    summary = {
        "counts": chosen.counts.tolist(),
        "raw_words": raw_words,
        "replaced": [[str(path), places] for path, places in reader.replaced.items()],
    }
    for name, content in ((WORDS, words), (SUMMARY, summary)):
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    for name in (_CODES, _LENGTHS):
        (folder / name).unlink()


def mapped(path: Path, dtype: Any) -> NDArray[Any]:
    """The array of a file."""
    if path.stat().st_size == 0:  # which cannot be mapped
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, "r")


def _write_codes(
    source: TextSource, reader: WordReader, folder: Path, progress: Progress | None
) -> list[int]:
    """Write codes and lengths of all pieces, part after part, and count the pieces of each."""
    pieces, read = [0] * len(PARTS), 0
    total = sum(path.stat().st_size for files in source.files for path in files)
    with (folder / _CODES).open("wb") as codes, (folder / _LENGTHS).open("wb") as lengths:
        for part, files in enumerate(source.files):
            for path in files:
                size = path.stat().st_size
                for some, ended, done in reader.read(path, add=part == 0):
                    codes.write(some.data)
                    lengths.write(ended.data)
                    pieces[part] += len(ended)
                    if progress:
                        progress("reading words", read + round(done * size), total)
                read += size
            if files and not pieces[part]:
                raise DataError(f"{files[0]}: there are no words in it")
    return pieces


def _parts(source: TextSource, pieces: list[int]) -> NDArray[np.uint8]:
    """The part of each piece; those without a file of their own are drawn from the training one."""
    held_out = [part for part in (1, 2) if not source.files[part]]
    own = np.repeat(np.arange(1, len(PARTS), dtype=np.uint8), pieces[1:])
    return np.concatenate([draw_parts(pieces[0], held_out, source.split_seed), own])


def _read_codes(folder: Path, parts: NDArray[np.uint8], longest: int) -> Iterator[CodedText]:
    """What was written, a bounded number of words at a time."""
    step = min(max(1, _WORDS_AT_ONCE // longest), 1 << 16)
    with (folder / _CODES).open("rb") as codes, (folder / _LENGTHS).open("rb") as lengths:
        for start in range(0, len(parts), step):
            some = np.fromfile(lengths, np.int32, step)
            words = np.fromfile(codes, np.int32, int(some.sum()))
            yield CodedText(words, some, parts[start : start + step])


class _PartWriter:
    """The files of one part while they grow."""

    def __init__(self, folder: Path, part: str, stack: ExitStack) -> None:
        self.raw_words = self._words = 0
        self._ids, self._starts = (
            stack.enter_context((folder / f"{part}-{what}.bin").open("wb"))
            for what in ("ids", "starts")
        )
        self._starts.write(np.zeros(1, np.int64).data)

    def write(self, ids: NDArray[np.int32], lengths: NDArray[np.int64], raw_words: int) -> None:
        """Append pieces, which had so many words before some were left out."""
        self._ids.write(ids.data)
        self._starts.write((self._words + np.cumsum(lengths)).data)
        self._words += len(ids)
        self.raw_words += raw_words


def _write_ids(
    texts: Iterator[CodedText],
    pieces: int,
    chosen: WordIds,
    folder: Path,
    progress: Progress | None,
) -> list[int]:
    """Write ids and starts of each part, and count the words that each had."""
    done = 0
    with ExitStack() as stack:
        writers = [_PartWriter(folder, part, stack) for part in PARTS]
        for text in texts:
            for index, writer in enumerate(writers):
                codes, lengths = text.part(index)
                writer.write(*chosen.encode(codes, lengths), len(codes))
            done += len(text.parts)
            if progress:
                progress("numbering words", done, pieces)
    return [writer.raw_words for writer in writers]


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
