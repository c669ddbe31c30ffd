"""Load users' code by name, add default members to users' objects, and locate users' errors.

A name, the target, is ``package.module:name`` or ``file.py:name``.
"""

import importlib
import importlib.util
import os
import random
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from threading import RLock
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..errors import AvttError, InputError, one_line, unexpected, unknown
from .files import near_file

OURS = str(Path(__file__).parent.parent)
_LIBRARIES = tuple({OURS, *(sysconfig.get_path(n) for n in ("stdlib", "platstdlib", "purelib"))})
_INSTALLED = ("site-packages", "dist-packages")
QUOTED = 80
"""Most characters of an exception that a message quotes."""
_LOCK = RLock()  # guards the random states that the whole process shares


def load_object(target: str, base: Path | None = None, what: str = "model") -> Any:
    """Import and return the object that a target names.

    Args:
        target: ``package.module:name`` or ``file.py:name``.
        base: Folder where a relative file is looked up first; then the working directory.
        what: Kind of object, for messages.

    Raises:
        InputError: The target has another form, its module cannot be imported, or the module does
            not have the name.
    """
    where, colon, name = target.rpartition(":")
    if not (colon and where and name):
        remedy = "add the name of the function or object in it"
        raise unexpected(what, "'package.module:name' or 'file.py:name'", repr(target), remedy)
    if ".py:" in where:
        remedy = "options after the name are for avtt compare, elsewhere they are a field of the "
        remedy += "spec such as strategy_options"
        raise unexpected(what, "'file.py:name'", repr(target), remedy)
    module = _module(where, base or Path(), what)
    if not hasattr(module, name):
        public = {key: value for key, value in vars(module).items() if key[0] != "_"}
        names = [key for key, value in public.items() if not isinstance(value, ModuleType)]
        raise unknown("name", name, names, f"{what}: {where}")
    return getattr(module, name)


def is_target(name: str) -> bool:
    """Return whether a name is a target, ``file.py:name`` or ``package.module:name``."""
    return ":" in name


def file_of(target: str, base: Path | None = None) -> Path | None:
    """Return the file of a target ``file.py:name``, or None for ``package.module:name``."""
    where = target.rpartition(":")[0]
    return _located(where, base or Path()) if where.endswith(".py") else None


def _located(where: str, base: Path) -> Path:
    """Return the file in ``base``, or the one in the working directory if only that one exists."""
    path = base / where
    return Path(where) if Path(where).is_file() and not path.is_file() else path


def _module(where: str, base: Path, what: str) -> ModuleType:
    try:
        if where.endswith(".py"):
            return _from_file(_located(where, base).resolve(), what)
        return importlib.import_module(where)
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise InputError(
            f"{what}: cannot import {where!r}: {type(error).__name__}: {one_line(error)}"
            f"{place_of(error)}{_remedy(error)}"
        ) from error


def _remedy(error: BaseException) -> str:
    """Return the remedy for a failed import, as the end of a message, or ""."""
    if isinstance(error, ModuleNotFoundError):
        return f"; install it for {sys.executable}, or write it next to the file that imports it"
    if isinstance(error, FileNotFoundError) and not os.path.isabs(str(error.filename or os.sep)):
        return f"; its path starts at {os.getcwd()}: write Path(__file__).parent / its name instead"
    return ""


def _from_file(path: Path, what: str) -> ModuleType:
    if not path.is_file():
        raise InputError(f"{what}: file {str(path)!r} does not exist{near_file(path)}")
    spec = importlib.util.spec_from_file_location(f"avtt_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{what}: file {str(path)!r} is no Python module")
    if str(path.parent) not in sys.path:  # at the end, so that it hides no installed package
        sys.path.append(str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def place_of(error: BaseException) -> str:
    """Return the last line of users' code in a traceback: " at model.py, line 7, in predict".

    Users' code is outside this package, Python and installed packages. Without such a line the
    result is "".
    """
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if _is_users(frame.filename)]
    if not users:
        return ""
    last = users[-1]
    function = "" if last.name == "<module>" else f", in {last.name}"
    return f" at {shown(last.filename)}, line {last.lineno}{function}"


def defined_at(part: object, method: str = "") -> str:
    """Return where users' code of a part begins, " (model.py, line 7)", or "" if it has none.

    That is the line of the part, if it is a function, or of its method, or of the first function of
    its class.
    """
    functions = [getattr(part, method, part), *vars(type(part)).values()]
    codes = [getattr(getattr(f, "__wrapped__", f), "__code__", None) for f in functions]
    own = [code for code in codes if code is not None and _is_users(code.co_filename)]
    return f" ({shown(own[0].co_filename)}, line {own[0].co_firstlineno})" if own else ""


@contextmanager
def naming(kind: str, part: object, method: str = "it", about: str = "") -> Iterator[None]:
    """Name a user's part in the errors of a block that calls it and checks what it returned.

    An exception without a line of users' code is about the arguments, or about what was returned.
    Errors of built-in parts, and those that name a part already, are not changed.

    Args:
        kind: What the part is, such as "oracle".
        part: The part.
        method: Name of the method that the block calls.
        about: What it was called for, as the end of the sentence.

    Raises:
        AvttError: An error of this package begins with the part's name. Another exception becomes
            an InputError.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        plain = getattr(part, "plain", part)  # inside a wrapper
        defined = plain if isinstance(plain, type | FunctionType) else type(plain)
        ours = defined.__module__.partition(".")[0] == __name__.partition(".")[0]
        if ours or getattr(error, "part", None):
            raise
        who, place = f"{kind} {name_of(part)!r}", defined_at(plain, method)
        if isinstance(error, AvttError):
            error.args, error.part = (f"{who}{place}: {error}",), kind
            raise
        why = shorten(f"{type(error).__name__}: {one_line(error)}", QUOTED, placeholder=" ...")
        failure = InputError(f"{who}{place}: {method} does not fit: {why}{about}")
        if raised_at := place_of(error):
            failure = InputError(f"{who} raised {why}{raised_at}{about}")
        failure.part = kind
        raise failure from error


def name_of(part: object) -> str:
    """Return the name of a part for messages: its own, that of a function, or of its class."""
    own = getattr(part, "__name__", None) or getattr(part, "name", None)
    return str(own or type(part).__name__)


def shown(path: str) -> str:
    """Return the path relative to the working directory if it lies there, else the full path."""
    return os.path.abspath(path).removeprefix(os.path.join(os.getcwd(), ""))


def _is_users(file: str) -> bool:
    if file.startswith("<") or any(part in _INSTALLED for part in Path(file).parts):
        return False
    return not file.startswith(tuple(os.path.join(folder, "") for folder in _LIBRARIES))


class Completed:
    """Base class of wrappers that add default members to a user's object ``plain``.

    Members are looked up in ``plain`` first, at each access, and then in the wrapper's class.
    Attributes are set on ``plain``. Special methods such as ``__len__`` are not passed on.
    """

    def __init__(self, plain: Any) -> None:
        object.__setattr__(self, "plain", plain)

    def __getattribute__(self, name: str) -> Any:
        if name == "plain" or name.startswith("__"):
            return object.__getattribute__(self, name)
        try:
            return getattr(self.plain, name)
        except AttributeError:
            return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.plain, name, value)


def fingerprint_of(part: object) -> str:
    """Return a part's name in the journal: its ``fingerprint``, ``__name__`` or class name."""
    name = getattr(part, "__name__", type(part).__name__)
    return str(getattr(part, "fingerprint", None) or name)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed ``random``, ``numpy.random`` and PyTorch (CPU) for a block, then restore their states.

    Only one thread at a time runs such a block. Other threads that draw outside such blocks at the
    same time are not stopped.

    Args:
        seed: Seed in 0..2**32-1.
    """
    import torch

    with _LOCK:
        python, pytorch = random.getstate(), torch.get_rng_state()
        legacy = np.random.get_state()  # noqa: NPY002 -- the state of other people's code
        try:
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            torch.default_generator.manual_seed(seed)
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002
            torch.set_rng_state(pytorch)
