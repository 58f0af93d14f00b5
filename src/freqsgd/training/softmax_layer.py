"""Cross-entropy of a softmax over the vocabulary, without holding all of its logits.

Where a hidden vector h predicts n words, c_o of them the word o, the logits are needed once: with
P = softmax(W h + b) the slope of the n losses' sum is n (P - c / n). Logits are made for a piece of
the hidden vectors at a time and turned, in place, into P - c / n; the factor n goes to the thin
side of the products.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

__all__ = ["SoftmaxLayer"]

_PIECE = 1 << 21  # logits at a time: 8 MB, which a cache may hold; fastest in benchmarks
_FEWEST = 64  # rows of a piece, for products of matrices to be worth it

Ids = NDArray[np.int64]
Piece = tuple[slice, slice, Tensor, Tensor]


class SoftmaxLayer:
    """The output table of a word model.

    The methods take hidden vectors (rows, dim), the row of each sample, which never falls, and the
    word that each predicts.
    """

    def __init__(self, output: nn.Linear) -> None:
        self.weight, self.bias = output.weight.detach(), output.bias.detach()
        self._rows = max(_FEWEST, _PIECE // len(self.weight))
        self._logits = self.weight.new_empty(self._rows, len(self.weight))

    def losses(self, hidden: Tensor, rows: Ids, targets: Ids) -> Tensor:
        """The loss of each sample."""
        losses = hidden.new_empty(len(targets))
        for _, samples, log_p, cells in self._pieces(hidden, rows, targets):
            losses[samples] = -log_p.view(-1)[cells]
        return losses

    def gradients(
        self, hidden: Tensor, rows: Ids, targets: Ids, to_weight: Tensor, to_bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The loss of each sample, and the gradient of their mean by the hidden vectors.

        The gradients of weight and bias are added to ``to_weight`` and ``to_bias``.
        """
        losses, to_hidden = hidden.new_empty(len(targets)), torch.empty_like(hidden)
        repeats = np.bincount(rows, minlength=len(hidden))
        parts = torch.from_numpy(-1 / repeats[rows]).to(hidden.dtype)
        share = torch.from_numpy(repeats / len(rows)).to(hidden.dtype)
        for some, samples, log_p, cells in self._pieces(hidden, rows, targets):
            losses[samples] = -log_p.view(-1)[cells]
            slopes = log_p.exp_()
            slopes.view(-1).index_add_(0, cells, parts[samples])
            torch.mm(slopes, self.weight, out=to_hidden[some])
            to_weight.addmm_(slopes.t(), hidden[some] * share[some, None])
            to_bias.addmv_(slopes.t(), share[some])
        return losses, to_hidden.mul_(share[:, None])

    def _pieces(self, hidden: Tensor, rows: Ids, targets: Ids) -> Iterator[Piece]:
        """Some rows, their samples, the rows' log probabilities, the samples' places in them."""
        for first in range(0, len(hidden), self._rows):
            last = min(first + self._rows, len(hidden))
            log_p = self._logits[: last - first]
            torch.addmm(self.bias, hidden[first:last], self.weight.t(), out=log_p)
            torch.log_softmax(log_p, 1, out=log_p)
            start, end = np.searchsorted(rows, [first, last])
            cells = (rows[start:end] - first) * len(self.weight) + targets[start:end]
            yield slice(first, last), slice(start, end), log_p, torch.from_numpy(cells)
