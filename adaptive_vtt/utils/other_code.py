"""Where other people's code went wrong: the last of their lines that was running."""

import os
import sysconfig
import traceback
from pathlib import Path

OURS = str(Path(__file__).parent.parent)
_LIBRARIES = tuple({OURS, *(sysconfig.get_path(n) for n in ("stdlib", "platstdlib", "purelib"))})
_INSTALLED = ("site-packages", "dist-packages")


def place_of(error: BaseException) -> str:
    """ " at model.py, line 7, in predict"; "" where none of their lines was running.

    Theirs is what is neither of this package, nor of Python, nor installed beside it.
    """
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _is_theirs(frame.filename)]
    if not theirs:
        return ""
    last = theirs[-1]
    function = "" if last.name == "<module>" else f", in {last.name}"
    return f" at {shown(last.filename)}, line {last.lineno}{function}"


def shown(path: str) -> str:
    """The path as seen from here, where it lies below; else as it is."""
    real = os.path.abspath(path)
    here = os.path.join(os.getcwd(), "")
    return real.removeprefix(here)


def _is_theirs(file: str) -> bool:
    if file.startswith("<") or any(part in _INSTALLED for part in Path(file).parts):
        return False
    return not file.startswith(tuple(os.path.join(folder, "") for folder in _LIBRARIES))
