from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def _torch_threads():
    """Commands that run within a test set them for the whole process."""
    before = torch.get_num_threads()
    yield
    if torch.get_num_threads() != before:
        torch.set_num_threads(before)
