"""Help pages of commands with many options."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

__all__ = ["Panels"]


class Panels(TyperCommand):
    """A command whose help lists its options by panel."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options."""
        panels: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            text = parameter.get_help_record(ctx)
            if text is not None:
                name = getattr(parameter, "rich_help_panel", None) or "Options"
                panels.setdefault(name, []).append(text)
        for name, texts in panels.items():
            with formatter.section(name):
                formatter.write_dl(texts)
