"""Files of text become the vocabulary and the ids of plain Python."""
# ruff: noqa: RUF001

from __future__ import annotations

import gzip
import os
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from freqsgd.errors import DataWarning
from freqsgd.words import files as text_files
from freqsgd.words import loading as text_loading
from freqsgd.words.loading import load_text
from freqsgd.words.spec import TextOptions

DATA = os.environ.get("FREQSGD_DATA")
WORDS = [
    *("The", "the", "THE", "cat", "Cat's", "don't", "dogs'", "'tis", "rock'n'roll", "rock''n"),
    *("x", "x_y", "a-b", "e.g.", "3.14", "42", "½", "<unk>", "<UNK>", "don’t", "’", "'", "--"),
    *("naïve", "Straße", "İstanbul", "ΟΔΟΣ", "οδός", "e\u0301te\u0301", "हिन्दी", "язык", "Ёлка"),
    *("日本語", "한국어", "العربية", "שלום", "𝔘𝔫𝔦", "😀"),
]
SPACES = [" ", "  ", "\t", "\u00a0", "\u3000", "\u2009", "\x0b", "\x1c", "\x85", "\u2028", "\r"]
ENDS = ["\n", "\r\n", "\n\n", " \n \t\n"]
MARKS = "\u0301\u093e\u093f\u0940\u094d\u0307"  # go with the letters before them
TOKENS = re.compile(rf"[\w{MARKS}]+(?:'[\w{MARKS}]+)*")


def random_text(seed, lines=50):
    """Lines of words of several scripts, with white space of all kinds between them."""
    draw = random.Random(seed)
    weights = [1 / (n + 1) for n in range(len(WORDS))]
    text = ""
    for _ in range(lines):
        for word in draw.choices(WORDS, weights, k=draw.choice([0, 1, 3, 9, 40])):
            text += word + draw.choice(SPACES)
        text += draw.choice(ENDS)
    return text + "the end"  # without a newline


def slow_pieces(content, tokenizer="whitespace", lowercase=False, longest=256):
    """The words of each line, or of pieces of it."""
    pieces = []
    for line in content.decode("utf-8-sig", errors="replace").split("\n"):
        line = line.lower() if lowercase else line
        words = (
            line.split() if tokenizer == "whitespace" else TOKENS.findall(line.replace("’", "'"))
        )
        pieces += [words[n : n + longest] for n in range(0, len(words), longest)]
    return pieces


def slow_ids(train, pieces, min_count=1, max_vocab=None, unknown="remove"):
    """The vocabulary of ``train``, and the ids of all pieces that are left."""
    counts = Counter(word for piece in train for word in piece)  # in order of first appearance
    kept = [word for word in counts if counts[word] >= min_count and word != "<unk>"]
    kept = sorted(kept, key=lambda word: -counts[word])[:max_vocab]
    rare = sum(counts.values()) - sum(counts[word] for word in kept)
    if unknown == "token" and rare:
        kept = sorted([*kept, None], key=lambda word: -(counts[word] if word else rare))
    ids = {word: place for place, word in enumerate(kept)}
    found = [[ids.get(word, ids.get(None)) for word in piece] for piece in pieces]
    found = [[number for number in piece if number is not None] for piece in found]
    words = [word or "<unk>" for word in kept]
    return words, [counts[word] if word else rare for word in kept], [p for p in found if p]


def as_lists(part):
    """The pieces of a part of a corpus."""
    return [piece.tolist() for piece in np.split(part.ids, part.starts[1:-1])] if len(part) else []


def write(path: Path, content: bytes | str):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@pytest.mark.parametrize("block", [1, 50, 1 << 22])
@pytest.mark.parametrize("tokenizer", ["whitespace", "words"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_words_and_ids_are_those_of_plain_python(
    tmp_path, monkeypatch, block, tokenizer, lowercase
):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", block)
    monkeypatch.setattr(text_loading, "_WORDS_AT_ONCE", 200)
    contents = [random_text(seed).encode() for seed in (1, 2, 3)]
    contents[0] = b"\xef\xbb\xbf" + contents[0]
    paths = [write(tmp_path / f"{n}.txt", content) for n, content in enumerate(contents)]
    pieces = [slow_pieces(content, tokenizer, lowercase, longest=30) for content in contents]
    for options in (
        {"min_count": 1},
        {"min_count": 4},
        {"min_count": 4, "unknown": "token"},
        {"min_count": 2, "max_vocab": 12, "unknown": "token"},
    ):
        corpus = load_text(
            TextOptions(
                path=paths[0],
                validation_path=paths[1],
                test_path=paths[2],
                tokenizer=tokenizer,
                lowercase=lowercase,
                longest=30,
                **options,
            )
        )
        for part, expected in zip(
            (corpus.train, corpus.validation, corpus.test), pieces, strict=True
        ):
            words, counts, ids = slow_ids(pieces[0], expected, **options)
            assert corpus.words == words
            assert corpus.counts.tolist() == counts
            assert as_lists(part) == ids
            assert part.raw_words == sum(map(len, expected))


def test_a_part_without_a_file_is_drawn_from_the_training_text(tmp_path):
    lines = [f"line{n} word{n % 7} word{n % 3}" for n in range(205)]
    path = write(tmp_path / "a.txt", "\n".join(lines))
    options = TextOptions(path=path, min_count=1, unknown="token")
    corpus = load_text(options)
    train, validation, test = (
        [" ".join(corpus.words[number] for number in piece) for piece in as_lists(part)]
        for part in (corpus.train, corpus.validation, corpus.test)
    )
    assert [len(train), len(validation), len(test)] == [185, 10, 10]
    assert train == [line for line in lines if line in set(train)]
    assert Counter(word for line in train for word in line.split()) == dict(
        zip(corpus.words, corpus.counts.tolist(), strict=True)
    )
    left_out = [line.split() for line in lines if line not in set(train)]
    assert {word for line in left_out for word in line}.isdisjoint(
        set(corpus.words) - {f"word{n}" for n in range(7)}
    )
    held_out = [piece for part in (corpus.validation, corpus.test) for piece in as_lists(part)]
    assert all(len(piece) == 2 for piece in held_out)  # no rare words in training: no <unk>
    other = load_text(TextOptions(path=path, min_count=1, split_seed=1))
    assert other.words != corpus.words
    test_path = write(tmp_path / "b.txt", "word1\n" * 30)
    own = load_text(TextOptions(path=path, min_count=1, test_path=test_path))
    assert [len(own.train), len(own.validation), len(own.test)] == [195, 10, 30]


@pytest.mark.parametrize(("lines", "held_out"), [(1, 0), (19, 0), (20, 1), (39, 1), (40, 2)])
def test_of_few_paragraphs_fewer_are_held_out(tmp_path, lines, held_out):
    corpus = load_text(TextOptions(path=write(tmp_path / "a.txt", "a b c\n" * lines), min_count=1))
    sizes = [len(corpus.train), len(corpus.validation), len(corpus.test)]
    assert sizes == [lines - 2 * held_out, held_out, held_out]


def test_a_line_of_a_million_words_is_cut_and_held_out_from(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1 << 16)
    corpus = load_text(TextOptions(path=write(tmp_path / "a.txt", "tea with milk " * 333_334)))
    parts = (corpus.train, corpus.validation, corpus.test)
    assert sum(len(part.ids) for part in parts) == 1_000_002
    assert [len(part) for part in parts] == [3517, 195, 195]
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    assert lengths.max() == 256
    assert np.count_nonzero(lengths < 256) == 1


def test_a_folder_is_its_text_files_by_name_packed_or_not(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    write(folder / "b.txt", "b1 b2")  # no newline: the next file starts a new paragraph
    write(folder / "a.txt.gz", gzip.compress(b"a1 a2\na3"))
    write(folder / "c.tokens", "c1")
    write(folder / ".hidden", "h")
    write(folder / "notes.pdf", "no text")
    options = TextOptions(path=str(folder), min_count=1)
    with pytest.warns(DataWarning, match=r"1 of 4 files were left out, .*: notes.pdf$"):
        corpus = load_text(options)
    assert corpus.words == ["a1", "a2", "a3", "b1", "b2", "c1"]
    assert as_lists(corpus.train) == [[0, 1], [2], [3, 4], [5]]
    assert corpus.summary() == {
        "name": "texts",
        "kind": "text",
        "tokens": 6,
        "words": 6,
        "raw_words": 6,
        "paragraphs": 4,
    }


def test_lower_case_is_for_the_tokenizer_words_unless_said_otherwise(tmp_path):
    path = write(tmp_path / "a.txt", "Tea tea, Tea")

    def vocabulary(**options):
        return load_text(TextOptions(path=path, min_count=1, **options)).words

    assert vocabulary() == ["Tea", "tea,"]
    assert vocabulary(lowercase=True) == ["tea", "tea,"]
    assert vocabulary(tokenizer="words", lowercase=False) == ["Tea", "tea"]
    path = write(tmp_path / "b.txt", "Tea tea, or not")
    assert vocabulary(tokenizer="words") == ["tea", "or", "not"]


def test_what_is_not_utf8_is_replaced_and_counted_every_time(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 5)
    content = b"caf\xe9 caf\xe9 tea\n\xff tea caf\xc3\xa9 \xef\xbf\xbd"
    options = TextOptions(path=write(tmp_path / "a.txt", content), min_count=1)
    for _ in range(2):
        with pytest.warns(DataWarning, match=r"not UTF-8 .* 3 times: .*a.txt \(3\)$"):
            corpus = load_text(options)
    assert corpus.words == slow_ids(slow_pieces(content), [])[0]
    assert "caf\ufffd" in corpus.words


def test_the_second_load_reads_no_text(tmp_path, monkeypatch):
    calls, encode_text = [], text_loading._encode

    def encode(options, *rest):
        calls.append(options)
        encode_text(options, *rest)

    monkeypatch.setattr("freqsgd.words.loading._encode", encode)
    path = write(tmp_path / "a.txt", random_text(5))
    options = TextOptions(path=path, min_count=2)
    told = []
    first = load_text(options, progress=lambda *progress: told.append(progress))
    size = Path(path).stat().st_size
    assert told[0] == ("reading words", size, size)
    assert told[-1][0] == "numbering words"
    second = load_text(options)
    assert len(calls) == 1
    assert isinstance(second.train.ids, np.memmap)
    assert first.fingerprint == second.fingerprint
    assert as_lists(first.test) == as_lists(second.test)
    others = [
        load_text(TextOptions(path=path, min_count=2, split_seed=1)),
        load_text(TextOptions(path=path, min_count=3)),
        load_text(TextOptions(path=path, min_count=2, longest=5)),
        load_text(TextOptions(path=path, min_count=2, lowercase=True)),
    ]
    assert len(calls) == 5
    assert len({first.fingerprint, *(other.fingerprint for other in others)}) == 5
    write(tmp_path / "a.txt", random_text(6))
    assert load_text(options).fingerprint != first.fingerprint


def test_generated_text_has_words_that_keep_to_their_topic():
    corpus = load_text(TextOptions())
    assert corpus.name == "zipf-text"
    assert len(corpus.validation) == len(corpus.test) == 1000
    assert load_text(TextOptions(dataset="zipf-text")).fingerprint == corpus.fingerprint
    for piece in as_lists(corpus.train)[:200]:
        words = [corpus.words[number] for number in piece]
        assert len({word[:2] for word in words if word[-1] in "aeiou"}) <= 1
    first, second, hundredth = corpus.counts[[0, 1, 99]]
    assert first / second == pytest.approx(4.7 / 3.7, rel=0.05)
    assert first / hundredth == pytest.approx(102.7 / 3.7, rel=0.15)


def test_wikitext_2_is_lower_case_words_seen_50_times(monkeypatch):
    folder = DATA and Path(DATA) / "wikitext-2"
    if not folder or not folder.is_dir():
        pytest.skip("FREQSGD_DATA names no folder that holds wikitext-2")
    monkeypatch.setenv("FREQSGD_DATA", str(DATA))
    corpus = load_text(TextOptions(dataset="wikitext-2"))
    pieces = slow_pieces((folder / "wiki.train.tokens").read_bytes(), lowercase=True)
    words, counts, ids = slow_ids(pieces, pieces, 50)
    assert (len(words), corpus.train.raw_words) == (4121, 2_051_910)
    assert corpus.words == words
    assert corpus.counts.tolist() == counts
    assert corpus.train.ids.tolist() == [number for piece in ids for number in piece]
    assert np.diff(corpus.train.starts).tolist() == [len(piece) for piece in ids]
