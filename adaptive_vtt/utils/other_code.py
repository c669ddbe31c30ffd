"""Other people's code: imported by name, completed with defaults, and located where it failed.

Objects of their modules are named ``package.module:name`` or ``file.py:name``.
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
from threading import RLock
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import InputError, one_line, unknown
from .files import near_file

OURS = str(Path(__file__).parent.parent)
_LIBRARIES = tuple({OURS, *(sysconfig.get_path(n) for n in ("stdlib", "platstdlib", "purelib"))})
_INSTALLED = ("site-packages", "dist-packages")
_LOCK = RLock()  # of the random states that the whole process shares


def load_object(target: str, base: Path | None = None, what: str = "model") -> Any:
    """Return what ``target`` names; a relative file starts at ``base``, else, where none is there,
    here.

    ``what``: the kind of thing, for messages. Raise InputError for a target of another form,
    a module that cannot be imported, and a name that it does not have.
    """
    where, colon, name = target.rpartition(":")
    if not (colon and where and name):
        raise InputError(
            f"{what}: expected 'package.module:name' or 'file.py:name', got {target!r}; add the "
            "name of the function or object in it"
        )
    if ".py:" in where:
        raise InputError(
            f"{what}: expected 'file.py:name', got {target!r}; options after the name are for avtt "
            "compare, elsewhere they are a field of the spec such as strategy_options"
        )
    module = _module(where, base or Path(), what)
    if not hasattr(module, name):
        modules = ModuleType  # np and the like are not what somebody looks for
        names = [n for n, v in vars(module).items() if n[0] != "_" and not isinstance(v, modules)]
        raise unknown("name", name, names, f"{what}: {where}")
    return getattr(module, name)


def is_target(name: str) -> bool:
    """Return whether a name is that of code: ``file.py:name`` or ``package.module:name``."""
    return ":" in name


def file_of(target: str, base: Path | None = None) -> Path | None:
    """Return the file that a target names; None where it names a package's module."""
    where = target.rpartition(":")[0]
    return _located(where, base or Path()) if where.endswith(".py") else None


def _located(where: str, base: Path) -> Path:
    """Return the file next to the spec, in ``base``; where there is none, the one from here."""
    path = base / where
    return Path(where) if Path(where).is_file() and not path.is_file() else path


def _module(where: str, base: Path, what: str) -> ModuleType:
    try:
        if where.endswith(".py"):
            return _from_file(_located(where, base).resolve(), what)
        return importlib.import_module(where)
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # a user's module may fail in any way at all
        raise InputError(
            f"{what}: cannot import {where!r}: {type(error).__name__}: {one_line(error)}"
            f"{place_of(error)}{_remedy(error)}"
        ) from error


def _remedy(error: BaseException) -> str:
    """Return what to do about an import that failed, as far as the error shows."""
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
    if str(path.parent) not in sys.path:  # last: a file next to it hides no installed package
        sys.path.append(str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def place_of(error: BaseException) -> str:
    """Return " at model.py, line 7, in predict"; "" where none of their lines was running.

    Theirs is what is neither of this package, nor of Python, nor installed with it.
    """
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _is_theirs(frame.filename)]
    if not theirs:
        return ""
    last = theirs[-1]
    function = "" if last.name == "<module>" else f", in {last.name}"
    return f" at {shown(last.filename)}, line {last.lineno}{function}"


def defined_at(function: Any) -> str:
    """Return " from model.py, line 7", where a function or method begins; "" where it is not
    known."""
    code = getattr(function, "__code__", None)
    return f" from {shown(code.co_filename)}, line {code.co_firstlineno}" if code else ""


def shown(path: str) -> str:
    """Return the path as seen from here, where it lies below; else as it is."""
    real = os.path.abspath(path)
    here = os.path.join(os.getcwd(), "")
    return real.removeprefix(here)


def _is_theirs(file: str) -> bool:
    if file.startswith("<") or any(part in _INSTALLED for part in Path(file).parts):
        return False
    return not file.startswith(tuple(os.path.join(folder, "") for folder in _LIBRARIES))


class Completed:
    """Base of a class of defaults: members of ``plain`` come before them, always as they are now,
    and what is set is set on ``plain``.

    Nothing else asks an object what it has. Special methods such as ``__len__`` are not passed on.
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
    """Return how a part is journaled: its ``fingerprint``, a function's name, or its class."""
    name = getattr(part, "__name__", type(part).__name__)
    return str(getattr(part, "fingerprint", None) or name)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within it, ``random``, ``numpy.random`` and PyTorch (on the CPU) draw from ``seed``, which
    lies in 0..2**32-1; after it they continue as if nothing had been drawn.

    One thread at a time may be within; threads that draw from these states outside of it, at the
    same moment, are not kept away.
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
