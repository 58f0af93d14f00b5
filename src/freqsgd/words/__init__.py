"""Word vectors: from text to ids, CBOW and Skip-Gram, and their training."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.words.corpus import Corpus, Paragraphs
    from freqsgd.words.loading import load_text
    from freqsgd.words.settings import TextSettings
    from freqsgd.words.spec import TextOptions
    from freqsgd.words.training import fit_text

__all__ = ["Corpus", "Paragraphs", "TextOptions", "TextSettings", "fit_text", "load_text"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        corpus="Corpus Paragraphs",
        loading="load_text",
        settings="TextSettings",
        spec="TextOptions",
        training="fit_text",
    )
