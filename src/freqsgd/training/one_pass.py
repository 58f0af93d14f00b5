"""Training in one pass over a stream of days, each example scored before it is learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from freqsgd.nn.fm import FM
from freqsgd.streams.stream import Stream
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings
from freqsgd.training.stream_pass import Pass, StreamListener, StreamProgress
from freqsgd.training.stream_rates import capped
from freqsgd.training.stream_run import StreamRun
from freqsgd.training.stream_trainer import LocalTrainer

__all__ = ["Pass", "StreamListener", "StreamProgress", "fit_stream"]


def fit_stream(
    stream: Stream,
    rule: Rule,
    settings: Settings,
    plan: Pass | None = None,
    *,
    threads: int | None = None,
    folder: Path | None = None,
    resume: bool = False,
    listener: StreamListener | None = None,
) -> tuple[FM, dict[str, Any]]:
    """Learn every example once, in order; return the model and the run's record.

    The record is one of the ``runs`` of ``results.json``. The last days are kept to evaluate the
    model. ``epochs`` and ``patience`` of the settings mean nothing here.

    Args:
        stream: the examples
        rule: the optimizer; its learning rate must be given. Without ``max_lr``, cfsgd's rates are
            capped as :func:`~freqsgd.training.stream_rates.capped` says
        settings: everything else
        plan: windows, checkpoints and days of evaluation
        threads: of the kernels; None for torch's number. FM's result does not depend on it
        folder: keeps checkpoints while it lasts, and the model in the end
        resume: go on from the folder's checkpoint, if there is one, to the same result
        listener: called after each batch with the progress and the record so far
    """
    rule = capped(rule, settings.batch_size)
    trainer = LocalTrainer(stream, rule, settings, threads)
    run = StreamRun(stream, rule, settings, plan or Pass(), trainer, folder)
    record = run.start(resume, listener)
    return trainer.model.eval(), record
