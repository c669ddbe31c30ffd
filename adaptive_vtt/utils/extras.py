"""The pip command for an optional part, wherever the package itself came from."""

import re
from importlib.metadata import PackageNotFoundError, requires, version

PACKAGE = "adaptive-vtt"


def pip_install(extra: str) -> str:
    """``pip install`` with what the extra of that name needs: the packages themselves, as an extra
    can be named only where the package is on an index."""
    try:
        needed = requires(PACKAGE) or []
    except PackageNotFoundError:  # run from a checkout that was not installed
        needed = []
    mine = re.compile(rf"""extra\s*==\s*["']{extra}["']""")
    found = [line.split(";")[0].strip() for line in needed if mine.search(line)]
    return " ".join(["pip install", *(f"'{name}'" for name in found or [f"{PACKAGE}[{extra}]"])])


def own_version() -> str:
    """What was installed: the last tag, and what came after it; "0+unknown" of a bare checkout."""
    try:
        return version("adaptive-vtt")
    except PackageNotFoundError:
        return "0+unknown"
