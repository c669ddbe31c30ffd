"""Lazy imports, and the pip command for packages that are not installed."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import chain
from sys import modules
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs

PACKAGE = "adaptive-vtt"


def lazily(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that imports its names on first access.

    The names are those of ``from .module import name`` in the package's ``if TYPE_CHECKING``.
    """
    tree = ast.parse(inspect.getsource(modules[package]))
    blocks = [node.body for node in tree.body if isinstance(node, ast.If)]
    home_of = {
        name.name: node.module
        for node in chain.from_iterable(blocks)
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for name in node.names
    }

    def imported(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{home_of[name]}"), name)

    def listed() -> list[str]:
        return sorted({*vars(modules[package]), *home_of})

    return imported, listed


def is_table(value: object) -> "TypeIs[pd.DataFrame]":
    """Return whether a value is a pandas DataFrame, without importing pandas."""
    pandas = modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def pip_install(extra: str) -> str:
    """Return the ``pip install`` command for the packages of an extra.

    It lists the packages, since an extra can be named only if this package is on an index.
    """
    try:
        packages = requires(PACKAGE) or []
    except PackageNotFoundError:  # run from a checkout that was not installed
        packages = []
    mine = re.compile(rf"""extra\s*==\s*["']{extra}["']""")
    needs = [line.split(";")[0].strip() for line in packages if mine.search(line)]
    return " ".join(["pip install", *(f"'{name}'" for name in needs or [f"{PACKAGE}[{extra}]"])])


@contextmanager
def needed(extra: str, purpose: str) -> Iterator[None]:
    """Turn an ImportError of the block into InputError "PURPOSE: pip install ..." for an extra."""
    try:
        yield
    except ImportError:
        raise InputError(f"{purpose}: {pip_install(extra)}") from None


def own_version() -> str:
    """Return the installed version of this package; "0+unknown" if it is not installed."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "0+unknown"
