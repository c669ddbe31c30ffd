"""What pages, texts from templates and servers of this package have alike.

HTML templates escape every value, and one that is lacking is an error. Servers listen on this
machine alone, and answer to its own names alone.
"""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, PackageLoader, StrictUndefined, Template


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


def sentences(template: Path, **values: object) -> list[str]:
    """The lines of a plain text that a template makes; empty ones are left out."""
    return [line for line in _plain(template).render(values).split("\n") if line]


@cache
def _plain(template: Path) -> Template:
    return templates_of(template.parent).overlay(autoescape=False).get_template(template.name)
