"""From ranks to one process and back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from freqsgd.errors import DataError
from freqsgd.files import LOCK, locked
from freqsgd.optimizers import Rule
from freqsgd.recommender.folder import load_model
from freqsgd.recommender.one_pass import fit_stream
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.runs import checkpoint
from freqsgd.runs.checkpoint import MODEL
from freqsgd.runs.resume import CHECKPOINT
from freqsgd.torchrec.convert import convert
from tests.integration.ranks import Ranks
from tests.recommender.made_up import dataset
from tests.torchrec.sharded import (
    MODELS,
    PLAN,
    RULE,
    BagStream,
    StoppedError,
    assert_like_one_process,
    close,
    one_process,
    put_together,
    same_record,
    settings_of,
    stop_at,
    train,
)

STOP = 13


def run_alone(
    folder: Path, model: str = "fm", *, rule: Rule = RULE, stop: int | None = None
) -> Any:
    """One process begins a run, or goes on with it."""
    run = (BagStream(), rule, settings_of(model), PLAN)
    if stop is None:
        return fit_stream(*run, folder=folder, resume=True)
    with pytest.raises(StoppedError):
        fit_stream(*run, folder=folder, listener=stop_at(stop))
    return None


@pytest.fixture(scope="module")
def broken_off(
    ranks: Ranks, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Path]:
    """Folders of runs that were broken off, by model and by who ran."""
    folder = tmp_path_factory.mktemp("runs")
    for model in MODELS:
        run_alone(folder / model / "alone", model, stop=STOP)
        ranks.run(train, model, {"folder": str(folder / model / "ranks"), "stop": STOP})
    return {(model, who): folder / model / who for model in MODELS for who in ("alone", "ranks")}


@pytest.mark.parametrize("model", MODELS)
def test_one_process_goes_on_with_what_ranks_began(
    broken_off: Any, model: str, tmp_path: Path
) -> None:
    assert convert(broken_off[model, "ranks"], tmp_path) == "a checkpoint for one process"
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]
    trained, record = run_alone(tmp_path, model)
    expected, whole = one_process(model)
    for name, value in expected.state_dict().items():
        close(trained.state_dict()[name], value)
    same_record(record, whole, 1e-5)
    assert record.keys() == whole.keys()
    assert [record[name] for name in ("state_bytes", "parameter_bytes")] == [
        whole[name] for name in ("state_bytes", "parameter_bytes")
    ]


@pytest.mark.parametrize("model", MODELS)
def test_ranks_go_on_with_what_one_process_began(
    ranks: Ranks, broken_off: Any, model: str, tmp_path: Path
) -> None:
    said = "a checkpoint for --engine torchrec, with any number of ranks"
    assert convert(broken_off[model, "alone"], tmp_path) == said
    results = ranks.run(train, model, {"folder": str(tmp_path), "resume": True})
    assert_like_one_process(results, model)
    assert sorted(path.name for path in tmp_path.iterdir()) == [MODEL, "shards-42"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("who", ["alone", "ranks"])
def test_there_and_back_nothing_has_changed(
    broken_off: Any, model: str, who: str, tmp_path: Path
) -> None:
    began = broken_off[model, who]
    if who == "ranks":  # whose shards are others than those that convert writes
        convert(began, tmp_path / "one")
        began = tmp_path / "one"
    convert(began, tmp_path / "there")
    convert(tmp_path / "there", tmp_path / "back")
    (before, described), (after, told) = (
        checkpoint.load(folder / CHECKPOINT) for folder in (began, tmp_path / "back")
    )
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert torch.equal(after[name], value), name
        assert after[name].dtype == value.dtype
    described.pop("torch_threads", None)
    assert told == described


@pytest.mark.parametrize("model", MODELS)
def test_a_model_of_ranks_becomes_one_of_one_process(
    ranks: Ranks, model: str, tmp_path: Path
) -> None:
    results = ranks.run(train, model, {"folder": str(tmp_path / "ranks")})
    with pytest.raises(DataError, match=r"its tables are in 2 shards; .*freqsgd convert"):
        load_model(tmp_path / "ranks")
    assert convert(tmp_path / "ranks", tmp_path / "one") == "a model"
    assert [path.name for path in (tmp_path / "one").iterdir()] == [MODEL]
    loaded, description = load_model(tmp_path / "one")
    weight, _ = put_together(results)
    state = loaded.state_dict()
    assert torch.equal(state.pop("tokens.weight"), weight[:, : loaded.dim + 1])
    for name, value in state.items():
        assert torch.equal(value, results[0]["others"][name])
    record = results[0]["record"]
    assert record["ranks"] == 2
    told_of_ranks = {"engine", "ranks", "sharding"}
    assert description["record"] == {k: v for k, v in record.items() if k not in told_of_ranks}
    assert not {"by", "shards"} & description.keys()
    ids = torch.from_numpy(BagStream().whole(2, 3)[0])
    close(loaded(ids), one_process(model)[0](ids))


def test_large_tables_are_cut_into_pieces(
    broken_off: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freqsgd.torchrec.convert._PIECE", 32 * 25)  # bytes: of 25 rows
    convert(broken_off["fm", "alone"], tmp_path / "there")
    assert len(list((tmp_path / "there" / "shards-11").iterdir())) == 3 + 2 + 1
    convert(tmp_path / "there", tmp_path / "back")
    before, after = (
        checkpoint.load(folder / CHECKPOINT)[0]
        for folder in (broken_off["fm", "alone"], tmp_path / "back")
    )
    assert all(torch.equal(after[name], value) for name, value in before.items())


@pytest.mark.parametrize("who", ["alone", "ranks"])
def test_what_does_not_fit_is_refused_before_it_is_read(
    broken_off: Any, who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freqsgd.torchrec.convert.available_memory", lambda: 2**29)
    monkeypatch.setattr("freqsgd.runs.checkpoint.read_in_blocks", pytest.fail)
    said = r"does not fit: 101 rows x 5 weights and a counter are [0-9.]+ [kM]B, 0 B are available"
    with pytest.raises(DataError, match=said):
        convert(broken_off["fm", who], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("who", ["alone", "ranks"])
def test_a_folder_in_which_a_run_is_at_work_is_refused(
    broken_off: Any, who: str, tmp_path: Path
) -> None:
    """Which would replace the files while they are read."""
    run = broken_off["fm", who]
    with (
        locked(run),
        pytest.raises(DataError, match=rf"{who} is being used by another run \(process \d+\)"),
    ):
        convert(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    convert(run, tmp_path / "out")
    assert not (run / LOCK).exists()


def test_a_folder_that_cannot_be_written_can_be_read(
    broken_off: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks: list[Path | None] = []

    def note(folder: Path | None) -> Any:
        locks.append(folder)
        return locked(folder)

    monkeypatch.setattr("freqsgd.torchrec.convert.locked", note)
    monkeypatch.setattr("freqsgd.torchrec.convert.os.access", lambda *_: False)
    convert(broken_off["fm", "ranks"], tmp_path)
    assert locks == [tmp_path, None]


def forget_shape(folder: Path) -> None:
    tensors, described = checkpoint.load(folder / CHECKPOINT)
    del described["shape"]
    checkpoint.save(folder / CHECKPOINT, tensors, described)


def other_size(folder: Path) -> None:
    tensors, described = checkpoint.load(folder / CHECKPOINT)
    described["shape"]["sizes"][0] += 2
    checkpoint.save(folder / CHECKPOINT, tensors, described)


def other_step(folder: Path) -> None:
    """A file of the same run, and of the same name, from an earlier checkpoint."""
    path = folder / "shards-11" / "00001-of-00002.safetensors"
    tensors, described = checkpoint.load(path)
    tensors["field0.30.weight"] += 1
    checkpoint.save(path, tensors, described)


def change_last(change: str) -> Any:
    def edit(folder: Path) -> None:
        path = folder / "shards-11" / "00001-of-00002.safetensors"
        content = path.read_bytes()
        if change == "gone":
            path.unlink()
        elif change == "cut":
            path.write_bytes(content[:-9])
        else:
            path.write_bytes(content[:-9] + b"tampered!")

    return edit


@pytest.mark.parametrize(
    ("who", "edit", "said"),
    [
        ("ranks", change_last("gone"), "there is no .*shards-11/00001-of-00002.safetensors"),
        ("ranks", change_last("cut"), "00001-of-00002.safetensors is damaged"),
        ("ranks", change_last("tampered"), "00001-of-00002.safetensors was changed after"),
        ("ranks", other_step, "00001-of-00002.safetensors is not the file that was saved"),
        ("ranks", other_size, "does not hold 2 of the rows of field0 .* tables of another size"),
        (
            "alone",
            forget_shape,
            "was written by an earlier version, or not by freqsgd stream train",
        ),
    ],
)
def test_what_is_damaged_is_refused(
    broken_off: Any, who: str, edit: Any, said: str, tmp_path: Path
) -> None:
    shutil.copytree(broken_off["fm", who], tmp_path / "run")
    edit(tmp_path / "run")
    with pytest.raises(DataError, match=said):
        convert(tmp_path / "run", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_converted_is_refused(broken_off: Any, tmp_path: Path) -> None:
    out, run = tmp_path / "out", broken_off["fm", "ranks"]
    with pytest.raises(DataError, match=f"nowhere holds neither {MODEL} nor {CHECKPOINT}"):
        convert(tmp_path / "nowhere", out)
    with pytest.raises(DataError, match=f"ranks holds a {CHECKPOINT} already"):
        convert(run, run)
    run_alone(tmp_path / "one")
    with pytest.raises(DataError, match=f"one holds a {MODEL} already"):
        convert(run, tmp_path / "one")
    with pytest.raises(DataError, match="a model of one process, which has no counts to go on"):
        convert(tmp_path / "one", out)
    run_alone(tmp_path / "occurrences", rule=Rule("cfsgd", 1.0), stop=STOP)
    with pytest.raises(DataError, match=r"kernel has no count='occurrence': take count=\"batch\""):
        convert(tmp_path / "occurrences", out)
    run_alone(tmp_path / "sgd", rule=Rule("sgd", 1.0), stop=STOP)
    with pytest.raises(DataError, match="kernel has no optimizer 'sgd'"):
        convert(tmp_path / "sgd", out)
    diverged = Rule("cfsgd", 1e30, count="batch")
    fit_stream(BagStream(), diverged, settings_of("fm"), PLAN, folder=tmp_path / "diverged")
    with pytest.raises(DataError, match="is of a run that diverged"):
        convert(tmp_path / "diverged", out)
    assert not out.exists()


def test_the_checkpoint_of_epochs_is_refused(tmp_path: Path) -> None:
    def stop(*_: Any) -> None:
        if (tmp_path / "run" / CHECKPOINT).exists():
            raise StoppedError

    settings = Settings(dim=4, batch_size=64, epochs=3, checkpoint_steps=2)
    with pytest.raises(StoppedError):
        fit(dataset(), Rule("cfsgd", 1.0), settings, folder=tmp_path / "run", listener=stop)
    with pytest.raises(DataError, match="not by freqsgd stream train"):
        convert(tmp_path / "run", tmp_path / "out")
