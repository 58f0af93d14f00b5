"""Load a text as options ask for it: generated, or from files, whose ids are kept on disk.

Files are read once, in bounded memory. A word gets a code when it is first met, and the codes are
written to the disk; when all words of the training part have been counted, the codes of words that
are kept become ids.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.files import read_json
from freqsgd.tables.cache import Progress, cached, file_key
from freqsgd.tables.catalog import known_dataset, locate
from freqsgd.words.corpus import (
    PARTS,
    CodedText,
    Corpus,
    Paragraphs,
    WordIds,
    choose_words,
    draw_parts,
    training_counts,
)
from freqsgd.words.files import text_name
from freqsgd.words.spec import (
    GENERATED,
    TextOptions,
    default_min_count,
    files_of_parts,
    is_wikitext,
)
from freqsgd.words.zipf import zipf_text

if TYPE_CHECKING:
    from freqsgd.words.tokenizer import WordReader

Files = tuple[tuple[Path, ...], ...]  # of each part

_FORMAT = 1  # of the encoded text: raised when it changes, so that old ones are made anew
_WORDS, _SUMMARY = "words.json", "summary.json"
_CODES, _LENGTHS = "codes.tmp", "lengths.tmp"
_WORDS_AT_ONCE = 1 << 21
_SHOWN = 5  # files, in a warning
_CODED_BY = (
    "tokenizer", "lowercase", "min_count", "max_vocab", "unknown", "longest", "split_seed",
)  # fmt: skip


def load_text(options: TextOptions, *, progress: Progress | None = None) -> Corpus:
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
        return Corpus.of_sentences(
            zipf_text(),
            min_count=default_min_count(None) if options.min_count is None else options.min_count,
            max_vocab=options.max_vocab,
            longest=options.longest,
            name=GENERATED,
            split_seed=options.split_seed,
        )
    name, folder = _encoded(options, progress)
    replaced = read_json((folder / _SUMMARY).read_bytes(), dict)["replaced"]
    if replaced:
        warnings.warn(replaced_warning(replaced), DataWarning, stacklevel=2)
    return _corpus(folder, name)


def text_place(options: TextOptions) -> Path | None:
    """Return the folder of the encoded text; None for generated text, which is not kept."""
    return None if options.name == GENERATED else _encoded(options)[1]


def describe_text(corpus: Corpus) -> list[tuple[str, str]]:
    """Return facts about a loaded text: what, and how much."""
    parts = (corpus.train, corpus.validation, corpus.test)
    sizes = [len(part.ids) for part in parts]
    share = sizes[0] / max(corpus.train.raw_words, 1)
    shown = (f"{word} ({count:,})" for word, count in zip(corpus.words, corpus.counts, strict=True))
    rarest = corpus.counts[-1]
    return [
        ("words", "{:,} train, {:,} validation, {:,} test".format(*sizes)),
        ("paragraphs", "{:,} train, {:,} validation, {:,} test".format(*map(len, parts))),
        ("vocabulary", f"{len(corpus.words):,} words: {share:.1%} of all words of the text"),
        ("most frequent", ", ".join(islice(shown, 5))),
        ("least frequent", "seen once" if rarest == 1 else f"seen {rarest:,} times"),
        ("bytes", f"{sum(part.ids.nbytes + part.starts.nbytes for part in parts):,}"),
    ]


def replaced_warning(files: list[tuple[str, int]]) -> str:
    """Return what to warn of if not all text was UTF-8: in how many places of which files."""
    shown = [f"{path} ({places:,})" for path, places in files[:_SHOWN]]
    if len(files) > _SHOWN:
        shown.append("...")
    return (
        "Text that is not UTF-8 was replaced by the character U+FFFD, "
        f"{sum(places for _, places in files):,} times: {', '.join(shown)}"
    )


def _encoded(options: TextOptions, progress: Progress | None = None) -> tuple[str, Path]:
    """Return the name of a text, and the folder of its ids, which is made if need be."""
    known = options.dataset
    path = locate(known_dataset(known)).parent if known else Path(str(options.path))
    defaults: dict[str, Any] = {
        "lowercase": is_wikitext(path) or options.tokenizer == "words",
        "min_count": default_min_count(path),
    }
    missing = {key: value for key, value in defaults.items() if getattr(options, key) is None}
    options = replace(options, **missing)
    files = files_of_parts(path, options.validation_path, options.test_path)
    key = {
        "place": "",
        "files": [[file_key(each) for each in of_part] for of_part in files],
        "text": _FORMAT,
        **{name: getattr(options, name) for name in _CODED_BY},
    }
    name = known or text_name(path)
    return name, cached(name, key, lambda made: _encode(options, files, made, progress), _check)


# ---- encoded text --------------------------------------------------------------------------------


def _corpus(folder: Path, name: str) -> Corpus:
    summary = read_json((folder / _SUMMARY).read_bytes(), dict)
    parts = (
        Paragraphs(
            _mapped(folder / f"{part}-ids.bin", np.int32),
            _mapped(folder / f"{part}-starts.bin", np.int64),
            raw_words,
        )
        for part, raw_words in zip(PARTS, summary["raw_words"], strict=True)
    )
    words = read_json((folder / _WORDS).read_bytes(), list)
    return Corpus(name, words, np.array(summary["counts"], np.int64), *parts)


def _mapped(path: Path, dtype: Any) -> NDArray[Any]:
    """Return the array of a file; an empty one cannot be mapped."""
    return np.memmap(path, dtype, "r") if path.stat().st_size else np.zeros(0, dtype)


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


def _encode(options: TextOptions, files: Files, folder: Path, progress: Progress | None) -> None:
    """Write ids and starts of each part, the vocabulary, and a summary into the folder."""
    try:
        from freqsgd.words.tokenizer import WordReader
    except ImportError as error:
        raise DataError(f"text is read with {error.name}: pip install 'freqsgd[text]'") from error
    assert options.lowercase is not None
    assert options.min_count is not None
    reader = WordReader(options.tokenizer, lowercase=options.lowercase, longest=options.longest)
    pieces = _write_codes(files, reader, folder, progress)
    # Parts without files of their own are drawn from the training one.
    drawn = draw_parts(pieces[0], [k for k in (1, 2) if not files[k]], options.split_seed)
    own = np.repeat(np.arange(1, len(PARTS), dtype=np.uint8), pieces[1:])
    parts = np.concatenate([drawn, own])
    chosen = choose_words(
        training_counts(_read_codes(folder, parts, options.longest), len(reader.table)),
        reader.text_of,
        options.dataset or str(options.path),
        options.min_count,
        options.max_vocab,
        never=(0,),
        unknown=options.unknown == "token",
    )
    texts = _read_codes(folder, parts, options.longest)
    summary = {
        "counts": chosen.counts.tolist(),
        "raw_words": _write_ids(texts, len(parts), chosen, folder, progress),
        "replaced": [[str(path), places] for path, places in reader.replaced.items()],
    }
    words = reader.table.texts(np.maximum(chosen.codes, 0)).to_list()
    for name, content in ((_WORDS, words), (_SUMMARY, summary)):
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    for name in (_CODES, _LENGTHS):
        (folder / name).unlink()


def _write_codes(
    files: Files, reader: WordReader, folder: Path, progress: Progress | None
) -> list[int]:
    """Write codes and lengths of all pieces, part after part, and count the pieces of each."""
    pieces, read = [0] * len(PARTS), 0
    total = sum(path.stat().st_size for of_part in files for path in of_part)
    with (folder / _CODES).open("wb") as codes, (folder / _LENGTHS).open("wb") as lengths:
        for part, of_part in enumerate(files):
            for path in of_part:
                size = path.stat().st_size
                for some, ended, done in reader.read(path, add=part == 0):
                    codes.write(some.data)
                    lengths.write(ended.data)
                    pieces[part] += len(ended)
                    if progress:
                        progress("reading words", read + round(done * size), total)
                read += size
            if of_part and not pieces[part]:
                raise DataError(f"{of_part[0]}: there are no words in it")
    return pieces


def _read_codes(folder: Path, parts: NDArray[np.uint8], longest: int) -> Iterator[CodedText]:
    """Yield what was written, a bounded number of words at a time."""
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
    done, raw_words, written = 0, [0] * len(PARTS), [0] * len(PARTS)
    with ExitStack() as stack:
        id_files, start_files = (
            [stack.enter_context((folder / f"{part}-{what}.bin").open("wb")) for part in PARTS]
            for what in ("ids", "starts")
        )
        for file in start_files:
            file.write(np.zeros(1, np.int64).data)
        for text in texts:
            for part in range(len(PARTS)):
                codes, lengths = text.part(part)
                ids, left = chosen.encode(codes, lengths)
                id_files[part].write(ids.data)
                start_files[part].write((written[part] + np.cumsum(left)).data)
                written[part] += len(ids)
                raw_words[part] += len(codes)
            done += len(text.parts)
            if progress:
                progress("numbering words", done, pieces)
    return raw_words
