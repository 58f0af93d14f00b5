"""Training FM and DeepFM on TorchRec: a rank's part of a pass over a stream."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from freqsgd.errors import DataError, DivergedError
from freqsgd.nn.fm import DeepFM, deep_network, draw_rows, is_huge, start_bound
from freqsgd.optim import CFSGD
from freqsgd.optimizers import Rule
from freqsgd.recommender import folder as model_folder
from freqsgd.recommender.engine import new_model
from freqsgd.recommender.one_pass import StreamListener, StreamRun
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.runs import checkpoint
from freqsgd.runs.checkpoint import MODEL
from freqsgd.runs.machine import available_memory, byte_size, forget_peak
from freqsgd.runs.resume import CHECKPOINT, in_parts, part_of, used_for
from freqsgd.tables.dataset import Stream
from freqsgd.tables.fields import Field
from freqsgd.torchrec.group import agree, any_rank, gather_texts, join, launcher, lost_rank
from freqsgd.torchrec.limits import FLOAT, check_rule, require_torchrec
from freqsgd.torchrec.model import ShardedFM, part_of_batch
from freqsgd.torchrec.sharding import dense_parameters, local_ranks, shard
from freqsgd.torchrec.table_rates import TableRates
from freqsgd.torchrec.tables import (
    Layout,
    Rows,
    check_all_there,
    load_rows,
    remove_others,
    rows_by_weight,
    save_rows,
    shards_folder,
)

_STATE = 12  # bytes a row: FBGEMM keeps three floats, of which COUNTER_SGD uses one
_INSTEAD = {
    MODEL: "it came to its end; use another folder",
    CHECKPOINT: "freqsgd convert makes of its folder another that --engine torchrec goes on from",
}


class ShardedRun(StreamRun):
    """A rank's part of a pass over a stream.

    Every rank is given the whole of each batch and learns from its part of it. Gradients are those
    of the mean loss over the batch, so that the result does not depend on the number of ranks but
    for rounding.

    Args:
        stream, rule, settings, plan, folder: as for
            :class:`~freqsgd.recommender.one_pass.StreamRun`
        sharding: "row-wise", "table-wise" or "auto"
    """

    model: Any
    _shards: dict[str, Any] | None = None  # that are on the disk, and named by a file there
    _samples = 0

    def __init__(
        self,
        stream: Stream,
        rule: Rule,
        settings: Settings,
        plan: Pass,
        folder: Path | None,
        sharding: str,
    ) -> None:
        super().__init__(stream, rule, settings, plan, folder)
        self.sharding = sharding
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.leads = self.rank == 0
        sizes, widths = zip(*((field.size, field.width) for field in stream.fields), strict=True)
        self.layout = Layout(sizes, widths, settings.vector_dim)

    def begin(self) -> None:
        """Build model and optimizer anew, or refuse what does not fit."""
        forget_peak()
        self._check_memory()
        bare = ShardedFM(self.layout, self.settings.layers, self.settings.dropout)
        self.model = shard(bare, lr=self.rule.law.lr, sharding=self.sharding)
        self.rows = list(rows_by_weight(self.model).values())
        draw_start(self.stream.fields, self.settings, self.rows, bare, self.layout)
        self.rates = TableRates(self.model, self.rule.law.lr)
        dense_lr = self.rule.dense_rate(self.settings.batch_size)
        self.optimizer = CFSGD(dense_parameters(self.model), lr=dense_lr, fused=False)
        self.bare = bare

    def _check_memory(self) -> None:
        """Refuse tables that do not fit this rank's share of the machine."""
        available = available_memory()
        if available is None:
            return
        here = local_ranks()
        of_row = FLOAT * self.layout.row + _STATE
        table = sum(self.layout.sizes) * of_row
        held = table / self.ranks
        if self.sharding == "table-wise":  # no rank can hold less than the largest
            held = max(held, max(self.layout.sizes) * of_row)
        columns = sum(self.layout.widths)
        work = 4 * FLOAT * self.settings.batch_size * columns * self.layout.row
        if held + work > available / here:
            raise DataError(
                f"tables of {byte_size(table)} (weights, and {_STATE} bytes a row) over "
                f"{self.ranks} ranks, and {byte_size(work)} for a batch, do not fit: "
                f"{byte_size(available / here)} are available to each of the {here} ranks of "
                "this machine; use more machines, fewer rows or smaller batches (freqsgd plan)"
            )

    @property
    def samples(self) -> int:
        """Samples taken so far, on all ranks together."""
        return self._samples

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return self.rates.steps

    @property
    def costs(self) -> dict[str, Any]:
        """Bytes of weights and optimizer of all ranks together, and how they are spread."""
        rows = sum(self.layout.sizes)
        dense = sum(parameter.nbytes for parameter in dense_parameters(self.model))
        return {
            "state_bytes": rows * _STATE,
            "state_rule": "three floats per row",
            "parameter_bytes": rows * self.layout.row * FLOAT + dense,
            "engine": "torchrec",
            "ranks": self.ranks,
            "sharding": self.sharding,
        }

    # ---- steps -----------------------------------------------------------------------------------

    def learn(
        self, ids: NDArray[np.int32], labels: NDArray[np.uint8], logits: NDArray[np.float32]
    ) -> None:
        """Take one step; ``logits`` takes the log odds before it."""
        self._check_same(ids, labels)
        part = part_of_batch(ids, self.layout, self.rank, self.ranks)
        self.rates.step()
        learned, shown = self.model(part, (self.settings.seed << 32) + self.steps - 1)
        self._gather(shown.where(learned.detach().isfinite(), torch.nan), logits)
        targets = torch.from_numpy(labels[part.first : part.first + part.size]).float()
        losses = nn.functional.binary_cross_entropy_with_logits(
            learned[: part.size], targets, reduction="sum"
        )
        self.optimizer.zero_grad()
        (losses * (self.ranks / part.whole)).backward()  # gradients are averaged over ranks
        self.optimizer.step()
        self._samples += part.whole

    @torch.no_grad()
    def predict(self, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return log odds of samples."""
        self._check_same(ids)
        logits = np.empty(len(ids), np.float32)
        _, shown = self.model(part_of_batch(ids, self.layout, self.rank, self.ranks))
        self._gather(shown, logits)
        return logits

    def _check_same(self, *arrays: NDArray[Any]) -> None:
        """Refuse a batch that ranks have not read alike."""
        own = 0
        for array in arrays:
            own = zlib.crc32(np.ascontiguousarray(array).data, own)
        told = torch.empty(2 * self.ranks, dtype=torch.int64)
        dist.all_gather_into_tensor(told, torch.tensor([len(arrays[0]), own]))
        others = (told.view(-1, 2) != told[:2]).any(1).nonzero()
        if len(others):
            raise DataError(
                f"rank {int(others[0])} has read other examples than rank 0 for the batch after "
                f"step {self.steps}: all ranks must have the same files"
            )

    def _gather(self, own: Tensor, logits: NDArray[np.float32]) -> None:
        """Put the parts of all ranks together; refuse what is no number."""
        whole = torch.empty(self.ranks * len(own))
        dist.all_gather_into_tensor(whole, own.contiguous())
        logits[:] = whole[: len(logits)].numpy()
        wrong = np.flatnonzero(~np.isfinite(logits))
        if len(wrong):
            rank = wrong[0] // len(own)
            raise DivergedError(self.steps - 1, f"is not a finite number on rank {rank}")

    def finite(self) -> bool:
        """Return whether all weights are numbers, on all ranks."""
        weights = [rows.weight for rows in self.rows] + dense_parameters(self.model)
        return not any_rank(not all(w.detach().norm().isfinite() for w in weights))

    def agreed(self, flag: bool) -> bool:
        """Return whether any rank has the flag."""
        return any_rank(flag)

    # ---- files -----------------------------------------------------------------------------------

    def _tensors(self) -> dict[str, Tensor]:
        """Return the tensors of a checkpoint that all ranks have alike."""
        if self.record["stopped"] == "diverged":
            return {}
        return {**in_parts(model=self._dense()), **self._tallies()}

    def _save(self) -> None:
        """Write a checkpoint: each rank its rows, then the first what names them."""
        if self.folder is None:
            return
        tensors, description = self._tensors(), self._describe()
        if tensors:
            description |= {"shards": self._save_rows(self.folder), "by": launcher()}
        if self.leads:
            checkpoint.save(self.folder / CHECKPOINT, tensors, description)
        self._saved(self.folder, description)

    def save_model(self, folder: Path, description: dict[str, Any]) -> None:
        """Write the model, its tables in shards."""
        settings = self.settings
        description = description | {"shards": self._save_rows(folder), "by": launcher()}
        options = settings.kind.options(settings.hidden, settings.dropout)
        if self.leads:
            dense, shape = self._dense(), {**asdict(self.layout), **options}
            model_folder.write_folder(
                folder, dense, settings.model, shape, self.stream, description
            )
        self._saved(folder, description)

    def _save_rows(self, folder: Path) -> dict[str, Any]:
        """Write this rank's rows, unless they are there; return what tells of all ranks'."""
        name = shards_folder(self.steps)
        if self._shards is not None and self._shards["folder"] == name:
            return self._shards
        self._remove_others(folder)  # what a run that was killed has left
        digests = gather_texts(save_rows(folder / name, self.rank, self.ranks, self.rows))
        if self.leads:
            check_all_there(folder / name, digests)
        return {"folder": name, "digests": digests}

    def _saved(self, folder: Path, description: dict[str, Any]) -> None:
        self._shards = description.get("shards")
        self._remove_others(folder)

    def _remove_others(self, folder: Path) -> None:
        if self.leads:
            remove_others(folder, None if self._shards is None else self._shards["folder"])
        dist.barrier()

    def _read(self, path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Go on from a checkpoint, of any number of ranks."""
        loaded, saved = checkpoint.load(path, self._tallies())
        if loaded:
            self._load_rows(path, part_of(loaded, "model"), saved)
            self._samples = saved["samples"]
            self.rates.load_state_dict({"steps": saved["steps"], "lr": self.rule.law.lr})
        return loaded, saved

    def load_model(self, folder: Path) -> None:
        """Take the model of a run that came to its end."""
        self.begin()
        dense, saved = checkpoint.load(folder / MODEL)
        self._load_rows(folder / MODEL, dense, saved)

    def _load_rows(self, path: Path, dense: dict[str, Tensor], saved: dict[str, Any]) -> None:
        if "shards" not in saved:
            raise DataError(f"{path} is of training in one process: {_INSTEAD[path.name]}")
        shards = saved["shards"]
        load_rows(path.parent / shards["folder"], shards["digests"], self.rows)
        with torch.no_grad():
            self.bare.bias.copy_(dense.pop("bias"))
        if self.bare.network is not None:
            self.bare.network.load_state_dict(part_of(dense, "network"))
        self._saved(path.parent, saved)

    def _dense(self) -> dict[str, Tensor]:
        """Return what all ranks have alike: bias and network."""
        network = {} if self.bare.network is None else self.bare.network.state_dict()
        return {"bias": self.bare.bias.detach(), **in_parts(network=network)}


_SOME = 1 << 20  # rows that are drawn at a time


@torch.no_grad()
def draw_start(
    fields: Sequence[Field], settings: Settings, held: list[Rows], model: ShardedFM, layout: Layout
) -> None:
    """Give a new model the weights that :func:`~freqsgd.recommender.engine.new_model` would."""
    network: nn.Module | None
    if is_huge((sum(layout.sizes), layout.dim + 1)):  # a rank need not have the whole table
        bound = start_bound(layout.sizes, layout.dim, settings.init_scale)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            seed = draw_rows(torch.empty(0, layout.dim + 1), bound)
            network = (
                None
                if model.network is None
                else deep_network(len(layout.sizes) * layout.dim, settings.hidden, settings.dropout)
            )

        def drawn(first: int, count: int) -> Tensor:
            some = torch.zeros(count, layout.dim + 1)
            draw_rows(some, bound, first, seed)
            return some
    else:
        whole = new_model(fields, settings)
        network = whole.network if isinstance(whole, DeepFM) else None

        def drawn(first: int, count: int) -> Tensor:
            return whole.tokens.weight[first : first + count]

    for rows in held:
        rows.weight.zero_()
        first = layout.starts[rows.table] + rows.first
        for begin in range(0, len(rows.weight), _SOME):
            some = rows.weight[begin : begin + _SOME]
            some[:, : layout.dim] = drawn(first + begin, len(some))[:, : layout.dim]
    if model.network is not None and network is not None:
        model.network.load_state_dict(network.state_dict())


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
    """Do what :func:`~freqsgd.recommender.one_pass.fit_stream` does, with tables spread over ranks.

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

    plan = plan or Pass()
    with lost_rank():
        join()
        agree(
            {
                **rule.plain,
                **settings.of_one_pass,
                **asdict(plan),
                "sharding": sharding,
                "resume": resume,
                "folder": None if folder is None else str(folder),
                "what the folder holds": None if folder is None else used_for(folder, True),
                "days": stream.days,
                "data (names, sizes and times of files)": stream.fingerprint,
            }
        )
        run = ShardedRun(stream, rule, settings, plan, folder, sharding)
        record = run.start(any_rank(resume or _started_again(folder)), listener)
    return run.model, record


def _started_again(folder: Path | None) -> bool:
    """Say whether torchrun has started the ranks again after they wrote what is there."""
    used = None if folder is None else used_for(folder, resume=True)
    if folder is None or used is None:
        return False
    return launcher() is not None and checkpoint.describe(folder / used).get("by") == launcher()
