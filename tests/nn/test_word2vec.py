from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

import freqsgd
from freqsgd.nn import CBOW, SkipGram

INPUTS = {
    SkipGram: torch.tensor([3, 0, 3, 8]),
    CBOW: torch.tensor([[3, 1, 3, 0], [-1, -1, 8, 2], [5, -1, -1, -1], [1, 1, 1, 1]]),
}
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.5),
    "Adam": lambda p: torch.optim.Adam(p, 0.05),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 0.1),
}


def scores(model, words):
    """The formula, word by word: a mean of vectors against every row of the output."""
    mean = sum(model.input.weight[k] for k in words) / len(words)
    bias = model.output.bias if model.biased else torch.zeros(model.words)
    return torch.stack([mean @ w + b for w, b in zip(model.output.weight, bias, strict=True)])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [SkipGram, CBOW])
def test_scores_are_products_of_the_mean_vector_with_every_output_row(kind, bias):
    model = kind(9, 5, bias=bias)
    torch.nn.init.normal_(model.output.weight)
    inputs = INPUTS[kind]
    expected = [scores(model, [k for k in row.reshape(-1).tolist() if k >= 0]) for row in inputs]
    torch.testing.assert_close(model(inputs), torch.stack(expected))


def test_an_empty_window_is_a_zero_vector():
    model = CBOW(9, 5)
    torch.testing.assert_close(model(torch.full((1, 4), -1))[0], model.output.bias)


@pytest.mark.parametrize("kind", [SkipGram, CBOW])
def test_words_beyond_the_vocabulary_are_refused(kind):
    for wrong in (9, -2):
        with pytest.raises((IndexError, RuntimeError)):
            kind(9, 5)(torch.full_like(INPUTS[kind], wrong))


@pytest.mark.parametrize("kind", [SkipGram, CBOW])
def test_max_norm_shortens_the_rows_that_are_used(kind):
    model = kind(9, 5, max_norm=0.5)
    torch.nn.init.normal_(model.input.weight)
    before = model.input.weight.detach().clone()
    before[8] *= 0.01  # short already
    model.input.weight.data.copy_(before)
    inputs = INPUTS[kind]
    used = inputs[inputs >= 0].unique()
    lengths = before.norm(dim=1, keepdim=True)
    short = torch.where(lengths > 0.5, before * 0.5 / lengths, before)
    torch.testing.assert_close(model.vectors, short, rtol=1e-5, atol=1e-6)
    assert torch.equal(model.input.weight, before)
    model(inputs)
    expected = before.clone()
    expected[used] = short[used]
    torch.testing.assert_close(model.input.weight.detach(), expected, rtol=1e-5, atol=1e-6)


def test_the_start_for_a_softmax_has_vectors_of_length_one():
    model = SkipGram(2000, 64)
    assert model.input.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert model.output.weight.abs().max().item() == pytest.approx(1 / 8, rel=0.02)  # uniform
    assert model.output.bias.abs().max().item() == pytest.approx(1 / 8, rel=0.02)


def test_the_start_for_negative_sampling_has_small_vectors_and_no_scores():
    model = CBOW(2000, 64, bias=False)
    assert model.input.weight.abs().max().item() == pytest.approx(0.5 / 64, rel=0.02)
    assert model.input.weight.std().item() == pytest.approx(0.5 / 64 / 3**0.5, rel=0.02)
    assert not model.output.weight.any()
    assert model.output.bias is None


@pytest.mark.parametrize("kind", [SkipGram, CBOW])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_torch_optimizers_lower_the_loss(name, kind):
    model = kind(9, 5, max_norm=1.0)
    optimizer = OPTIMIZERS[name](model.parameters())
    targets = torch.tensor([1, 2, 1, 4])

    def loss():
        optimizer.zero_grad()
        value = cross_entropy(model(INPUTS[kind]), targets)
        value.backward()
        return value

    first = loss().item()
    for _ in range(20):
        optimizer.step(loss)
    assert loss().item() < 0.8 * first


def test_cfsgd_trains_it_and_counts_inputs_and_targets():
    model = SkipGram(9, 5)
    optimizer = freqsgd.CFSGD(model.parameters(), lr=0.5)
    freqsgd.watch(model, optimizer)
    targets = torch.tensor([1, 2, 1, 4])
    optimizer.observe(model.output.weight, targets)
    cross_entropy(model(INPUTS[SkipGram]), targets).backward()
    optimizer.step()
    assert optimizer.counts(model.input.weight).tolist() == [1, 0, 0, 2, 0, 0, 0, 0, 1]
    assert optimizer.counts(model.output.weight).tolist() == [0, 2, 1, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("options", [{"words": 0}, {"dim": 0}, {"max_norm": 0.0}])
def test_sizes_that_make_no_model_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        SkipGram(**{"words": 5, "dim": 3, **options})
