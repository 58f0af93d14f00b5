from __future__ import annotations

import pytest

from freqsgd.report import wording
from tests.report.made_up import plain


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.042, "0.04 s"),
        (0.33, "0.3 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (119.4, "119 s"),
        (119.6, "2 min 0 s"),
        (275, "4 min 35 s"),
        (599.7, "10 min"),
        (3_590, "1 h 0 min"),
        (9_000, "2 h 30 min"),
    ],
)
def test_durations_are_rounded_to_what_can_be_read(seconds, words):
    assert plain(wording.duration(seconds)) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "none"),
        (12, "12 bytes"),
        (39_000, "39.0 kB"),
        (5_067_920, "5.07 MB"),
        (1_280_000_000, "1.28 GB"),
        (999_000, "999 kB"),
        (2_560_000_000_000, "2,560 GB"),
    ],
)
def test_sizes_have_three_digits_and_no_state_is_none(count, words):
    assert plain(wording.size(count)) == words


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0"), (400, "0.000400"), (39_000, "0.0390"), (5_067_920, "5.07")]
)
def test_megabytes_have_three_digits(count, words):
    assert wording.megabytes(count) == words


def test_a_difference_agrees_with_the_scores_it_stands_beside():
    assert wording.difference(0.81864, 0.81586) == "0.0027"  # 0.8186 and 0.8159, though 0.00278
    assert wording.difference(0.81672, 0.81668) == "less than 0.0001"  # both shown as 0.8167
    assert wording.difference(0.5, 0.5) == "0.0000"


@pytest.mark.parametrize(
    ("mine", "other", "words"),
    [
        (6, 25, "4.2 times less"),
        (25, 6, "4.2 times more"),
        (1, 130, "130 times less"),
        (100, 101, "slightly less"),
        (101, 100, "slightly more"),
        (3, 3, "as much"),
        (0, 3, "less"),
        (3, 0, "more"),
    ],
)
def test_ratios_name_the_side(mine, other, words):
    assert wording.times(mine, other, "less", "more", "as much") == words


def test_lists_read_as_sentences_list():
    assert wording.enumerate_words([]) == ""
    assert wording.enumerate_words(["a"]) == "a"
    assert wording.enumerate_words(["a", "b"]) == "a and b"
    assert wording.enumerate_words(["a", "b", "c"]) == "a, b and c"


def test_shares_that_are_not_zero_do_not_look_like_it():
    assert [wording.percent(share) for share in (0, 0.00002, 0.004, 0.0973, 1)] == [
        "0%",
        "0.002%",
        "0.4%",
        "9.7%",
        "100%",
    ]


def test_names_are_listed_up_to_five_and_long_ones_are_cut():
    assert wording.named(list("abcde")) == "a, b, c, d and e"
    assert wording.named(list("abcdefgh")) == "a, b, c, d, e and 3 more"
    long = wording.named([300 * "x" + "1", 300 * "x" + "2"])
    assert len(long) < 100
    assert long.count("…") == 2
    assert long.endswith("2")


@pytest.mark.parametrize("most", [4, 5, 12, 24, 25, 26])
def test_shortened_names_have_the_length_asked_for(most):
    name = "a name of 25 characters.."
    assert len(wording.shortened(name, most)) == min(most, 25)
    assert (wording.shortened(name, most) == name) == (most >= 25)
