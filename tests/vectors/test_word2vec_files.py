"""word2vec's two formats: what gensim writes and reads, and files that were cut or changed."""

from __future__ import annotations

import contextlib
import gzip
import json

import numpy as np
import pytest

from freqsgd.errors import DataError, DataWarning
from freqsgd.vectors import files as vector_files
from freqsgd.vectors.export import export_model
from freqsgd.vectors.vectors import Vectors
from tests.vectors.conftest import ODD

FORMATS = ["word2vec-text", "word2vec-bin"]


def some(count=40, dim=6, seed=0):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-30, 30, (count, dim))
    matrix = (rng.normal(size=(count, dim)) * scale).astype(np.float32)
    return Vectors([f"wört{number}" for number in range(count)], matrix)


def gensim_vectors():
    return pytest.importorskip("gensim.models").KeyedVectors


@pytest.mark.parametrize("format", FORMATS)
def test_gensim_reads_the_same_bits(tmp_path, format):
    vectors = some()
    vectors.save(tmp_path / "file", format)
    binary = format == "word2vec-bin"
    found = gensim_vectors().load_word2vec_format(tmp_path / "file", binary=binary)
    assert found.index_to_key == vectors.tokens
    assert np.array_equal(found.vectors, vectors.matrix)


@pytest.mark.parametrize("format", FORMATS)
def test_gensim_reads_a_field_of_a_recommender(folders, tmp_path, format):
    export_model(folders / "fm", format, tmp_path / "file", field=ODD)
    binary = format == "word2vec-bin"
    found = gensim_vectors().load_word2vec_format(tmp_path / "file", binary=binary)
    vectors = Vectors.of_model(folders / "fm", ODD)
    assert not vectors["<rare>"].any()
    assert "<rare>" not in found
    assert np.array_equal(found["Corner_Shop"], vectors["Corner Shop"])
    assert np.array_equal(found["line_break"], vectors["line\nbreak"])
    assert len(found) == len(vectors.tokens) - 1


@pytest.mark.parametrize("binary", [False, True])
def test_what_gensim_writes_is_read(tmp_path, binary):
    vectors = some()
    keyed = gensim_vectors()(6)
    keyed.add_vectors(vectors.tokens, vectors.matrix)
    keyed.save_word2vec_format(tmp_path / "file", binary=binary)
    found = Vectors.load(tmp_path / "file")
    assert found.tokens == vectors.tokens
    assert np.array_equal(found.matrix, vectors.matrix)


@pytest.mark.parametrize("mark", ["", "\x01"])  # a word may hold what text does not
@pytest.mark.parametrize("dim", [2, 7])
def test_bytes_are_told_from_text_whatever_they_are(tmp_path, dim, mark):
    rng = np.random.default_rng(dim)
    for number in range(100):
        # all bits but those of NaN, so also those that look like spaces, line breaks and digits
        bits = rng.integers(0, 2**32, (4, dim), np.uint32)
        matrix = np.nan_to_num(bits.view(np.float32), nan=1.5)
        for format in FORMATS:
            vectors = Vectors([f"{mark}{row}" for row in range(4)], matrix)
            vectors.save(tmp_path / "file", format, force=True)
            found = Vectors.load(tmp_path / "file")
            assert np.array_equal(found.matrix, matrix), number


def test_text_is_read_in_blocks(tmp_path, monkeypatch):
    vectors = some(count=100)
    vectors.save(tmp_path / "file", "word2vec-text")
    monkeypatch.setattr(vector_files, "_BLOCK", 50)
    found = Vectors.load(tmp_path / "file")
    assert found.tokens == vectors.tokens
    assert np.array_equal(found.matrix, vectors.matrix)


def test_a_word_like_the_start_of_another_format(tmp_path):
    matrix = np.ones((4300, 30), np.float32)  # "4300 30\n{" might be a header of safetensors
    tokens = ["{", *(str(number) for number in range(4299))]
    Vectors(tokens, matrix).save(tmp_path / "file", "word2vec-bin")
    assert Vectors.load(tmp_path / "file").tokens == tokens


@pytest.mark.parametrize("format", ["safetensors", "npz", *FORMATS])
def test_files_that_were_cut_are_refused_wherever(tmp_path, format):
    path = tmp_path / "vectors.file"
    some(count=7, dim=3).save(path, format)
    whole = path.read_bytes()
    # but for its last line break; nobody can tell whether the last number of a text is whole
    end = {"word2vec-text": whole.rfind(b" ") + 1, "word2vec-bin": len(whole) - 1}
    for length in range(end.get(format, len(whole))):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"vectors\.file") as error:
            Vectors.load(path)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "first line"),
        (b"two 3\n", "first line"),
        (b"-1 3\n", "first line"),
        (b"2 0\n", "first line"),
        (b"99999999999999 300\na", "too short for 99,999,999,999,999 vectors"),
        (b"1 2\na 1 2\nb 3 4\n", "more than the 1 vectors"),
        (b"2 2\nlongword 1.5 2.5\n", "1 vectors where its first line says 2"),
        (b"1 2\na 1.5 -", "line 2 is not a word and 2 numbers: 'a 1.5 -'"),
        (b"2 2\na 1.5 2.5\nb 1.5\n", "line 3 is not a word and 2 numbers: 'b 1.5'"),
        (b"1 2\na 1.5\n", "line 2 is not a word and 2 numbers"),
        (b"1 2\na 1.5 2.5 3.5\n", "line 2 is not a word and 2 numbers"),
        (b"1 2\na 1.5 x\n", "line 2 is not a word and 2 numbers"),
        (b"2 2\na 1.5 2.5\n\nb 1.5 2.5\n", "line 3 is not a word and 2 numbers"),
        (b"2 2\na 1.5 2.5\n\xff 1.5 2.5\n", "line 3 is not a word and 2 numbers"),
        (b"a 1.5 2.5\nb 1.5\n", "line 2 is not a word and 2 numbers"),
        (b"2 2\na 1.5 2.5\nb nan 2.5\n", "line 3: the vector of 'b' .* not finite"),
        (b"2 2\na 1.5 2.5\nb 1e60 2.5\n", "line 3: the vector of 'b' .* not finite"),
        (b"a 1.5 -inf\nb 1 2.5\n", "line 1: the vector of 'a' .* not finite"),
        (b"3 2\na 1.5 2.5\nb 1 2\na 1 2\n", "line 4: 'a' is there already, as line 2"),
        (b"1 1\na \0\0\xc0\x7f\n", "vector 1: the vector of 'a' .* not finite"),
        (b"2 1\na \0\0\0\0\na \0\0\0\0\n", "vector 2: 'a' is there already, as vector 1"),
        (b"\x1f\x8b\x08\x00", "damaged"),
        (b"1 2\na \0\0\0\0\0\0\0\0\nb 12", "goes on after its 1 vectors"),
        (b"1 2\na\xff \0\0\0\0\0\0\0\0\n", "utf-8"),
        (b"2 1\na \0\0\0\0\nb \0\0\0", "ends within vector 2 of 2"),
    ],
)
def test_damage_is_named(tmp_path, content, said):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataError, match=said):
        Vectors.load(tmp_path / "file")


@pytest.mark.parametrize("format", FORMATS)
def test_no_vectors_at_all(tmp_path, format):
    Vectors(["a"], np.zeros((1, 3), np.float32)).save(tmp_path / "file", format)
    assert Vectors.load(tmp_path / "file").matrix.shape == (0, 3)


def test_a_file_of_other_arrays_is_refused(tmp_path):
    np.savez(tmp_path / "file.npz", numbers=np.ones(3))
    with pytest.raises(DataError, match="holds no vectors"):
        Vectors.load(tmp_path / "file.npz")


@pytest.mark.parametrize(
    "content",
    [
        "2 2\na 1.5 -2\nb 0.25 4e-3\n",
        "2 2\na 1.5 -2\nb 0.25 4e-3\n\n \n",
        "2 2 \r\na 1.5 -2 \r\nb 0.25 4e-3 \r\n",
        "2\t2\na\t1.5\t-2\nb\t0.25\t4e-3\n",
        "2 2\na\t1.5 -2\t\r\nb\t0.25 4e-3\t\r\n",
        "\ufeff2 2\na 1.5 -2\nb 0.25 4e-3\n",
        "a 1.5 -2\nb 0.25 4e-3\n",
        "\ufeffa 1.5 -2\r\nb 0.25 4e-3\r\n\r\n",
    ],
)
@pytest.mark.parametrize("block", [1, 1 << 25])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_text_may_be_written_in_other_ways(tmp_path, monkeypatch, content, block, pack):
    monkeypatch.setattr(vector_files, "_BLOCK", block)
    (tmp_path / "file").write_bytes(pack(content.encode()))
    found = Vectors.load(tmp_path / "file")
    assert found.tokens == ["a", "b"]
    assert np.array_equal(found.matrix, np.float32([[1.5, -2], [0.25, 0.004]]))


def test_a_last_line_without_an_end_is_read_and_told(tmp_path):
    (tmp_path / "file").write_text("2 2\na 1.5 -2\nb 0.25 4")
    with pytest.warns(DataWarning, match="that of 'b', has no end"):
        found = Vectors.load(tmp_path / "file")
    assert np.array_equal(found["b"], np.float32([0.25, 4]))


def test_bytes_may_be_compressed(tmp_path):
    some().save(tmp_path / "file", "word2vec-bin")
    packed = gzip.compress((tmp_path / "file").read_bytes())
    (tmp_path / "file.gz").write_bytes(packed)
    found = Vectors.load(tmp_path / "file.gz")
    assert found.tokens == some().tokens
    assert np.array_equal(found.matrix, some().matrix)
    for length in (3, 100, len(packed) - 9, len(packed) - 1):
        (tmp_path / "file.gz").write_bytes(packed[:length])
        with pytest.raises(DataError, match="damaged"):
            Vectors.load(tmp_path / "file.gz")


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_is_read_or_refused(tmp_path, monkeypatch, format):
    monkeypatch.setattr(vector_files, "_BLOCK", 1)
    tokens = ["\ufeffa", "a", "\ufeff", "\ufeffb", '"', "#", "\0", "nan", "12", "null"]
    Vectors(tokens, some(len(tokens)).matrix).save(tmp_path / "file", format)
    assert Vectors.load(tmp_path / "file").tokens == tokens
    assert np.array_equal(Vectors.load(tmp_path / "file").matrix, some(len(tokens)).matrix)
    for wrong in ("", "half \ud800"):
        with pytest.raises(DataError, match=r"cannot be written here: use .* safetensors"):
            Vectors(["a", wrong], some(2).matrix).save(tmp_path / "other", format)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("format", ["safetensors", "npz", *FORMATS])
def test_what_would_be_refused_is_not_written(tmp_path, format):
    matrix = some(3).matrix
    with pytest.raises(DataError, match="row 2: 'a' is there already, as row 0"):
        Vectors(["a", "b", "a"], matrix).save(tmp_path / "file", format)
    matrix[1, 2] = np.nan
    with pytest.raises(DataError, match=r"row 1: the vector of 'b' .* not finite"):
        Vectors(["a", "b", "c"], matrix).save(tmp_path / "file", format)
    assert not list(tmp_path.iterdir())


def test_arrays_of_others_are_checked_too(tmp_path):
    def write(tokens, matrix):
        text = np.frombuffer(json.dumps(tokens).encode(), np.uint8)
        np.savez(tmp_path / "file.npz", **{"word.tokens": text, "word.vectors": matrix})

    for tokens, number, said in (
        (["a", "a"], 1, "row 1: 'a' is there already"),
        (["a", "b"], np.inf, "row 0: the vector of 'a' .* not finite"),
        (["a", 5], 1, "texts"),
    ):
        write(tokens, np.full((2, 2), number, np.float32))
        with pytest.raises(DataError, match=said):
            Vectors.load(tmp_path / "file.npz")


@pytest.mark.parametrize("format", ["safetensors", "npz"])
def test_flipped_bytes_are_one_error_or_none(tmp_path, format):
    path = tmp_path / "vectors.file"
    some(count=2, dim=3).save(path, format)
    whole = path.read_bytes()
    for place in range(len(whole)):
        for flip in (0x01, 0xFF):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
            with contextlib.suppress(DataError):
                Vectors.load(path)


def test_an_unknown_format_is_told_all_formats(tmp_path):
    with pytest.raises(DataError, match="known: safetensors, npz, word2vec-text, word2vec-bin"):
        some().save(tmp_path / "file", "foo")
