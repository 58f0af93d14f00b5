"""Files that are held out are not learned from, and WikiText is known by its files."""

from __future__ import annotations

import gzip

import pytest

from freqsgd.errors import DataError
from freqsgd.words.loading import load_text
from freqsgd.words.spec import TextOptions
from tests.words.test_text_files import as_lists, write

PARTS = ("train", "valid", "test")


def words_of(corpus):
    """The words of each part, one after another."""
    return [
        [corpus.words[number] for piece in as_lists(part) for number in piece]
        for part in (corpus.train, corpus.validation, corpus.test)
    ]


def load_words(path, **options):
    options = {name: str(value) for name, value in options.items()}
    corpus = load_text(TextOptions(path=str(path), min_count=1, unknown="token", **options))
    return words_of(corpus)


@pytest.fixture
def wikitext(tmp_path):
    folder = tmp_path / "wikitext"
    folder.mkdir()
    for part in PARTS:
        write(folder / f"wiki.{part}.tokens", f" \n = {part} = \n <unk> {part} \n")
    return folder


TRAIN = ["=", "train", "=", "<unk>", "train"]
OTHER = ["=", "<unk>", "=", "<unk>", "<unk>"]


def test_a_folder_of_wikitext_is_known_by_its_files(wikitext):
    assert load_words(wikitext) == [TRAIN, OTHER, OTHER]


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("part", ["valid", "test"])
def test_of_wikitext_only_the_part_that_is_named_is_another(wikitext, tmp_path, part, there):
    own = write(tmp_path / "own.txt", "train train")
    if not there:
        (wikitext / f"wiki.{part}.tokens").unlink()
    if part == "valid":
        assert load_words(wikitext, validation_path=own) == [TRAIN, ["train", "train"], OTHER]
    else:
        assert load_words(wikitext, test_path=own) == [TRAIN, OTHER, ["train", "train"]]


def test_both_parts_of_wikitext_may_be_others(wikitext, tmp_path):
    own = write(tmp_path / "own.txt", "train train")
    found = load_words(wikitext, validation_path=own, test_path=wikitext / "wiki.valid.tokens")
    assert found == [TRAIN, ["train", "train"], OTHER]


def test_a_folder_of_wikitext_has_the_defaults_of_wikitext(wikitext, tmp_path, monkeypatch):
    write(wikitext / "wiki.train.tokens", "Tea tea and " * 50 + "or " * 49)
    wikitext.rename(tmp_path / "wikitext-2")
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    path = str(tmp_path / "wikitext-2")
    by_name = load_text(TextOptions(dataset="wikitext-2"))
    by_folder = load_text(TextOptions(path=path))
    assert by_name.words == by_folder.words == ["tea", "and"]
    assert by_name.fingerprint == by_folder.fingerprint
    as_written = load_text(TextOptions(path=path, lowercase=False, min_count=49))
    assert as_written.words == ["Tea", "tea", "and", "or"]


@pytest.mark.parametrize("named", ["validation", "test", "both", "folder", "link"])
def test_files_that_are_held_out_are_not_learned_from(tmp_path, monkeypatch, named):
    folder = tmp_path / "texts"
    folder.mkdir()
    write(folder / "a.txt", "a1 a2\n" * 20)
    write(folder / "b.txt", "a1 b1\n")
    write(folder / "c.txt.gz", gzip.compress(b"a1 c1 c1\n"))
    monkeypatch.chdir(tmp_path)  # paths of the same file may be spelled in several ways
    (tmp_path / "link").symlink_to(folder / "b.txt")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "b.txt").symlink_to(folder / "b.txt")
    b, c = "texts/../texts/b.txt", folder / "c.txt.gz"
    options = {
        "validation": {"validation_path": b},
        "test": {"test_path": b},
        "both": {"validation_path": b, "test_path": c},
        "folder": {"validation_path": "links"},
        "link": {"test_path": "link"},
    }[named]
    train, validation, test = load_words(folder, **options)
    assert "a2" in train
    assert "b1" not in train
    assert ("c1" in train) == (named != "both")
    own = test if named in ("test", "link") else validation
    assert own in (["a1"], ["a1", "<unk>"])
    if named == "both":
        assert (validation, test) == (["a1"], ["a1"])


def test_what_is_all_held_out_cannot_be_learned_from(tmp_path, wikitext):
    path = write(tmp_path / "a.txt", "a b " * 9)
    for options in (
        {"path": path, "test_path": path},
        {"path": path, "validation_path": str(tmp_path)},
        {"path": str(wikitext), "test_path": str(wikitext / "wiki.train.tokens")},
    ):
        with pytest.raises(DataError, match="tested on is all there is to learn from; name other"):
            load_text(TextOptions(**options))


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("corpus.txt", "corpus"),
        ("Corpus.TXT.GZ", "Corpus"),
        ("news.2024.text", "news.2024"),
        ("wiki.train.tokens", "wiki.train"),
        ("a.tokens.txt", "a.tokens"),
        ("v1.2", "v1.2"),
        ("v1.2.gz", "v1.2"),
        (".hidden", ".hidden"),
        (".txt", ".txt"),
    ],
)
def test_a_text_is_named_after_its_file(tmp_path, cache, file, name):
    content = b"a b\n"
    path = write(
        tmp_path / file, gzip.compress(content) if file.lower().endswith("gz") else content
    )
    assert load_text(TextOptions(path=path, min_count=1)).name == name
    assert [folder.name.rpartition("-")[0] for folder in (cache / "encoded").iterdir()] == [name]


def test_a_folder_with_a_dot_keeps_its_name(tmp_path):
    (tmp_path / "v1.2").mkdir()
    write(tmp_path / "v1.2" / "a.txt", "a b")
    assert load_text(TextOptions(path=str(tmp_path / "v1.2"), min_count=1)).name == "v1.2"
