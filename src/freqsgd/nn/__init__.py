"""Modules."""

from freqsgd.nn.embedding import CFEmbedding
from freqsgd.nn.fm import FM, DeepFM

__all__ = ["FM", "CFEmbedding", "DeepFM"]
