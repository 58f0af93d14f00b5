"""Taking models elsewhere: vectors with the texts of their tokens, and ONNX graphs."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.export.choosing import FORMATS
    from freqsgd.export.model import export_model
    from freqsgd.export.opening import open_vectors
    from freqsgd.export.vectors import Neighbor, Vectors

__all__ = ["FORMATS", "Neighbor", "Vectors", "export_model", "open_vectors"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "FORMATS": "freqsgd.export.choosing",
            "Neighbor": "freqsgd.export.vectors",
            "Vectors": "freqsgd.export.vectors",
            "export_model": "freqsgd.export.model",
            "open_vectors": "freqsgd.export.opening",
        },
    )
