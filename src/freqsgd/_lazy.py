"""Names of a package that are imported when they are first used.

``freqsgd data list`` needs neither torch nor Numba, which take seconds to import.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, **exports: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    Args:
        package: its ``__name__``
        exports: the names that each of its modules defines, with spaces between
    """
    modules = {name: module for module, names in exports.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    def names() -> list[str]:
        return sorted({*vars(import_module(package)), *modules})

    return find, names
