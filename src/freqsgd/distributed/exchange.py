"""What hosts send each other in a step of TorchRec over gloo."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from freqsgd.distributed.planning import FLOAT, Workload

__all__ = ["Exchange", "row_wise_rows", "row_wise_sums", "table_wise"]

_ID, _LENGTH = 8, 4  # bytes, as freqsgd gives them to TorchRec
_SPLITS = 3 * 8  # that a host tells each other one: its numbers of ids, of lengths, of examples


@dataclass(frozen=True)
class Exchange:
    """Bytes that a host sends in a step.

    Tokens are taken to be spread evenly, so that every host sends as much as it receives.

    Args:
        ids: of tokens, to the hosts that have their rows
        lengths: how many tokens there are of each, to the same
        rows: what was looked up, back to the hosts that have the examples
        gradients: of these
        others: log odds, gradients of all other weights, and sums for batch norm
    """

    ids: int
    lengths: int
    rows: int
    gradients: int
    others: int

    @property
    def total(self) -> int:
        """All of it."""
        return sum(asdict(self).values())


def row_wise_sums(work: Workload, hosts: int) -> Exchange:
    """Of bags whose tables are spread by rows, as ``EmbeddingBagCollection`` has them.

    Every host has a partial sum, most of them 0, for each column of the whole batch: a
    reduce-scatter adds them up and an all-gather brings the gradients back. Neither becomes less
    with more hosts, and gloo runs a reduce-scatter as an all-reduce, which is twice as much.
    """
    outputs = _to_others(work.outputs, hosts)
    return _exchange(work, hosts, work.batch_size, 2 * outputs, outputs)


def row_wise_rows(work: Workload, hosts: int) -> Exchange:
    """Of tables that are spread by rows where rows are sent, as ``EmbeddingCollection`` does."""
    rows = _to_others(work.looked_up * work.row_bytes / hosts, hosts)
    return _exchange(work, hosts, work.batch_size, rows, rows)


def table_wise(work: Workload, hosts: int) -> Exchange:
    """Of whole tables, as many on each host."""
    rows = _to_others(work.outputs / hosts, hosts)
    return _exchange(work, hosts, work.batch_size / hosts, rows, rows)


def _exchange(work: Workload, hosts: int, told: float, rows: int, gradients: int) -> Exchange:
    """All hosts are told of ``told`` examples how many tokens they have."""
    ids = work.looked_up / hosts * _ID
    lengths = told * work.columns * _LENGTH
    norms = 4 * FLOAT * sum(work.hidden or ())  # two sums for each, and their gradients
    reduced = 2 * _to_others(work.dense + norms, hosts)  # an all-reduce sends everything twice
    return Exchange(
        ids=_to_others(ids, hosts),
        lengths=_to_others(lengths, hosts) + _SPLITS * (hosts - 1),
        rows=rows,
        gradients=gradients,
        others=reduced + _to_others(FLOAT * work.batch_size, hosts),
    )


def _to_others(size: float, hosts: int) -> int:
    """The part of what all hosts get that the others get."""
    return round(size * (hosts - 1) / hosts)
