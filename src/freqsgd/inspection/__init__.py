"""Token statistics of data, and what they promise; nothing is trained."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.inspection.document import inspect_data
    from freqsgd.inspection.options import InspectionOptions

__all__ = ["InspectionOptions", "inspect_data"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__, document="inspect_data", options="InspectionOptions"
    )
