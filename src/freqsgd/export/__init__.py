"""Taking models elsewhere: vectors with the texts of their tokens, and ONNX graphs."""

from freqsgd.export.model import FORMATS, export_model
from freqsgd.export.opening import open_vectors
from freqsgd.export.vectors import Neighbor, Vectors

__all__ = ["FORMATS", "Neighbor", "Vectors", "export_model", "open_vectors"]
