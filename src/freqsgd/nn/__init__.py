"""Modules."""

from typing import TYPE_CHECKING, Any

from freqsgd.nn.fm import FM, DeepFM
from freqsgd.nn.word2vec import CBOW, SkipGram

if TYPE_CHECKING:
    from freqsgd.nn.embedding import CFEmbedding

__all__ = ["CBOW", "FM", "CFEmbedding", "DeepFM", "SkipGram"]


def __getattr__(name: str) -> Any:
    if name == "CFEmbedding":  # loads torch's compiler, to keep out of what it compiles: a second
        from freqsgd.nn.embedding import CFEmbedding

        return CFEmbedding
    raise AttributeError(f"module 'freqsgd.nn' has no attribute {name!r}")
