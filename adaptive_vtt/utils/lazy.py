"""What is imported when somebody asks for it: names of a package, and pandas."""

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs


def lazily(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package.

    ``homes``: a module below it -> the names that it has, in one string with blanks between.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def imported(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{home_of[name]}"), name)

    def listed() -> list[str]:
        return sorted({*vars(modules[package]), *home_of})

    return imported, listed


def is_table(value: object) -> "TypeIs[pd.DataFrame]":
    """Whether it is a DataFrame. Loads no pandas: whoever has a DataFrame has loaded it."""
    pandas = modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)
