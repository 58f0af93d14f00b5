from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from freqsgd.errors import DataError
from freqsgd.tables.generated.synthetic import clicks_dataset, generate_clicks


def test_the_same_seed_gives_the_same_samples_and_another_seed_others():
    first, again, other = (generate_clicks(500, (30, 10), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.ids, again.ids)
    assert torch.equal(first.labels, again.labels)
    assert not torch.equal(first.ids, other.ids)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    generate_clicks(100, (30, 10))
    assert torch.equal(before, torch.get_rng_state())


def test_token_counts_fall_as_a_power_of_their_rank():
    counts = torch.bincount(
        generate_clicks(200_000, (1000,), falloff=1.0).ids[:, 0], minlength=1000
    )
    ranked = counts.sort(descending=True).values[:100].double().log()
    rank = torch.arange(1, 101, dtype=torch.float64).log()
    slope = ((rank - rank.mean()) * ranked).sum() / (rank - rank.mean()).square().sum()
    assert slope.item() == pytest.approx(-1.0, abs=0.05)


def test_labels_follow_the_stated_probabilities():
    clicks = generate_clicks(100_000)
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (clicks.probabilities >= low) & (clicks.probabilities < low + 0.25)
        gap = clicks.labels[inside].mean() - clicks.probabilities[inside].mean()
        assert abs(gap.item()) < 0.015


def test_the_default_draws_are_the_ones_that_were_fixed_before_any_training():
    """Drawn anew from the definition, without the generator's own code."""
    generator = torch.Generator().manual_seed(0)
    frequency = 1 / torch.arange(1, 8001, dtype=torch.float64)
    ranks = torch.multinomial(frequency, 450_000, replacement=True, generator=generator)
    users = torch.randperm(8000, generator=generator)[ranks]
    clicks = generate_clicks()
    assert torch.equal(clicks.ids[:, 0], users)
    assert clicks.sizes == (8000, 4000)


def test_an_exponential_tail_falls_by_the_same_factor_with_every_rank():
    clicks = generate_clicks(400_000, (200,), tail="exponential", falloff=0.05)
    counts = torch.bincount(clicks.ids[:, 0], minlength=200).sort(descending=True).values.double()
    assert (counts[20] / counts[0]).item() == pytest.approx(math.exp(-0.05 * 20), rel=0.05)
    assert (counts[60] / counts[40]).item() == pytest.approx(math.exp(-0.05 * 20), rel=0.1)


def test_an_unknown_tail_is_refused_with_the_known_ones():
    with pytest.raises(DataError, match="unknown tail 'zipf': known are polynomial, exponential"):
        generate_clicks(10, (3,), tail="zipf")


def test_as_a_dataset_the_ids_leave_room_for_the_rare_one():
    clicks = generate_clicks(1000, (30, 10))
    dataset = clicks_dataset(clicks)
    assert np.array_equal(dataset.ids, clicks.ids.numpy() + 1)
    assert dataset.ids.dtype == np.int32
    assert dataset.ids.flags.c_contiguous
    assert [field.size for field in dataset.fields] == [31, 11]
    assert np.array_equal(dataset.labels, clicks.labels.numpy())
    assert dataset.probabilities is not None
    assert np.array_equal(dataset.probabilities, clicks.probabilities.numpy())
