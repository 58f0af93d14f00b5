"""How fast bytes move: within memory, and between two processes of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

from freqsgd.data.dataset import DataError

__all__ = ["copy_rates", "loopback_rates"]

_TIMEOUT = 60.0  # seconds


def copy_rates(size: int, rounds: int) -> list[float]:
    """Bytes copied in a second, with all of torch's threads."""
    source, target = torch.ones(size, dtype=torch.uint8), torch.zeros(size, dtype=torch.uint8)
    target.copy_(source)
    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        target.copy_(source)
        rates.append(size / (time.perf_counter() - start))
    return rates


def loopback_rates(size: int, rounds: int) -> list[float]:
    """Bytes that each of two processes sends the other in a second, by gloo's all-to-all."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "freqsgd.bench.transfers", str(Path(folder) / "store")]
        processes = [
            subprocess.Popen(
                [*command, str(rank), str(size), str(rounds)],
                env=os.environ | _loopback(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        try:
            answers = [process.communicate(timeout=_TIMEOUT) for process in processes]
        except subprocess.TimeoutExpired:
            raise DataError("two processes could not exchange bytes over loopback") from None
        finally:
            for process in processes:
                process.kill()
                process.wait()
    for process, (_, said) in zip(processes, answers, strict=True):
        if process.returncode:
            reason = (said.strip().splitlines() or ["it was killed"])[-1]
            raise DataError(f"two processes could not exchange bytes over loopback: {reason}")
    return [float(word) for word in answers[0][0].split()]


def _loopback() -> dict[str, str]:
    """What makes gloo use the interface of this machine alone."""
    names = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    return {"GLOO_SOCKET_IFNAME": names[0]} if names else {}


def _exchange(store: str, rank: int, size: int, rounds: int) -> list[float]:
    """One of the two: half of what it has is for the other."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", Path(store).as_uri(), rank=rank, world_size=2)
    source, target = torch.ones(2 * size, dtype=torch.uint8), torch.empty(2 * size).byte()
    rates = []
    for _ in range(rounds + 1):
        dist.barrier()
        start = time.perf_counter()
        dist.all_to_all_single(target, source)
        rates.append(size / (time.perf_counter() - start))
    dist.destroy_process_group()
    return rates[1:]


if __name__ == "__main__":
    _store, *_numbers = sys.argv[1:]
    print(*_exchange(_store, *map(int, _numbers)))
