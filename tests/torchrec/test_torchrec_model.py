"""What ranks compute apart, and where they start, against one process."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from freqsgd.nn import fm
from freqsgd.recommender.engine import new_model
from freqsgd.torchrec.limits import require_torchrec
from freqsgd.torchrec.model import batch_norm
from freqsgd.torchrec.tables import Layout, Rows
from tests.integration.ranks import Ranks
from tests.torchrec.sharded import MODELS, BagStream, settings_of

WIDTH, STEPS = 5, 3


def random_values(size: int) -> tuple[Tensor, Tensor]:
    """Inputs of some steps, and slopes of what comes out."""
    generator = torch.Generator().manual_seed(size)
    inputs, slopes = torch.randn(2, STEPS, size, WIDTH, generator=generator, dtype=torch.float64)
    return 3 * inputs + 1, slopes


def new_layer() -> nn.BatchNorm1d:
    layer = nn.BatchNorm1d(WIDTH, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.linspace(0.5, 2, WIDTH))
        layer.bias.copy_(torch.linspace(-1, 1, WIDTH))
    return layer


def normalize_parts(rank: int, size: int, ranks: int) -> dict[str, Any]:
    """A rank's samples, between others that only fill up."""
    length = -(-size // ranks)
    first = rank * length
    inputs, slopes = (each[:, first : first + length] for each in random_values(size))
    own = inputs.shape[1]
    filled = torch.full((STEPS, length, WIDTH), 9.0, dtype=torch.float64)
    filled[:, :own] = inputs
    layer, found = new_layer(), []
    for values, slope in zip(filled, slopes, strict=True):
        values.requires_grad_()
        layer.weight.grad = layer.bias.grad = None
        normalized = batch_norm(values, layer, own, size)[:own]
        normalized.backward(slope)
        assert values.grad is not None
        found.append((normalized.detach(), values.grad[:own], layer.weight.grad, layer.bias.grad))
    return {"found": found, "state": dict(layer.state_dict())}


@pytest.mark.parametrize("size", [12, 7, 2])
def test_batch_norm_of_parts_is_that_of_the_whole(ranks: Ranks, size: int) -> None:
    parts = ranks.run(normalize_parts, size, 2)
    layer = new_layer()
    for step, (values, slope) in enumerate(zip(*random_values(size), strict=True)):
        values.requires_grad_()
        layer.weight.grad = layer.bias.grad = None
        expected = layer(values)
        expected.backward(slope)
        outputs, gradients, weights, biases = zip(*(p["found"][step] for p in parts), strict=True)
        torch.testing.assert_close(torch.cat(outputs), expected.detach())
        torch.testing.assert_close(torch.cat(gradients), values.grad)
        torch.testing.assert_close(sum(weights), layer.weight.grad)
        torch.testing.assert_close(sum(biases), layer.bias.grad)
    for part in parts:
        torch.testing.assert_close(part["state"], dict(layer.state_dict()))


def test_products_of_pairs_have_the_gradient_of_what_they_are() -> None:
    require_torchrec()
    from freqsgd.torchrec.model import _Pairs

    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(4, 3, 8, dtype=torch.float64, generator=generator)
    rows[..., 6:] = 0  # beyond the linear weights
    used = rows[..., :6].clone().requires_grad_()

    def pairs(some: Tensor) -> Tensor:
        whole = torch.cat([some, torch.zeros(4, 3, 2, dtype=torch.float64)], -1)
        found: Tensor = _Pairs.apply(whole, 5)  # type: ignore[no-untyped-call]
        return found

    by_hand = [
        sum(float(row[5]) for row in sample)
        + sum(float(sample[a, :5] @ sample[b, :5]) for a in range(3) for b in range(a))
        for sample in rows
    ]
    np.testing.assert_allclose(pairs(used).detach(), by_hand)
    assert torch.autograd.gradcheck(pairs, (used,))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("huge", [False, True])
def test_ranks_start_where_one_process_starts(
    model: str, huge: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_torchrec()
    from freqsgd.torchrec.model import ShardedFM
    from freqsgd.torchrec.trainer import draw_start

    if huge:
        monkeypatch.setattr(fm, "_HUGE", 10)
        monkeypatch.setattr(fm, "_BLOCK", 16)
        monkeypatch.setattr("freqsgd.torchrec.trainer._SOME", 9)
    fields, settings = BagStream().fields, settings_of(model)
    sizes, dim = tuple(field.size for field in fields), settings.vector_dim
    layout = Layout(sizes, tuple(field.width for field in fields), dim)
    cuts = {"field0": (0, 23, 60), "field1": (0, 40), "field2": (0, 1)}
    held = [
        Rows(table, first, torch.full((last - first, layout.row), 7.0), torch.zeros(last - first))
        for table, ends in cuts.items()
        for first, last in pairwise(ends)
    ]
    expected = new_model(fields, settings)
    before = torch.get_rng_state()
    sharded = ShardedFM(layout, settings.hidden if model == "deepfm" else None, settings.dropout)
    torch.set_rng_state(before)
    draw_start(fields, settings, held, sharded, layout)
    assert torch.equal(torch.get_rng_state(), before)
    drawn = torch.cat([rows.weight for rows in held])
    assert torch.equal(drawn[:, : dim + 1], expected.tokens.weight)
    assert not drawn[:, dim + 1 :].any()
    assert expected.tokens.weight[:, :dim].unique().numel() > 100
    for name, value in sharded.state_dict().items():
        if not name.startswith("tables."):
            assert torch.equal(value, expected.state_dict()[name])
