"""What the tokens of some data are like, and what that promises; nothing is trained."""

from freqsgd.inspection.document import inspect_data
from freqsgd.inspection.options import InspectionOptions

__all__ = ["InspectionOptions", "inspect_data"]
