"""Files of vectors hold what the model holds, for readers that know nothing of freqsgd."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
from safetensors.numpy import load_file

from freqsgd.errors import DataError
from freqsgd.nn import FM
from freqsgd.recommender.folder import load_encoder, load_model, save_model
from freqsgd.recommender.predict import predictor_for
from freqsgd.vectors.export import export_model
from freqsgd.vectors.vectors import Vectors
from tests.recommender.made_up import dataset
from tests.vectors.conftest import ODD, SHOPS


def plain_read(path, format):
    return load_file(path) if format == "safetensors" else dict(np.load(path))


def parts(folder):
    """Name, tokens, vectors and linear weights of each field, straight from the model."""
    model, description = load_model(folder)
    encoder = load_encoder(folder, model, description)
    table = model.tokens.weight.detach().numpy()
    first = 0
    for number, (name, size) in enumerate(zip(description["fields"], model.sizes, strict=True)):
        rows = table[first : first + size]
        yield name, encoder.tokens(number), rows[:, :-1], rows[:, -1]
        first += size


def text_vectors(path):
    """By the definition of the format: a count and a dimension, then words and numbers."""
    lines = path.read_bytes().decode().split("\n")
    count, dim = map(int, lines[0].split())
    assert lines.pop() == ""
    assert len(lines) == count + 1
    found = {}
    for line in lines[1:]:
        word, *numbers = line.split()  # at any white space, as the strictest reader does
        assert len(numbers) == dim
        found[word] = np.array([float(number) for number in numbers]).astype(np.float32)
    assert len(found) == count
    return found


@pytest.mark.parametrize("format", ["safetensors", "npz"])
@pytest.mark.parametrize("name", ["fm", "deepfm"])
def test_arrays_are_the_models(folders, tmp_path, format, name):
    export_model(folders / name, format, tmp_path / "file")
    file = plain_read(tmp_path / "file", format)
    model, _ = load_model(folders / name)
    assert file.pop("bias") == model.bias.item()
    for field, tokens, vectors, linear in parts(folders / name):
        key = {ODD: "shop%2F%C3%BC%20100%25.npy"}.get(field, field)
        assert json.loads(bytes(file.pop(f"{key}.tokens"))) == tokens
        assert np.array_equal(file.pop(f"{key}.vectors"), vectors)
        assert np.array_equal(file.pop(f"{key}.linear"), linear)
        assert file.pop(f"{key}.counts").shape == linear.shape
    assert not file


def test_the_arrays_are_all_that_a_factorization_machine_needs(folders, tmp_path):
    export_model(folders / "fm", "npz", tmp_path / "file")
    file = np.load(tmp_path / "file")
    ids = np.int32([[3, 2, 1, -1, 4, 1], [0, 8, 0, 5, 6, 0]])  # user, shop, tags, price
    keys = ["user", "shop%2F%C3%BC%20100%25.npy", *["tags"] * 3, "price"]
    model, _ = load_model(folders / "fm")
    for row, expected in zip(ids, predictor_for(model).predict(ids), strict=True):
        used = [(key, k) for key, k in zip(keys, row.tolist(), strict=True) if k >= 0]
        log_odds = float(file["bias"]) + sum(float(file[f"{key}.linear"][k]) for key, k in used)
        vectors = [file[f"{key}.vectors"][k].astype(float) for key, k in used]
        log_odds += sum(float(v @ w) for v, w in combinations(vectors, 2))
        assert expected == pytest.approx(log_odds, abs=1e-5)


@pytest.mark.parametrize("format", ["safetensors", "npz"])
def test_a_field_of_one_token(tmp_path, format):
    model = FM([1, 3], dim=1)
    save_model(tmp_path, model, dataset(sizes=(1, 3)), {})
    export_model(tmp_path, format, tmp_path / "file")
    file = plain_read(tmp_path / "file", format)
    assert file["field0.vectors"].tolist() == [[model.tokens.weight[0, 0].item()]]
    assert file["field0.linear"].tolist() == [0]


@pytest.mark.parametrize("format", ["safetensors", "npz"])
def test_one_field_alone(folders, tmp_path, format):
    export_model(folders / "fm", format, tmp_path / "file", field="tags")
    names = set(plain_read(tmp_path / "file", format))
    assert names == {"bias", "tags.vectors", "tags.tokens", "tags.counts", "tags.linear"}


def test_counts_are_those_of_the_training_file(folders):
    import polars as pl

    vectors = Vectors.of_model(folders / "fm", ODD)
    seen = pl.read_parquet(folders / "clicks.parquet")[ODD].to_list()
    expected = {shop or "<missing>": seen.count(shop) for shop in SHOPS} | {"<rare>": -1}
    assert dict(zip(vectors.tokens, vectors.counts.tolist(), strict=True)) == expected


def test_word2vec_text_is_exact_and_leaves_out_what_was_never_trained(folders, tmp_path):
    export_model(folders / "fm", "word2vec-text", tmp_path / "shops.txt", field=ODD)
    found = text_vectors(tmp_path / "shops.txt")
    _, tokens, vectors, _ = next(part for part in parts(folders / "fm") if part[0] == ODD)
    assert tokens[0] == "<rare>"
    assert not vectors[0].any()  # no shop was rare
    words = {"Corner Shop": "Corner_Shop", 'the "best"': 'the_"best"', "line\nbreak": "line_break"}
    for token, vector in zip(tokens[1:], vectors[1:], strict=True):
        assert np.array_equal(found.pop(words.get(token, token)), vector)
    assert not found


def test_word2vec_text_has_the_rare_token_if_it_was_trained(folders, tmp_path):
    export_model(folders / "fm", "word2vec-text", tmp_path / "users.txt", field="user")
    assert "<rare>" in text_vectors(tmp_path / "users.txt")


def test_word2vec_text_takes_the_only_field(folders, tmp_path):
    export_model(folders / "one-field", "word2vec-text", tmp_path / "users.txt")
    assert "u7" in text_vectors(tmp_path / "users.txt")


@pytest.mark.parametrize("format", ["word2vec-text", "word2vec-bin"])
def test_tokens_that_would_look_the_same_are_refused(tmp_path, format):
    vectors = Vectors(["New York", "New\u00a0York"], np.ones((2, 3), np.float32))
    with pytest.raises(DataError, match=r"'New York' and 'New.xa0York'.*'New_York'"):
        vectors.save(tmp_path / "file", format)
    assert not list(tmp_path.iterdir())


def test_generated_tokens_are_their_numbers(folders, tmp_path):
    export_model(folders / "generated", "npz", tmp_path / "file")
    file = np.load(tmp_path / "file")
    tokens = json.loads(bytes(file["field1.tokens"]))
    assert tokens == [str(number) for number in range(len(file["field1.vectors"]))]
    assert "field1.counts" not in file
    export_model(folders / "generated", "word2vec-text", tmp_path / "text", field="field2")
    assert "0" not in text_vectors(
        tmp_path / "text"
    )  # which is for rare tokens, and there are none


@pytest.mark.parametrize("format", ["safetensors", "npz", "word2vec-text", "word2vec-bin"])
def test_saved_vectors_are_loaded_again(tmp_path, format):
    rng = np.random.default_rng(0)
    matrix = (rng.normal(size=(50, 6)) * 10.0 ** rng.integers(-30, 30, (50, 6))).astype(np.float32)
    matrix[3, 2], matrix[4, 0] = np.float32(1e-45), np.float32(-3.4028235e38)
    tokens = [f'"{number}' if number % 2 else f"'{number}" for number in range(50)]
    saved = Vectors(tokens, matrix, np.arange(50), name="a/b")
    saved.save(tmp_path / "some.file", format)
    loaded = Vectors.load(tmp_path / "some.file")
    assert loaded.tokens == tokens
    assert np.array_equal(loaded.matrix, matrix)
    if format.startswith("word2vec"):
        assert (loaded.counts, loaded.name) == (None, "some")
    else:
        assert np.array_equal(loaded.counts, np.arange(50))
        assert loaded.name == "a/b"


def test_text_of_the_original_program_is_read(tmp_path):
    (tmp_path / "vectors").write_text("2 3\n</s> 0.5 1 -2e-3 \nword 1 2 3 \n")
    loaded = Vectors.load(tmp_path / "vectors")
    assert loaded.tokens == ["</s>", "word"]
    assert loaded.matrix.tolist() == np.float32([[0.5, 1, -2e-3], [1, 2, 3]]).tolist()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"3 2\na 1 2\n",
        b"1 2\na 1\n",
        b"1 2\na 1 x\n",
        b"PK\x03\x04 not really",
        b"\x10\0\0\0\0\0\0\0{not really}",
    ],
)
def test_files_that_hold_no_vectors_are_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataError, match="file"):
        Vectors.load(tmp_path / "file")
    with pytest.raises(DataError, match="cannot read"):
        Vectors.load(tmp_path / "nowhere")


def test_pickles_are_not_loaded(tmp_path):
    np.savez(tmp_path / "file.npz", **{"a.vectors": np.array([print], object)})
    with pytest.raises(DataError, match="allow_pickle"):
        Vectors.load(tmp_path / "file.npz")
