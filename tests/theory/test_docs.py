"""The numbers in docs/theory.md are what its code prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"


def test_code_prints_what_the_page_says():
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block, names)
        said = re.findall(r"print\(.*\)  # (.*)", block)
        assert printed.getvalue().split() == " ".join(said).split()
