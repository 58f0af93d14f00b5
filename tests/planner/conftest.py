"""What tests of the planner share with those of TorchRec."""

from tests.torchrec.conftest import ranks

__all__ = ["ranks"]
