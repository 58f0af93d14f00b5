"""Take models elsewhere: vectors with the texts of their tokens, and ONNX graphs."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.vectors.export import export_model, open_vectors
    from freqsgd.vectors.names import FORMATS
    from freqsgd.vectors.vectors import Neighbor, Vectors

__all__ = ["FORMATS", "Neighbor", "Vectors", "export_model", "open_vectors"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__, export="export_model open_vectors", names="FORMATS", vectors="Neighbor Vectors"
    )
