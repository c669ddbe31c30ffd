"""The frame of every page: head, style, the policy on scripts, and plotly.js.

Reports, figures, ``avtt view``, previews and pages to label on extend frame.html.

plotly.js is packed with gzip inside the page, where plots.js unpacks it once the first figure comes
into view; it may lie next to the page instead, or at Plotly's public address.
"""

import gzip
import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from markupsafe import Markup

from ...errors import InputError
from ...utils.figures import PALETTE
from ...utils.files import write_text
from .section import HERE, fragment

WAYS = ("inline", "folder", "cdn")
FILE = "plotly.min.js"
SERVED = f"/files/{FILE}"
"""Where ``avtt view`` serves it."""
POLICY: Mapping[str, str] = MappingProxyType(
    {
        "default-src": "'none'",
        "img-src": "data: blob:",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
)
"""Sources that every page may load; the policy names its own scripts by their hashes."""


class Library(NamedTuple):
    """plotly.js for a page.

    Attributes:
        source: The source that the page's policy must allow.
        element: The element of the page.
        loads: A sentence on the files that the page loads.
    """

    source: str
    element: Markup
    loads: str


def framed(
    template: Path | str,
    *,
    scripts: Sequence[Path | str] = (),
    styles: Sequence[Path] = (),
    plotly: str | None = None,
    allowed: Mapping[str, str] = MappingProxyType({}),
    **values: Any,
) -> str:
    """Return a whole page.

    Args:
        template: It extends frame.html; by its path where it lies in another folder than this.
        scripts: Files that run in it, in this order; by name those of this folder.
        styles: Style sheets that follow page.css.
        plotly: Where plotly.js is, see ``library``; None for a page without figures.
        allowed: Directives of the policy that replace or extend those of ``POLICY``.
        values: Values of the template; ``title`` among them.
    """
    path, brought = HERE / template, library(plotly)
    run = [_script(HERE / name) for name in scripts]
    sources = " ".join(filter(None, [*map(hashed, run), brought.source])) or "'none'"
    policy = {**POLICY, "script-src": sources, **allowed}
    sheets = [sheet.read_text(encoding="utf-8") for sheet in (HERE / "page.css", *styles)]
    page = fragment(
        path.name,
        path.parent,
        policy="; ".join(f"{name} {sources}" for name, sources in policy.items()),
        styles=[*map(Markup, [_colours(), *sheets])],
        scripts=[*map(Markup, run)],
        library=brought.element,
        loads=brought.loads,
        served=bool(allowed),
        **values,
    )
    return str(page)


def figure_page(
    title: str, lead: str, parts: Sequence[tuple[str, Markup]], *, drawn: bool = True
) -> str:
    """Return a page of figures and tables.

    Args:
        title: Title of the page.
        lead: A sentence below it.
        parts: Headings, and the content below each.
        drawn: Whether there are figures.
    """
    scripts, plotly = (("page.js", "plots.js"), "inline") if drawn else (("page.js",), None)
    return framed(
        "figure_page.html", scripts=scripts, plotly=plotly, title=title, lead=lead, parts=parts
    )


def hashed(script: str) -> str:
    """Return the source of a policy that allows exactly this script: its hash."""
    return f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}'"


@cache
def _script(path: Path) -> str:
    names = {light: f"--{name}" for name, (light, _) in PALETTE.items()}
    return path.read_text(encoding="utf-8").replace("{/* PALETTE */}", json.dumps(names))


@cache
def _colours() -> str:
    """Return the palette as variables of a style sheet, in light and in dark."""
    light, dark = (
        " ".join(f"--{name}: {both[place]};" for name, both in PALETTE.items()) for place in (0, 1)
    )
    light, dark = (f":root {{ {names} color-scheme: light dark; }}" for names in (light, dark))
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}"


# -- plotly.js -------------------------------------------------------------------------------------


def check_way(way: str) -> str:
    """Return ``way`` unchanged. Raise InputError unless it is one of ``WAYS``."""
    if way not in WAYS:
        raise InputError(f"--plotly: expected {', '.join(WAYS[:-1])} or {WAYS[-1]}, got {way!r}")
    return way


@cache
def library(way: str | None) -> Library:
    """Return plotly.js of the installed package, brought in one of WAYS, or from SERVED; an empty
    one for None."""
    nothing = "This page loads nothing from anywhere."
    if way is None:
        return Library("", Markup(""), nothing)
    element = Markup('<script type="text/plain" id="plotly-js" data-src="{}" {}>{}</script>')
    loads = f"This page loads {FILE}, and nothing else."
    if way == SERVED:
        return Library("'self'", element.format(SERVED, "", ""), loads)
    if check_way(way) == "folder":
        return Library("'self' file:", element.format(FILE, "", ""), loads)
    if way == "inline":
        packed = b64encode(gzip.compress(_source().encode(), mtime=0)).decode("ascii")
        return Library(hashed(_source()), element.format("", "", Markup(packed)), nothing)
    from plotly.offline import get_plotlyjs_version

    address = f"https://cdn.plot.ly/plotly-{get_plotlyjs_version()}.min.js"
    integrity = Markup('data-integrity="{}"').format(hashed(_source()).strip("'"))
    return Library(address, element.format(address, integrity, ""), loads.replace(FILE, address))


def write_library(page: Path, way: str) -> None:
    """Write plotly.min.js next to a page that loads it from there, unless it is there."""
    target = page.parent / FILE
    if way == "folder" and not (target.is_file() and target.read_bytes() == _source().encode()):
        write_text(target, _source())


def installed() -> Path:
    """Return the file of plotly.js of the installed package."""
    package = find_spec("plotly")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "package_data" / FILE


@cache
def _source() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
