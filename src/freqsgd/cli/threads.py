"""The number of threads, for a command's own process."""

from __future__ import annotations

from freqsgd.errors import DataError

__all__ = ["use_threads"]

MOST = 1024  # far more than help; tens of thousands exhaust the system


def use_threads(threads: int | None) -> None:
    """Use so many; None leaves it to torch."""
    if threads is not None:
        if threads < 1:
            raise DataError(f"--threads must be at least 1, got {threads}")
        if threads > MOST:
            raise DataError(f"--threads must be at most {MOST:,}, got {threads:,}")
        import torch  # which commands that take no --threads do without

        torch.set_num_threads(threads)
