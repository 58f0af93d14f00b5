"""The group of processes that train together: what they tell each other beside gradients."""

from __future__ import annotations

import atexit
import gc
import json
import math
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from freqsgd.errors import DataError, DivergedError


def join() -> None:
    """Join the group that torchrun starts; a process of its own is a group of one."""
    if dist.is_initialized():
        return
    if "WORLD_SIZE" in os.environ and "RANK" in os.environ:
        store, rank, ranks = next(rendezvous("env://"))
        store = dist.PrefixStore(_meet(store, rank, ranks), store)  # type: ignore[attr-defined]
    else:
        store, rank, ranks = dist.HashStore(), 0, 1  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    atexit.register(_end)


def leave() -> None:
    """End the group when all ranks have come here; models spread over it are of no more use.

    Call it last, where nothing holds such models.
    """
    with lost_rank():
        dist.barrier()
        _end()


def _end() -> None:
    """End this process's part of the group: gloo threads that outlive Python abort the process."""
    if dist.is_initialized():
        dist.destroy_process_group()
    gc.collect()  # models that hold the group are full of cycles


def _meet(store: Any, rank: int, ranks: int) -> str:
    """Return a word that all ranks of this start know, and none before.

    When torchrun starts ranks again, its store still has the addresses of those that are no more,
    and ranks that took them for each other's would wait for ever.
    """
    own = secrets.token_hex(8)
    if rank == 0:
        store.set("first", own)
        for other in range(1, ranks):
            answer = store.get(f"{own}/{other}").decode()  # waits for it
            store.set(f"{own}/{other}/{answer}", "")
        return own
    while True:
        first: str = store.get("first").decode()
        store.set(f"{first}/{rank}", own)
        try:
            store.wait([f"{first}/{rank}/{own}"], timedelta(seconds=1))
        except dist.DistStoreError:  # which an earlier first rank leaves without an answer
            continue
        return first


def launcher() -> str | None:
    """Tells a start of torchrun, with all its restarts, from others; None: there is none."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    return f"{os.environ['TORCHELASTIC_RUN_ID']} {socket.gethostname()} {os.getppid()}"


def gather_texts(text: str) -> list[str]:
    """Return the texts of all ranks, in their order."""
    own = torch.tensor(list(text.encode()), dtype=torch.uint8)
    lengths = _gather(torch.tensor([len(own)]))
    padded = torch.zeros(max(int(n) for n in lengths), dtype=torch.uint8)
    padded[: len(own)] = own
    texts = zip(_gather(padded), lengths, strict=True)
    return [bytes(text[: int(length)].tolist()).decode() for text, length in texts]


def agree(options: dict[str, Any]) -> None:
    """Refuse ranks that were started with different options, on all of them.

    Args:
        options: by name; numbers, texts, and lists and dicts of these
    """
    texts = gather_texts(json.dumps(options, default=str))
    answers = [json.loads(text, parse_constant=str) for text in texts]  # nan is not like itself
    first = answers[0]
    for rank, other in enumerate(answers):
        for name in first | other:
            if first.get(name) != other.get(name):
                raise DataError(
                    f"{name} is {first.get(name)!r} on rank 0 and {other.get(name)!r} on rank "
                    f"{rank}: start all ranks with the same options"
                )


def any_rank(flag: bool) -> bool:
    """Return whether the flag is set on any rank."""
    told = torch.tensor([int(flag)])
    dist.all_reduce(told, dist.ReduceOp.MAX)
    return bool(told)


def check_loss(loss: Tensor | float, step: int) -> None:
    """Stop on all ranks where the loss of any is no finite number, and say whose.

    Raises:
        DivergedError: with the step and the ranks
    """
    if isinstance(loss, Tensor) and loss.numel() != 1:
        raise DataError(f"the loss has shape {list(loss.shape)}: give one number, as its mean()")
    value = loss.item() if isinstance(loss, Tensor) else loss
    losses = _gather(torch.tensor([value], dtype=torch.float64))
    bad = [str(rank) for rank, value in enumerate(losses) if not math.isfinite(value)]
    if bad:
        ranks = f"rank{'s' * (len(bad) > 1)} {', '.join(bad)}"
        raise DivergedError(step, f"of {ranks} is not a finite number")


@contextmanager
def lost_rank() -> Iterator[None]:
    """Turn what gloo raises when another process has ended into one line."""
    try:
        yield
    except RuntimeError as error:
        kinds = (dist.DistNetworkError, dist.DistStoreError)
        if "gloo" not in str(error).lower() and not isinstance(error, kinds):
            raise
        raise DataError(
            "another rank has ended: see its error; with torchrun --max-restarts 1 all ranks "
            "start again, from the last checkpoint"
        ) from error


def _gather(own: Tensor) -> list[Tensor]:
    gathered = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, own)
    return gathered
