"""What ranks tell each other."""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from freqsgd.errors import DataError, DivergedError
from freqsgd.torchrec.group import _meet, agree, any_rank, check_loss, gather_texts
from tests.integration.ranks import Ranks
from tests.torchrec.ranks import run_ranks

TEXTS = ["", "zwei Wörter"]


def gather(rank: int) -> list[list[str]]:
    return [gather_texts(TEXTS[rank]), gather_texts("")]


def test_texts_of_all_ranks_come_in_their_order(ranks: Ranks) -> None:
    assert ranks.run(gather) == [[TEXTS, ["", ""]]] * 2


def disagree(rank: int, options: list[dict[str, Any]]) -> str:
    agree({"seed": 0, "features": ["a", "b"], "path": Path("x"), "lr": math.nan})
    with pytest.raises(DataError) as refused:
        agree(options[rank])
    return str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([{"dim": 8, "lr": 0.1}, {"dim": 8, "lr": 0.2}], "lr is 0.1 on rank 0 and 0.2 on rank 1"),
        ([{"dim": 8}, {"dim": 8, "seed": 1}], "seed is None on rank 0 and 1 on rank 1"),
    ],
)
def test_other_options_on_one_rank_are_refused_on_all(
    ranks: Ranks, options: list[dict[str, Any]], said: str
) -> None:
    assert ranks.run(disagree, options) == [f"{said}: start all ranks with the same options"] * 2


def raise_flags(rank: int) -> list[bool]:
    return [any_rank(False), any_rank(rank == 1), any_rank(True)]


def test_a_flag_of_one_rank_is_seen_by_all(ranks: Ranks) -> None:
    assert ranks.run(raise_flags) == [[False, True, True]] * 2


def diverge(rank: int) -> list[str]:
    check_loss(torch.tensor(0.5, requires_grad=True), step=1)
    with pytest.raises(DataError, match=r"the loss has shape \[3\]: give one number"):
        check_loss(torch.zeros(3), step=1)
    said = []
    for losses in ([0.5, math.nan], [math.inf, math.nan]):
        with pytest.raises(DivergedError) as stopped:
            check_loss(losses[rank], step=7)
        said.append(str(stopped.value))
    return said


def test_a_loss_that_is_no_number_stops_all_ranks_and_names_its_own(ranks: Ranks) -> None:
    one, both = (
        f"the loss of {w} is not a finite number in step 7" for w in ("rank 1", "ranks 0, 1")
    )
    assert ranks.run(diverge) == [[one, both]] * 2


def test_a_rank_that_ends_is_reported_in_one_line(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import os
            import torch.distributed as dist
            from freqsgd.tables.dataset import DataError
            from freqsgd.torchrec.group import any_rank, join, lost_rank

            join()
            any_rank(True)
            if dist.get_rank() == 1:
                os._exit(0)
            try:
                with lost_rank():
                    any_rank(True)
            except DataError as error:
                print("said:", error)
            """
        )
    )
    run = run_ranks(script)
    assert "said: another rank has ended: see its error" in run.stdout, run.stderr


def test_a_process_of_its_own_is_a_group_of_one() -> None:
    code = (
        "from freqsgd.torchrec.group import *; join(); join(); check_loss(1.0, 1); agree({}); "
        "print(gather_texts('alone'), any_rank(False))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "['alone'] False\n"


@pytest.mark.parametrize("late", [0, 1])
def test_ranks_that_start_again_meet_each_other_and_not_those_before(late: int) -> None:
    """In a store that keeps what earlier ranks wrote, also one that ended before it met others."""
    server = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)

    def meet(rank: int) -> str:
        time.sleep(1.5 * (rank == late))
        store = dist.TCPStore("localhost", server.port, is_master=False, wait_for_workers=False)
        return _meet(store, rank, 3)

    words = []
    with ThreadPoolExecutor(3) as pool:
        for _ in range(2):
            words += [{*pool.map(meet, range(3))}]
            server.set("first", "gone")
    assert [len(each) for each in words] == [1, 1]
    assert not words[0] & words[1]
