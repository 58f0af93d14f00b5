"""What MkDocs puts into pages: help of commands, files of the repository, links to them."""

from __future__ import annotations

import ast
import logging
import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COLUMNS = 96  # of a help text
_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
_LINK = re.compile(r"\[([^\]]+)\]\(([^):\s]+)\)")
_log = logging.getLogger("mkdocs.hooks.freqsgd")  # a warning makes a strict build fail


def on_page_markdown(markdown: str, page: Any, **unused: Any) -> str:
    """Fill in what a page asks for by a comment, and turn links that leave ``docs``."""
    fillers = {"commands": commands, "examples": examples}
    for name, filler in fillers.items():
        if f"<!-- {name} -->" in markdown:
            markdown = markdown.replace(f"<!-- {name} -->", filler())
    markdown = re.sub(r"<!-- include (\S+) -->", lambda found: _body(found[1]), markdown)
    return _LINK.sub(lambda found: _link(found, page.file.src_uri), markdown)


def commands() -> str:
    """The help of every command, as the command itself prints it."""
    from typer.main import get_command

    from freqsgd.cli.app import app

    return "\n".join(_help(get_command(app), "freqsgd", None))


def _help(command: Any, name: str, parent: Any) -> list[str]:
    context = command.context_class(
        command, info_name=name, parent=parent, terminal_width=COLUMNS, max_content_width=COLUMNS
    )
    text = command.get_help(context).rstrip()
    parts = [f"## {context.command_path}\n", f"```text\n{text}\n```\n"]
    if hasattr(command, "list_commands"):
        for each in command.list_commands(context):
            parts += _help(command.get_command(context, each), each, context)
    return parts


def examples() -> str:
    """The scripts of ``examples``, each under what its docstring says."""
    parts = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        source = path.read_text("utf-8")
        about, _, how = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
        code = source.split('"""', 2)[2].strip()
        parts.append(f"## {path.name}\n\n{about}\n\n```\n{how}\n```\n\n```python\n{code}\n```\n")
    return "\n".join(parts)


def _body(name: str) -> str:
    """A file of the repository without its title, which the page has itself."""
    return (ROOT / name).read_text("utf-8").partition("\n")[2].strip()


def _link(found: re.Match[str], page: str) -> str:
    """A link as it is, or to where the page of a file is, or its text if the file has none."""
    text, target = found[1], found[2].partition("#")[0]
    path = Path(os.path.normpath(ROOT / "docs" / Path(page).parent / target))
    if not target or path.is_relative_to(ROOT / "docs") or not path.is_relative_to(ROOT):
        return found[0]
    name = path.relative_to(ROOT).as_posix()
    if not path.exists():
        _log.warning("%s links to %s, which does not exist", page, name)
    to = _PAGES.get(name)
    if path.parent == ROOT / "examples":
        to = f"examples.md#{path.name.replace('.', '')}"
    if to is None:
        return text if "`" in text else f"`{text}`"
    return f"[{text}]({os.path.relpath(to, Path(page).parent)})"
