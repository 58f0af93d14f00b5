"""One pass over a stream on TorchRec, by one or more ranks."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from freqsgd.distributed.group import agree, any_rank, join, launcher, lost_rank
from freqsgd.distributed.libraries import require_torchrec
from freqsgd.distributed.limits import check_rule
from freqsgd.streams.stream import Stream
from freqsgd.training import checkpoint
from freqsgd.training.resuming import used_for
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings
from freqsgd.training.stream_pass import Pass, StreamListener, pass_settings
from freqsgd.training.stream_run import StreamRun

__all__ = ["fit_sharded"]


def fit_sharded(
    stream: Stream,
    rule: Rule,
    settings: Settings,
    plan: Pass | None = None,
    *,
    sharding: str = "row-wise",
    folder: Path | None = None,
    resume: bool = False,
    listener: StreamListener | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Do what :func:`~freqsgd.training.one_pass.fit_stream` does, with tables spread over ranks.

    To be called on every rank that torchrun starts, alike; a process of its own is the only one.
    The result is that of one process with ``count="batch"``, but for rounding. When torchrun has
    restarted the ranks, they go on from the last checkpoint.

    Args:
        stream, settings, plan, listener: as for ``fit_stream``
        rule: cfsgd with ``count="batch"``, without cap, halflife and weight decay
        sharding: "row-wise", "table-wise" or "auto"
        folder: of all ranks; holds tables in shards, which ``freqsgd convert`` puts together
        resume: go on from the folder's checkpoint, of any number of ranks
    """
    check_rule(rule)
    require_torchrec()
    from freqsgd.distributed.trainer import ShardedTrainer

    plan = plan or Pass()
    with lost_rank():
        join()
        agree(
            {
                **rule.plain,
                **pass_settings(settings),
                **asdict(plan),
                "sharding": sharding,
                "resume": resume,
                "folder": None if folder is None else str(folder),
                "what the folder holds": None if folder is None else used_for(folder, True),
                "days": stream.days,
                "data (names, sizes and times of files)": stream.fingerprint,
            }
        )
        trainer = ShardedTrainer(stream, rule, settings, sharding)
        run = StreamRun(stream, rule, settings, plan, trainer, folder)
        record = run.start(any_rank(resume or _started_again(folder)), listener)
    return trainer.model, record


def _started_again(folder: Path | None) -> bool:
    """Whether torchrun has started the ranks again after they wrote what the folder holds."""
    used = None if folder is None else used_for(folder, resume=True)
    if folder is None or used is None:
        return False
    return launcher() is not None and checkpoint.describe(folder / used).get("by") == launcher()
