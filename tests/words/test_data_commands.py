"""``freqsgd data`` of text."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from freqsgd.cli.app import app
from freqsgd.tables import download
from freqsgd.tables.catalog import known_dataset

TEXT = {"train": "Tea and tea \n \n = Tea = \n" * 30, "valid": "tea <unk> \n", "test": "and \n"}


def run(*arguments):
    """What the command prints; its errors are raised."""
    return CliRunner().invoke(app, ["data", *arguments], catch_exceptions=False).stdout


@pytest.fixture
def wikitext(tmp_path, monkeypatch):
    folder = tmp_path / "wikitext-2"
    folder.mkdir()
    for part, text in TEXT.items():
        (folder / f"wiki.{part}.tokens").write_text(text)
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    return folder


def test_list_and_get_know_text(wikitext):
    output = run("list")
    assert f"at {wikitext / 'wiki.train.tokens'}" in output
    assert "Run: freqsgd data get wikitext-103. By hand: " in output
    assert "wiki.valid.tokens, wiki.test.tokens beside it" in output
    assert run("get", "zipf-text") == "zipf-text is made when it is used\n"


def facts(*arguments):
    lines = run("info", *arguments).splitlines()
    return {line.partition("  ")[0]: line.partition("  ")[2].strip() for line in lines}


def test_info_of_a_dataset_of_text(wikitext, cache):
    found = facts("wikitext-2")
    assert found["words"] == "150 train, 1 validation, 0 test"
    assert found["paragraphs"] == "60 train, 1 validation, 0 test"
    assert found["vocabulary"] == "2 words: 83.3% of all words of the text"
    assert found["most frequent"] == "tea (90), = (60)"
    assert found["encoded at"].startswith(str(cache / "encoded" / "wikitext-2-"))


def test_info_of_text_of_ones_own(wikitext):
    found = facts(str(wikitext / "wiki.train.tokens"), "--text")
    assert found["paragraphs"] == "54 train, 3 validation, 3 test"
    assert "made when it is used" in facts("zipf-text")["encoded at"]


def test_get_unpacks_all_files_of_wikitext(cache, monkeypatch):
    (cache / "data").mkdir(parents=True)
    archive = cache / "data" / "wikitext-2-v1.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for part, text in TEXT.items():
            file.writestr(f"wikitext-2/wiki.{part}.tokens", text)
    content = archive.read_bytes()
    dataset = replace(
        known_dataset("wikitext-2"),
        archive_bytes=len(content),
        archive_md5=hashlib.md5(content).hexdigest(),
    )
    monkeypatch.setattr(download, "known_dataset", lambda _: dataset)
    run("get", "wikitext-2")
    for part, text in TEXT.items():
        assert (cache / "data" / "wikitext-2" / f"wiki.{part}.tokens").read_text() == text
    assert not archive.exists()
