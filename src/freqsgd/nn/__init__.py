"""Modules."""

from freqsgd.nn.embedding import CFEmbedding

__all__ = ["CFEmbedding"]
