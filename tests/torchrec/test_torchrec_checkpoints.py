"""What ranks have saved, other ranks go on with."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from freqsgd.errors import DataError
from freqsgd.recommender.one_pass import fit_stream
from freqsgd.runs.resume import CHECKPOINT
from tests.integration.ranks import Ranks
from tests.torchrec.sharded import (
    BATCH,
    MODELS,
    PLAN,
    RULE,
    BagStream,
    StoppedError,
    assert_like_one_process,
    same_record,
    same_results,
    settings_of,
    stop_at,
    train,
)

IN_THE_MIDDLE, IN_THE_EVALUATION = 13, 44  # of 42 batches and 17
LAST = "shards-42"
DATA = "data (names, sizes and times of files)"


@pytest.fixture(scope="module")
def whole(ranks: Ranks) -> dict[str, list[dict[str, Any]]]:
    """What two ranks end with that nobody disturbs."""
    return {model: ranks.run(train, model, {}) for model in MODELS}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stop", [IN_THE_MIDDLE, IN_THE_EVALUATION])
def test_two_ranks_go_on_to_the_same_bits(
    ranks: Ranks, whole: Any, model: str, stop: int, tmp_path: Path
) -> None:
    case = {"folder": str(tmp_path)}
    ranks.run(train, model, case | {"stop": stop})
    steps = 11 if stop == IN_THE_MIDDLE else 42
    assert names(tmp_path) == [CHECKPOINT, f"shards-{steps}"]
    shutil.copytree(tmp_path / f"shards-{steps}", tmp_path / "shards-99")  # of a run that died
    results = ranks.run(train, model, case | {"resume": True})
    same_results(results, whole[model])
    assert names(tmp_path) == ["model.safetensors", LAST]
    assert len(names(tmp_path / LAST)) == 2
    (tmp_path / CHECKPOINT).touch()  # and what one that died at its end would leave
    (tmp_path / "shards-11").mkdir(exist_ok=True)
    same_results(ranks.run(train, model, case | {"resume": True}), results)
    assert names(tmp_path) == ["model.safetensors", LAST]


@pytest.mark.parametrize(
    ("before", "after", "sharding", "stop"),
    [
        ("ranks", "one_rank", "row-wise", IN_THE_MIDDLE),
        ("ranks", "one_rank", "row-wise", IN_THE_EVALUATION),
        ("one_rank", "ranks", "row-wise", IN_THE_MIDDLE),
        ("ranks", "ranks", "table-wise", IN_THE_MIDDLE),
        ("ranks", "ranks", "auto", IN_THE_EVALUATION),
    ],
)
def test_other_ranks_and_shardings_go_on_to_the_same_result(
    before: str,
    after: str,
    sharding: str,
    stop: int,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    first, second = (request.getfixturevalue(name) for name in (before, after))
    case = {"folder": str(tmp_path)}
    first.run(train, "deepfm", case | {"stop": stop})
    results = second.run(train, "deepfm", case | {"resume": True, "sharding": sharding})
    assert_like_one_process(results, "deepfm")
    assert names(tmp_path) == ["model.safetensors", LAST]
    again = first.run(train, "deepfm", case | {"resume": True})
    assert_like_one_process(again, "deepfm")
    for result in again:
        same_record(result["record"], results[0]["record"], 0)


def interrupt_one(rank: int, folder: str) -> list[str]:
    """Ctrl-C comes to the second rank only."""
    from freqsgd.errors import InterruptedFitError
    from freqsgd.torchrec.trainer import fit_sharded

    told = []

    def listen(progress: Any, record: Any) -> None:
        told.append(progress.examples)
        if rank == 1 and len(told) == 7:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(InterruptedFitError):
        fit_sharded(
            BagStream(), RULE, settings_of("deepfm"), PLAN, folder=Path(folder), listener=listen
        )
    return [str(examples) for examples in told]


def test_ctrl_c_on_one_rank_leaves_a_checkpoint_of_all(
    ranks: Ranks, whole: Any, tmp_path: Path
) -> None:
    told = ranks.run(interrupt_one, str(tmp_path))
    assert told[0] == told[1] == [str(BATCH * (batch + 1)) for batch in range(7)]
    assert names(tmp_path) == [CHECKPOINT, "shards-7"]
    results = ranks.run(train, "deepfm", {"folder": str(tmp_path), "resume": True})
    same_results(results, whole["deepfm"])


def poison(rank: int, folder: str) -> dict[str, Any]:
    """A row becomes no number which the next batch holds in its second half only."""
    from freqsgd.torchrec.trainer import ShardedRun, fit_sharded

    learn = ShardedRun.learn

    def learn_poisoned(self: ShardedRun, ids: Any, labels: Any, logits: Any) -> None:
        if self.steps == 15:
            half = -(-len(ids) // 2)
            row = np.setdiff1d(ids[half:, 0], ids[:half, 0])[0]
            for held in self.rows:
                if held.table == "field0" and held.first <= row < held.last:
                    held.weight[row - held.first] = np.nan
        learn(self, ids, labels, logits)

    with mock.patch.object(ShardedRun, "learn", learn_poisoned):
        return fit_sharded(BagStream(), RULE, settings_of("fm"), PLAN, folder=Path(folder))[1]


def test_a_loss_that_is_no_number_on_one_rank_stops_all(ranks: Ranks, tmp_path: Path) -> None:
    records = ranks.run(poison, str(tmp_path))
    for record in records:
        assert record["stopped"] == "diverged"
        assert record["error"] == (
            "the loss is not a finite number on rank 1 in step 15 at lr 4: try a smaller learning "
            "rate"
        )
        assert record["examples"] == 15 * BATCH
    assert names(tmp_path) == [CHECKPOINT]
    for again in ranks.run(train, "fm", {"folder": str(tmp_path), "resume": True}):
        assert again["record"] == records[0]


def refused(rank: int, options: dict[str, Any]) -> str:
    from freqsgd.torchrec.trainer import fit_sharded

    with pytest.raises(DataError) as caught:
        fit_sharded(
            BagStream(**options.get("stream", {})),
            RULE,
            settings_of(options.get("model", "fm"), options.get("batch_size", BATCH)),
            PLAN,
            folder=Path(options["folder"]),
            resume=options.get("resume", True),
            sharding=options.get("sharding", "row-wise"),
        )
    return str(caught.value)


def test_what_cannot_be_gone_on_with_is_refused(ranks: Ranks, tmp_path: Path) -> None:
    case = {"folder": str(tmp_path)}
    ranks.run(train, "fm", case | {"stop": IN_THE_MIDDLE})
    for options, said in (
        ({"stream": {"sizes": (61, 40, 1)}}, "the data has changed"),
        ({"stream": {"sizes": (61, 40, 1)}}, "tokens 101 then, 102 now"),
        ({"batch_size": 40}, "written with batch_size 39, now batch_size is 40"),
        ({"model": "deepfm"}, "written with model fm, now model is deepfm"),
        ({"resume": False}, f"holds a {CHECKPOINT} already"),
        ({"sharding": "by-row"}, "unknown sharding 'by-row'"),
    ):
        for refusal in ranks.run(refused, case | options):
            assert said in refusal
            assert "\n" not in refusal
    with pytest.raises(DataError, match=r"its tables are in 2 shards; .* freqsgd convert"):
        fit_stream(BagStream(), RULE, settings_of("fm"), PLAN, folder=tmp_path, resume=True)
    assert names(tmp_path) == [CHECKPOINT, "shards-11"]


def test_what_one_process_left_is_refused_with_what_to_do(ranks: Ranks, tmp_path: Path) -> None:
    run = (BagStream(), RULE, settings_of("fm"), PLAN)
    with pytest.raises(StoppedError):
        fit_stream(*run, folder=tmp_path, listener=stop_at(IN_THE_MIDDLE))
    for said in ranks.run(refused, {"folder": str(tmp_path)}):
        assert said.endswith(
            f"{CHECKPOINT} is of training in one process: freqsgd convert makes of its folder "
            "another that --engine torchrec goes on from"
        )
    fit_stream(*run, folder=tmp_path, resume=True)
    for said in ranks.run(refused, {"folder": str(tmp_path)}):
        assert said.endswith(
            "is of training in one process: it came to its end; use another folder"
        )


def differ(rank: int, differing: str) -> str:
    from freqsgd.torchrec.trainer import fit_sharded

    settings, stream, sharding = settings_of("fm"), BagStream(), "row-wise"
    if rank == 1:
        if differing == "seed":
            settings = settings_of("fm", seed=5)
        elif differing == DATA:
            stream = BagStream(seed=3)
        elif differing == "examples":
            stream.files[0][1][50] ^= 1
        elif differing == "sharding":
            sharding = "table-wise"
    with pytest.raises(DataError) as caught:
        fit_sharded(stream, RULE, settings, PLAN, sharding=sharding)
    return str(caught.value)


@pytest.mark.parametrize(
    ("differing", "values"),
    [
        ("seed", ("0", "5")),
        ("sharding", ("'row-wise'", "'table-wise'")),
        (DATA, (repr(BagStream().fingerprint), repr(BagStream(seed=3).fingerprint))),
    ],
)
def test_ranks_with_other_options_or_data_are_refused_on_all(
    ranks: Ranks, differing: str, values: tuple[str, str]
) -> None:
    said = (
        f"{differing} is {values[0]} on rank 0 and {values[1]} on rank 1: start all ranks with the "
        "same options"
    )
    assert ranks.run(differ, differing) == [said] * 2


def test_ranks_that_read_other_examples_are_refused_on_all(ranks: Ranks) -> None:
    said = "rank 1 has read other examples than rank 0 for the batch after step 1: all ranks must "
    assert ranks.run(differ, "examples") == [said + "have the same files"] * 2


def started_again(rank: int, folder: str, parent: int, learn: bool = False) -> bool:
    """Whether a restart by a torchrun of some process id would go on with a folder."""
    from freqsgd.torchrec.trainer import _started_again

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHELASTIC_RUN_ID", "none")
        patch.setattr("os.getppid", lambda: parent)
        if learn:
            train(rank, "fm", {"folder": folder})
        return _started_again(Path(folder))


def test_a_restart_goes_on_with_what_this_torchrun_wrote_only(ranks: Ranks, tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert ranks.run(started_again, folder, 7) == [False] * 2
    assert ranks.run(started_again, folder, 7, True) == [True] * 2
    assert ranks.run(started_again, folder, 8) == [False] * 2
