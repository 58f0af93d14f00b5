"""How many threads torch's own operators use on a network.

Operators on small matrices gain little from a second thread, and where another process takes a core
away they lose most of their time waiting for each other. Their results depend on the number of
threads, so the number must not follow the machine's load, as that of the kernels does: it follows
from the sizes alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

_SMALL = 1 << 27  # multiply-adds of a forward pass: some milliseconds of one core
_setting = threading.RLock()  # torch has one number for the process


def network_threads(network: nn.Module, samples: int) -> int:
    """Return the number of threads for so many samples: one if that is little work, else torch's.

    Example:
        >>> network_threads(nn.Linear(100, 10), samples=1024)
        1
    """
    weights = sum(parameter.numel() for parameter in network.parameters())
    return 1 if samples * weights < _SMALL else torch.get_num_threads()


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Let torch use so many threads, and then as many as before."""
    if number == torch.get_num_threads():
        yield
        return
    with _setting:
        before = torch.get_num_threads()
        torch.set_num_threads(number)
        try:
            yield
        finally:
            torch.set_num_threads(before)
