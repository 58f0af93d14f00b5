"""A model of words comes back from its folder as it was."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open

from freqsgd.errors import DataError
from freqsgd.nn import FM
from freqsgd.nn.word2vec import CBOW, SkipGram
from freqsgd.recommender.folder import save_model
from freqsgd.runs import checkpoint
from freqsgd.runs.checkpoint import holds_words
from freqsgd.words.folder import load_words, save_words
from tests.recommender.made_up import dataset

WORDS = ["the", "日本", 'quo"te', "line\nbreak"]
COUNTS = np.array([9, 4, 2, 1])


@pytest.mark.parametrize("kind", [SkipGram, CBOW])
@pytest.mark.parametrize("options", [{"bias": False}, {"bias": True, "max_norm": 0.5}])
def test_a_model_comes_back(tmp_path, kind, options):
    model = kind(4, 3, **options)
    save_words(tmp_path / "a" / "model", model, WORDS, COUNTS, {"record": {"lr": 1.0}})
    before = torch.get_rng_state()
    found, words, counts, description = load_words(tmp_path / "a" / "model")
    assert torch.equal(torch.get_rng_state(), before)
    assert (type(found), words, counts.tolist()) == (kind, WORDS, COUNTS.tolist())
    assert found.max_norm == options.get("max_norm")
    expected = model.state_dict()
    assert found.state_dict().keys() == expected.keys()
    assert all(torch.equal(t, expected[name]) for name, t in found.state_dict().items())
    assert description["record"] == {"lr": 1.0}
    assert description["loss"] == ("softmax" if options["bias"] else "negative")
    inputs = torch.tensor([[1, 2], [3, 0]]) if kind is CBOW else torch.tensor([1, 3])
    assert torch.equal(found(inputs), model(inputs))
    found(inputs).sum().backward()  # it can be trained on
    assert found.input.weight.grad is not None


def test_the_file_can_be_read_by_others(tmp_path):
    save_words(tmp_path, SkipGram(4, 3), WORDS, COUNTS, {})
    with safe_open(tmp_path / "model.safetensors", framework="np") as file:
        assert set(file.keys()) == {
            "input.weight", "output.weight", "output.bias", "counts", "words",
        }  # fmt: skip
        assert json.loads(file.get_tensor("words").tobytes()) == WORDS
        assert file.get_tensor("counts").tolist() == COUNTS.tolist()


def test_models_of_words_are_told_from_others(tmp_path):
    save_words(tmp_path / "words", SkipGram(4, 3), WORDS, COUNTS, {})
    (tmp_path / "clicks").mkdir()
    save_model(tmp_path / "clicks", FM([2, 3], 4), dataset(sizes=(2, 3)), {})
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "model.safetensors").write_bytes(b"nonsense")
    names = ["words", "clicks", "damaged", "nowhere"]
    assert [holds_words(tmp_path / name) for name in names] == [True, False, False, False]
    with pytest.raises(DataError, match="clicks holds a model of another kind"):
        load_words(tmp_path / "clicks")


def test_a_file_whose_parts_do_not_belong_together_is_refused(tmp_path):
    save_words(tmp_path, SkipGram(4, 3), WORDS, COUNTS, {})
    path = tmp_path / "model.safetensors"
    tensors, description = checkpoint.load(path)
    for name in tensors:
        checkpoint.save(path, {k: t for k, t in tensors.items() if k != name}, description)
        if name == "output.bias":  # which makes another model of it
            continue
        with pytest.raises(DataError, match="does not describe a model of words"):
            load_words(tmp_path)
    checkpoint.save(path, tensors | {"counts": torch.ones(5).long()}, description)
    with pytest.raises(DataError, match="4 words, 5 counts"):
        load_words(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="damaged"):
        load_words(tmp_path)
