"""Objects of other people's modules, named ``package.module:name`` or ``file.py:name``."""

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import InputError, one_line, unknown
from .files import near_file
from .other_code import place_of


def load_object(target: str, base: Path | None = None, what: str = "model") -> Any:
    """What ``target`` names; a relative file starts at ``base`` (default: here).

    ``what``: the kind of thing, for messages. Raises InputError for a target of another form,
    a module that cannot be imported, and a name that it does not have.
    """
    where, colon, name = target.rpartition(":")
    if not (colon and where and name):
        raise InputError(
            f"{what}: expected 'package.module:name' or 'file.py:name', got {target!r}; add the "
            "name of the function or object in it"
        )
    module = _module(where, base or Path(), what)
    if not hasattr(module, name):
        modules = ModuleType  # np and the like are not what somebody looks for
        names = [n for n, v in vars(module).items() if n[0] != "_" and not isinstance(v, modules)]
        raise unknown("name", name, names, f"{what}: {where}")
    return getattr(module, name)


def is_target(name: str) -> bool:
    """Whether a name is that of code: ``file.py:name`` or ``package.module:name``."""
    return ":" in name


def file_of(target: str, base: Path | None = None) -> Path | None:
    """The file that a target names; None where it names a package's module."""
    where = target.rpartition(":")[0]
    return (base or Path()) / where if where.endswith(".py") else None


def _module(where: str, base: Path, what: str) -> ModuleType:
    try:
        if where.endswith(".py"):
            return _from_file((base / where).resolve(), what)
        return importlib.import_module(where)
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # a user's module may fail in any way at all
        raise InputError(
            f"{what}: cannot import {where!r}: {type(error).__name__}: {one_line(error)}"
            f"{place_of(error)}{_remedy(error)}"
        ) from error


def _remedy(error: BaseException) -> str:
    """What to do about an import that failed, where the error tells."""
    if isinstance(error, ModuleNotFoundError):
        return f"; install it for {sys.executable}, or write it beside the file that imports it"
    if isinstance(error, FileNotFoundError) and not os.path.isabs(str(error.filename or os.sep)):
        return f"; its path starts at {os.getcwd()}: write Path(__file__).parent / its name instead"
    return ""


def _from_file(path: Path, what: str) -> ModuleType:
    if not path.is_file():
        raise InputError(f"{what}: file {str(path)!r} does not exist{near_file(path)}")
    spec = importlib.util.spec_from_file_location(f"avtt_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{what}: file {str(path)!r} is no Python module")
    if str(path.parent) not in sys.path:  # last: a file beside it hides no installed package
        sys.path.append(str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
