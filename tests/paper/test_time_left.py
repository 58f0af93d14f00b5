"""The time left, worked out by hand."""

from __future__ import annotations

import pytest

from freqsgd.paper.running import Clock


def told(clock, seconds):
    """The part that is over, and the seconds to the end."""
    return clock.share(seconds), clock.left(seconds)


def test_at_first_runs_take_what_they_usually_do():
    clock = Clock([10, 30, 40])
    assert told(clock, 0) == (0, 80)
    assert told(clock, 4) == (4 / 80, 76)


def test_a_run_over_its_time_is_as_good_as_done():
    assert told(Clock([10, 30, 40]), 50) == (10 / 80, 70)


def test_a_machine_twice_as_slow_needs_twice_the_rest():
    clock = Clock([10, 30, 40])
    clock.ended(20)
    assert told(clock, 0) == (10 / 80, 2 * 70)
    assert told(clock, 15) == (25 / 80, 2 * 30 - 15 + 2 * 40)
    clock.ended(20)  # in all 40 seconds instead of 40
    assert told(clock, 0) == (40 / 80, 40)


def test_what_was_there_already_says_nothing_of_the_machine():
    clock = Clock([10, 30, 40])
    clock.ended(None)
    assert told(clock, 0) == (10 / 80, 70)
    clock.ended(15)
    assert told(clock, 0) == (40 / 80, 20)


@pytest.mark.parametrize("last", [60, None])
def test_in_the_end_nothing_is_left(last):
    clock = Clock([10, 30])
    clock.ended(5)
    clock.ended(last)
    assert told(clock, 0) == (1, 0)
    assert told(Clock([]), 0) == (1, 0)


def test_the_share_never_falls():
    clock, shares = Clock([5, 20, 5]), []
    for taken in (9, None, 2):
        shares += [clock.share(seconds) for seconds in range(taken or 1)]
        clock.ended(taken)
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
