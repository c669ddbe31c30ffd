"""What pages, texts from templates and servers of this package have alike.

HTML templates escape every value, and one that is lacking is an error. Servers listen on this
machine alone, and answer to its own names alone.
"""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, PackageLoader, StrictUndefined


def templates_of(*folders: Path) -> Environment:
    """The templates of the folders, by file name, the first folder's first."""
    return Environment(
        loader=FileSystemLoader(folders, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def text_of(package: str, name: str, **values: object) -> str:
    """A plain text from the ``templates`` of a package, filled in."""
    return _texts_of(package).get_template(f"{name}.j2").render(values)


@cache
def _texts_of(package: str) -> Environment:
    return Environment(
        loader=PackageLoader(package),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


ADDRESS = "127.0.0.1"
"""Where they listen."""
_NAMES = re.compile(r"(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether a request's Host is a name of this machine.

    A page on the web could reach a local server under a name of its own that leads here (DNS
    rebinding), and read the answers: its Host gives it away.
    """
    return _NAMES.fullmatch(host.lower()) is not None
