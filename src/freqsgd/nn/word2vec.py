"""Word vectors: Skip-Gram and CBOW."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["CBOW", "SkipGram", "WordModel"]


class WordModel(nn.Module):
    """Two tables: ``input`` holds the word vectors, ``output`` scores words from a hidden vector.

    Args:
        words: size of the vocabulary
        dim: size of the vectors
        bias: give the scores a bias. With it the model starts as one for a softmax does: vectors
            of length about 1, the output as of any linear layer. Without it as one for negative
            sampling does: small vectors, no scores
        max_norm: longest word vector; longer ones are shortened, in place, when they are used
    """

    def __init__(
        self, words: int, dim: int, *, bias: bool = True, max_norm: float | None = None
    ) -> None:
        super().__init__()
        if words < 1 or dim < 1:
            raise ValueError(f"words and dim must be at least 1, got {words} and {dim}")
        if max_norm is not None and not 0 < max_norm < float("inf"):
            raise ValueError(f"max_norm must be a number > 0, got {max_norm}")
        self.words, self.dim, self.biased, self.max_norm = words, dim, bias, max_norm
        self.input = nn.Embedding(words, dim, max_norm=max_norm)
        self.output = nn.Linear(dim, words, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the start anew."""
        if self.biased:
            nn.init.normal_(self.input.weight, std=self.dim**-0.5)
            self.output.reset_parameters()
        else:
            nn.init.uniform_(self.input.weight, -0.5 / self.dim, 0.5 / self.dim)
            nn.init.zeros_(self.output.weight)

    @property
    def vectors(self) -> Tensor:
        """The word vectors, a row per word, none longer than ``max_norm``; a copy."""
        vectors = self.input.weight.detach().clone()
        if self.max_norm is not None:
            torch.embedding_renorm_(vectors, torch.arange(self.words), self.max_norm, 2.0)
        return vectors

    def hidden(self, inputs: Tensor) -> Tensor:
        """The vector that each sample's words are scored from (samples, dim)."""
        raise NotImplementedError  # pragma: no cover

    def forward(self, inputs: Tensor) -> Tensor:
        """The score of every word for each sample (samples, words): logits of a softmax."""
        scores: Tensor = self.output(self.hidden(inputs))
        return scores


class SkipGram(WordModel):
    """The vector of a word predicts the words around it.

    Shape:
        - inputs: (samples,), the words in the centre
        - output: (samples, words), the scores of their contexts

    Example:
        >>> model = SkipGram(1000, dim=16)
        >>> model(torch.tensor([3, 999])).shape
        torch.Size([2, 1000])
    """

    def hidden(self, inputs: Tensor) -> Tensor:
        """The vectors of the words."""
        vectors: Tensor = self.input(inputs)
        return vectors


class CBOW(WordModel):
    """The mean of the vectors around a word predicts it.

    Shape:
        - inputs: (samples, 2 * window), the words around each; -1 where there is none
        - output: (samples, words), the scores of the words in the middle

    Example:
        >>> model = CBOW(1000, dim=16)
        >>> model(torch.tensor([[-1, 5, 7, 9], [0, 1, 1, 999]])).shape
        torch.Size([2, 1000])
    """

    def hidden(self, inputs: Tensor) -> Tensor:
        """The mean of each window's vectors; 0 where a window is empty."""
        present = inputs != -1
        sizes = present.sum(1)
        return functional.embedding_bag(
            inputs[present],
            self.input.weight,
            sizes.cumsum(0) - sizes,
            max_norm=self.max_norm,
            mode="mean",
        )
