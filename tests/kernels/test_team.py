"""How many threads a kernel gets, by a clock that tests set."""

from __future__ import annotations

import pytest

from freqsgd.kernels import threads as team
from freqsgd.kernels.threads import Team


class Machine:
    """A clock, and how long a call takes with each number of threads."""

    def __init__(self, monkeypatch, seconds: dict[int, float]) -> None:
        self.now, self.seconds = 0.0, seconds
        monkeypatch.setattr(team.time, "perf_counter", lambda: self.now)

    def calls(self, team: Team, number: int) -> list[int]:
        used = []
        for _ in range(number):
            with team.call(10) as threads:
                self.now += self.seconds[threads]
            used.append(threads)
        return used


def test_an_idle_machine_gives_all_threads(monkeypatch):
    used = Machine(monkeypatch, {1: 2.0, 4: 1.0}).calls(Team(4), 500)
    assert used[:2] == [4, 1]
    assert used.count(4) > 490


def test_a_busy_machine_gives_one(monkeypatch):
    used = Machine(monkeypatch, {1: 2.0, 4: 100.0}).calls(Team(4), 500)
    assert used.count(1) > 490


def test_it_notices_when_the_machine_changes(monkeypatch):
    machine, team = Machine(monkeypatch, {1: 2.0, 2: 100.0}), Team(2)
    assert machine.calls(team, 100)[-1] == 1
    machine.seconds[2] = 1.0
    assert machine.calls(team, 1100)[-1] == 2


def test_calls_that_try_a_number_are_named_before(monkeypatch):
    machine, team, used = Machine(monkeypatch, {1: 1.0, 2: 3.0}), Team(2), []
    for _ in range(100):
        trial = team.is_trial
        used.append((trial, *machine.calls(team, 1)))
    assert used[:3] == [(True, 2), (True, 1), (False, 1)]
    assert set(used[2:]) == {(False, 1), (True, 2)}
    assert not Team(1).is_trial


def test_one_thread_is_one(monkeypatch):
    assert set(Machine(monkeypatch, {1: 1.0}).calls(Team(1), 50)) == {1}
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Team(0)
