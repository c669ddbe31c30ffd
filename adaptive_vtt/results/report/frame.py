"""The frame of every page: head, style, what its policy lets run, and plotly.js.

Reports, figures, ``avtt view``, previews and pages to label on extend frame.html.
plotly.js is packed with gzip inside the page, where plots.js unpacks it once the first figure comes
into view; it may lie beside the page instead, or at Plotly's public address.
"""

import gzip
import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from ...errors import InputError
from ...utils.figures import PALETTE
from ...utils.files import write_text
from .section import HERE, fragment

WAYS = ("inline", "folder", "cdn")
FILE = "plotly.min.js"
SERVED = f"/files/{FILE}"
"""Where ``avtt view`` serves it."""
NOTHING = "This page loads nothing from anywhere."
LOADS = "This page loads {}, and nothing else."
POLICY: Mapping[str, str] = MappingProxyType(
    {
        "default-src": "'none'",
        "img-src": "data: blob:",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
)
"""What every page may load, scripts apart: of these only its own run, by their hashes."""
_ELEMENT = Markup('<script type="text/plain" id="plotly-js" data-src="{}" {}>{}</script>')


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
        allowed: Directives of the policy in place of those in ``POLICY``, or besides.
        values: What the template shows; ``title`` among them.
    """
    path, brought = HERE / template, None if plotly is None else library(plotly)
    run = [_script(HERE / name) for name in scripts]
    sources = [*map(hashed, run), *([brought.allowed] if brought else [])]
    policy = {**POLICY, "script-src": " ".join(sources) or "'none'", **allowed}
    page = fragment(
        path.name,
        path.parent,
        policy="; ".join(f"{name} {sources}" for name, sources in policy.items()),
        styles=[Markup(_colours()), *(ours(sheet) for sheet in (HERE / "page.css", *styles))],
        scripts=[*map(Markup, run)],
        library=brought.element if brought else "",
        loads=brought.loads if brought else NOTHING,
        served=bool(allowed),
        **values,
    )
    return str(page)


def figure_page(
    title: str, lead: str, parts: Sequence[tuple[str, Markup]], *, drawn: bool = True
) -> str:
    """Return a page of figures and tables: a heading each, and what stands below it.

    Args:
        title: Of the page.
        lead: A sentence below it.
        parts: Headings, and what stands there.
        drawn: Whether there are figures.
    """
    scripts, plotly = (("page.js", "plots.js"), "inline") if drawn else (("page.js",), None)
    return framed(
        "figure_page.html", scripts=scripts, plotly=plotly, title=title, lead=lead, parts=parts
    )


def ours(path: Path) -> Markup:
    """Return a file of this package, to stand in a page as it is."""
    return Markup(path.read_text(encoding="utf-8"))


def hashed(script: str) -> str:
    """Return what lets exactly this script run: its hash, as a policy has it."""
    return f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}'"


@cache
def _script(path: Path) -> str:
    names = {light: f"--{name}" for name, (light, _) in PALETTE.items()}
    return path.read_text(encoding="utf-8").replace("{/* PALETTE */}", json.dumps(names))


@cache
def _colours() -> str:
    """Return the palette as variables of a style sheet, in light and in dark."""
    light, dark = (
        ":root { "
        + " ".join(f"--{name}: {both[place]};" for name, both in PALETTE.items())
        + " color-scheme: light dark; }"
        for place in (0, 1)
    )
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}"


# -- plotly.js -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Library:
    """``allowed``: what the page's policy must let run; ``element``: what stands in the page;
    ``loads``: what the page loads, in words."""

    allowed: str
    element: Markup
    loads: str


def check_way(way: str) -> str:
    """Return the way, where there is such a one; raise InputError."""
    if way not in WAYS:
        raise InputError(f"--plotly: expected {', '.join(WAYS[:-1])} or {WAYS[-1]}, got {way!r}")
    return way


@cache
def library(way: str) -> Library:
    """Return plotly.js of the installed package, brought in one of WAYS, or from SERVED."""
    if way == SERVED:
        return Library("'self'", _ELEMENT.format(SERVED, "", ""), LOADS.format(FILE))
    if check_way(way) == "inline":
        packed = b64encode(gzip.compress(_source().encode(), mtime=0)).decode("ascii")
        return Library(hashed(_source()), _ELEMENT.format("", "", Markup(packed)), NOTHING)
    if way == "folder":
        return Library("'self' file:", _ELEMENT.format(FILE, "", ""), LOADS.format(FILE))
    import plotly.io

    # Plotly's own address of this version, and its hash where it tells one
    page = plotly.io.to_html({}, include_plotlyjs="cdn", full_html=False)
    tag = next(t for t in re.findall(r"<script[^>]*>", page) if "src=" in t)
    named = dict(re.findall(r'(src|integrity)="([^"]+)"', tag))
    address, integrity = named["src"], named.get("integrity")
    kept = Markup('data-integrity="{}"').format(integrity) if integrity else ""
    return Library(address, _ELEMENT.format(address, kept, ""), LOADS.format(address))


def write_beside(page: Path, way: str) -> None:
    """Write plotly.min.js beside the page where it is to be there, once."""
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
