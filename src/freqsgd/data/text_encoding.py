"""Turn files of text into arrays of word ids on disk, in bounded memory.

Files are read once. A word gets a code when it is first met, and the codes are written to the disk;
when all words of the training part have been counted, the codes of words that are kept become ids.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.ahead import ahead
from freqsgd.data.dataset import DataError
from freqsgd.data.text_files import read_text_blocks
from freqsgd.data.token_table import TokenTable
from freqsgd.data.word_ids import (
    PARTS,
    UNKNOWN_WORD,
    CodedText,
    WordIds,
    choose_words,
    draw_parts,
    training_counts,
)
from freqsgd.data.words import FoundWords, find_words, kinds_of

__all__ = ["SUMMARY", "WORDS", "Progress", "TextSource", "WordReader", "encode_text", "mapped"]

Progress = Callable[[str, int, int | None], None]  # stage, done, total

WORDS, SUMMARY = "words.json", "summary.json"
_CODES, _LENGTHS = "codes.tmp", "lengths.tmp"
_WORDS_AT_ONCE = 1 << 21
_PLACE = np.zeros((2, 1), np.int64)  # words are tokens of one field, one in each row
_APOSTROPHE = "\u2019".encode()


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


class WordReader:
    """Reads words as codes; the code 0 is that of the word that stands for unknown ones."""

    def __init__(self, tokenizer: str, *, lowercase: bool, longest: int) -> None:
        self.table = TokenTable()
        self.table.code_texts(pl.Series([UNKNOWN_WORD]), 0, add=True)
        self.replaced: dict[Path, int] = {}  # places that were not UTF-8
        self._kinds, self._longest = kinds_of(tokenizer), longest
        self._lowercase, self._apostrophes = lowercase, tokenizer == "words"

    def read(
        self, path: Path, *, add: bool = True
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], float]]:
        """Codes, lengths of the pieces that ended, and how much of the file is done.

        New words are added to the table, or have a code below 0.
        """
        for found, done in ahead(self._find(path)):
            codes = np.empty((len(found.stops), 1), np.int32)
            self.table.code_rows(found.data, found.stops.reshape(-1, 1), _PLACE, codes, add=add)
            yield codes[:, 0], found.lengths, done

    def _find(self, path: Path) -> Iterator[tuple[FoundWords, float]]:
        begun = 0
        for block in read_text_blocks(path):
            data = block.data
            if self._apostrophes:
                data = data.replace(_APOSTROPHE, b"'")
            if self._lowercase:
                data = data.lower() if data.isascii() else data.decode().lower().encode()
            found = find_words(data, self._kinds, self._longest, begun)
            begun = found.open
            if block.replaced:
                self.replaced[path] = block.replaced
            yield found, block.done

    def text_of(self, code: int) -> str:
        """The word of a code."""
        return str(self.table.texts(np.array([code]))[0])


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


def _write_ids(
    texts: Iterator[CodedText],
    pieces: int,
    chosen: WordIds,
    folder: Path,
    progress: Progress | None,
) -> list[int]:
    """Write ids and starts of each part, and count the words that each had."""
    raw_words, starts, done = [0] * len(PARTS), [0] * len(PARTS), 0
    with ExitStack() as stack:
        files = [
            [stack.enter_context((folder / f"{part}-{what}.bin").open("wb")) for part in PARTS]
            for what in ("ids", "starts")
        ]
        for part in range(len(PARTS)):
            files[1][part].write(np.zeros(1, np.int64).data)
        for text in texts:
            for part in range(len(PARTS)):
                codes, lengths = text.part(part)
                ids, left = chosen.encode(codes, lengths)
                files[0][part].write(ids.data)
                files[1][part].write((starts[part] + np.cumsum(left)).data)
                starts[part] += len(ids)
                raw_words[part] += len(codes)
            done += len(text.parts)
            if progress:
                progress("numbering words", done, pieces)
    return raw_words
