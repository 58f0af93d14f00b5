"""Texts that cannot be used, and options that do not fit together."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import zipfile

import pytest

from freqsgd.errors import DataError
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions
from freqsgd.words import files as text_files
from freqsgd.words.loading import load_text
from freqsgd.words.spec import TextOptions


def packed_zip(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.txt", "some text")
    return path.read_bytes()


NOISE = bytes(random.Random(0).choices(range(1, 256), k=100_000))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "a.txt: there are no words in it"),
        ("a.txt", b"\xef\xbb\xbf \n\r\n\t", "a.txt: there are no words in it"),
        ("a.txt.gz", gzip.compress(b"", mtime=0), "there are no words in it"),
        ("a.txt", b"<unk> " * 30, "there are no words in it"),
        ("a.txt", b"a b c " * 4, "no word is seen 5 times.* its 3 distinct words, 'a', is seen 4"),
        ("a.txt", b"a " * 9 + b"b", "one word only, 'a'.* Lower the min count"),
        ("a.txt", b"a a a a a", "one word only, 'a'; at least two are needed to learn from$"),
        ("a.txt", "some text".encode("utf-16"), r"not UTF-8 text \(it has NUL bytes\)"),
        ("a.txt", b"PAR1" + NOISE, "a Parquet file; write the column"),
        ("a.txt", gzip.compress(b"text", mtime=0), "packed with gzip; let its name end with .gz"),
        ("a.txt", b"BZh9" + NOISE, "bzip2; unpack it"),
        ("a.gz", b"plain text", "cannot be read: Not a gzipped file .*; is it damaged"),
        ("a.gz", gzip.compress(NOISE, mtime=0)[:5000], "a.gz: cannot be read: .*; is it damaged"),
        ("a.gz", gzip.compress(NOISE, mtime=0)[:50_000] + b"x" * 50_000, "a.gz: cannot be read"),
    ],
)
def test_unusable_files_are_named(tmp_path, cache, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_text(TextOptions(path=str(tmp_path / name)))
    assert not list(cache.glob("encoded/*"))


def test_a_zip_file_is_named(tmp_path):
    packed_zip(tmp_path / "a.txt")
    with pytest.raises(DataError, match="a zip file; unpack it"):
        load_text(TextOptions(path=str(tmp_path / "a.txt")))


def test_megabytes_without_white_space_are_no_text(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(text_files, "_LONGEST_WORD", 5000)
    (tmp_path / "a.txt").write_bytes(b"a b " + b"x" * 4000 + b" a " + b"y" * 8000)
    with pytest.raises(DataError, match="without a space or newline; is this text"):
        load_text(TextOptions(path=str(tmp_path / "a.txt")))


def test_missing_files_and_folders_without_text(tmp_path):
    with pytest.raises(DataError, match=r"b.txt: there is no such file or folder"):
        load_text(TextOptions(path=str(tmp_path / "b.txt")))
    (tmp_path / "a.csv").write_text("a,b")
    with pytest.raises(DataError, match=r"holds no file whose name ends with .txt, .*\.gz"):
        load_text(TextOptions(path=str(tmp_path)))
    (tmp_path / "a.txt").write_text("a b " * 9)
    (tmp_path / "empty.txt").write_text("\n")
    for part in ("validation_path", "test_path"):
        paths = {"path": str(tmp_path / "a.txt"), part: str(tmp_path / "empty.txt")}
        with pytest.raises(DataError, match=r"empty.txt: there are no words in it"):
            load_text(TextOptions(**paths))


def test_wikitext_that_is_not_there_or_lacks_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    options = TextOptions(dataset="wikitext-2")
    with pytest.raises(DataError, match=r"Run: freqsgd data get wikitext-2. By hand: "):
        load_text(options)
    (tmp_path / "wikitext-2").mkdir()
    (tmp_path / "wikitext-2" / "wiki.train.tokens").write_text("a b")
    with pytest.raises(DataError, match=r"wiki.valid.tokens: there is no such file, though"):
        load_text(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"dataset": "wikitext-9"},
            "unknown dataset 'wikitext-9': known are zipf-text, wikitext-2, wikitext-103$",
        ),
        ({"dataset": "criteo"}, "criteo is a table: .*takes zipf-text, wikitext-2, wikitext-103$"),
        ({"dataset": "wikitext-2", "path": "a"}, "dataset does not go with own files"),
        (
            {"dataset": "wikitext-2", "test_path": "a"},
            "test_path does not go with the dataset wik",
        ),
        ({"dataset": "wikitext-2", "tokenizer": "words"}, "tokenizer does not go with"),
        ({"lowercase": True}, "lowercase does not go with the dataset zipf-text"),
        ({"path": "a", "tokenizer": "bpe"}, "tokenizer must be whitespace or words, not 'bpe'"),
        ({"path": "a", "unknown": "keep"}, "must be remove or token, not 'keep'"),
        ({"path": "a", "min_count": 0}, "min count must be at least 1, not 0"),
        ({"path": "a", "max_vocab": 1}, "max vocab must be at least 2, not 1"),
        ({"path": "a", "longest": 1}, "longest must be at least 2, not 1"),
        ({"path": "a", "split_seed": -1}, "split seed must be at least 0, not -1"),
    ],
)
def test_options_that_do_not_fit_together(options, message):
    with pytest.raises(DataError, match=message):
        load_text(TextOptions(**options))


def test_text_is_no_table():
    with pytest.raises(DataError, match="wikitext-2 is text: train on it with freqsgd words train"):
        load(DataOptions(dataset="wikitext-2"))


MISSING = """
import sys
from freqsgd.errors import DataError
from freqsgd.words import TextOptions, load_text

options = TextOptions(path=sys.argv[1])
sys.modules.update(dict.fromkeys(("polars", "safetensors", "typer", "rich", "jinja2")))
try:
    load_text(options)
except DataError as error:
    print(error)
del sys.modules["polars"]
print(load_text(options).words)
"""


def test_text_is_read_with_polars_alone_and_without_it_the_extra_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("a b " * 9)
    command = [sys.executable, "-c", MISSING, str(tmp_path / "a.txt")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert told == ["text is read with polars: pip install 'freqsgd[text]'", "['a', 'b']"]
