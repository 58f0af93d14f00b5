"""Docstrings as Markdown: roles and examples become code, and formulas plain text."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([^`]+)`")
_FORMULA = re.compile(r"\.\. math::\n((?:\n|[ ]+.*\n?)+)")
_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)  # up to a blank line
_WORDS = [  # of TeX, in this order
    (r"\\leftarrow", "<-"),
    (r"\\(begin|end)\{aligned\}|\\left|\\right|\\[,;]|&", ""),
    (r"\\q?quad", "  "),
    (r"\\text\{([^{}]*)\}", r"\1"),
    (r"\\(?=[_{}])", ""),
    (r"\\(?=eta|theta|min|max|sum|alpha)", ""),
    (r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)"),
    (r"\^\{([^{}]*)\}", r"^(\1)"),
    (r"\\\\", ""),
]


class PlainDocstrings(griffe.Extension):
    """Changes every docstring when it is read."""

    def on_object(self, *, obj: griffe.Object, **unused: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = plain(obj.docstring.value)


def plain(text: str) -> str:
    """The text without what only reStructuredText knows.

    >>> plain("see :func:`freqsgd.watch`")
    'see `freqsgd.watch`'
    """
    text = _FORMULA.sub(lambda found: formula(found[1]), text)
    text = _EXAMPLE.sub(r"\1```pycon\n\g<0>\n\1```", text)
    return _ROLE.sub(r"`\1`", text)


def formula(tex: str) -> str:
    """A formula as indented lines of plain text."""
    for pattern, words in _WORDS:
        tex = re.sub(pattern, words, tex)
    lines = [re.sub(r"(?<=\S)[ ]+", " ", line).strip() for line in tex.splitlines()]
    return "".join(f"    {line}\n" for line in lines if line) + "\n"
