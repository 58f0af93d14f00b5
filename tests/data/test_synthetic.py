from __future__ import annotations

import pytest
import torch

from freqsgd.data.synthetic import zipf_clicks


def test_the_same_seed_gives_the_same_samples_and_another_seed_others():
    first, again, other = (zipf_clicks(500, (30, 10), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.ids, again.ids)
    assert torch.equal(first.labels, again.labels)
    assert not torch.equal(first.ids, other.ids)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    zipf_clicks(100, (30, 10))
    assert torch.equal(before, torch.get_rng_state())


def test_token_counts_fall_as_a_power_of_their_rank():
    counts = torch.bincount(zipf_clicks(200_000, (1000,), exponent=1.0).ids[:, 0], minlength=1000)
    ranked = counts.sort(descending=True).values[:100].double().log()
    rank = torch.arange(1, 101, dtype=torch.float64).log()
    slope = ((rank - rank.mean()) * ranked).sum() / (rank - rank.mean()).square().sum()
    assert slope.item() == pytest.approx(-1.0, abs=0.05)


def test_labels_follow_the_stated_probabilities():
    clicks = zipf_clicks(100_000)
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (clicks.probabilities >= low) & (clicks.probabilities < low + 0.25)
        gap = clicks.labels[inside].mean() - clicks.probabilities[inside].mean()
        assert abs(gap.item()) < 0.015
