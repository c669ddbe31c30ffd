"""Templates of pages and texts, and the address of local servers.

HTML templates escape every value, and a missing one is an error. Servers listen on this machine
alone, and answer only to its names.
"""

import re
from functools import cache, partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, PackageLoader, StrictUndefined, Template

_environment = partial(Environment, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def templates_of(*folders: Path) -> Environment:
    """Return the templates in folders, by file name; earlier folders take precedence."""
    return _environment(loader=FileSystemLoader(folders, encoding="utf-8"), autoescape=True)


def text_of(package: str, name: str, **values: object) -> str:
    """Return a plain text from a template in the folder "templates" of a package."""
    return _texts_of(package).get_template(f"{name}.j2").render(values)


@cache
def _texts_of(package: str) -> Environment:
    return _environment(loader=PackageLoader(package), keep_trailing_newline=True)


ADDRESS = "127.0.0.1"
"""The address at which servers listen."""
_NAMES = re.compile(r"(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d{1,5})?")


def is_loopback(host: str) -> bool:
    """Return whether a request's Host is a name of this machine.

    By DNS rebinding a page on the web could send requests to a local server under another name, and
    read the responses. The Host of such a request is that other name.
    """
    return _NAMES.fullmatch(host.lower()) is not None


def sentences(template: Path, **values: object) -> list[str]:
    """Return the lines, without empty ones, of a plain text from a template."""
    return [line for line in _plain(template).render(values).split("\n") if line]


@cache
def _plain(template: Path) -> Template:
    return templates_of(template.parent).overlay(autoescape=False).get_template(template.name)
