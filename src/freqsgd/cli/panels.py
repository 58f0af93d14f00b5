"""Help pages: options by panel, and all commands on one screen without importing them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

__all__ = ["Command", "LazyCommands", "Overview", "Panels"]


class Panels(TyperCommand):
    """A command whose help lists its options by panel."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        panels: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            text = parameter.get_help_record(ctx)
            if text is not None:
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                name = getattr(parameter, "rich_help_panel", None) or kind
                panels.setdefault(name, []).append(text)
        for name, texts in panels.items():
            with formatter.section(name):
                formatter.write_dl(texts)


class Command(NamedTuple):
    """A command that is imported when it runs, or when its own help is shown.

    Args:
        group: the heading that it stands under
        about: the first line of its docstring, or the first part of a line that is too long
        module: where it is
        function: its name there; or that of a Typer, if it has commands of its own
    """

    group: str
    about: str
    module: str
    function: str

    def load(self) -> Any:
        """The function, or the Typer."""
        return getattr(import_module(self.module), self.function)


class LazyCommands(Mapping[str, Any]):
    """Commands by name, each made when it is asked for."""

    def __init__(self, known: Mapping[str, Command]) -> None:
        self.known = known

    def __getitem__(self, name: str) -> Any:
        return _made(name, self.known[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

    def __contains__(self, name: object) -> bool:
        return name in self.known  # Mapping's own would import it


@cache
def _made(name: str, command: Command) -> Any:
    """What Typer makes of it."""
    # A callback keeps Typer from taking a single command for the whole program.
    program = typer.Typer(callback=lambda: None, add_completion=False, rich_markup_mode=None)
    found = command.load()
    if isinstance(found, typer.Typer):
        program.add_typer(found, name=name)
    else:
        program.command(name, cls=Panels)(found)
    return get_group(program).commands[name]


class Overview(TyperGroup):
    """The program: its help has a heading for each group of commands, and a line for each."""

    known: Mapping[str, Command] = {}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands: Any = LazyCommands(self.known)

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order in which they are shown."""
        return list(self.known)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page; no command is imported for it."""
        path, width = ctx.command_path, max(map(len, self.known))
        formatter.write(f"Usage: {path} [--version] [--help] COMMAND ...\n\n{self.help}\n")
        formatter.write(f"Options of a command, and an example: {path} COMMAND --help\n\n")
        group = ""
        for name, command in self.known.items():
            if command.group != group:
                group = command.group
                formatter.write(f"{group}:\n")
            formatter.write(f"  {name:{width}}  {command.about}\n")
