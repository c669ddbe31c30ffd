"""plotly.js for a page: inside it, beside it, or at the public address that Plotly gives.

Inside it is packed with gzip, and plots.js unpacks it once the first figure comes into view.
"""

import gzip
import hashlib
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from markupsafe import Markup

from ...errors import InputError
from ...utils.files import write_text

WAYS = ("inline", "folder", "cdn")
FILE = "plotly.min.js"
NOTHING = "This page loads nothing from anywhere."
LOADS = "This page loads {}, and nothing else."
_ELEMENT = Markup('<script type="text/plain" id="plotly-js" data-src="{}" {}>{}</script>')


@dataclass(frozen=True)
class Library:
    """``allowed``: what the page's policy must let run; ``element``: what stands in the page;
    ``said``: what the page loads, in words."""

    allowed: str
    element: Markup
    said: str


def check_way(way: str) -> str:
    """The way, where there is such a one; raises InputError."""
    if way not in WAYS:
        raise InputError(f"--plotly: expected {', '.join(WAYS[:-1])} or {WAYS[-1]}, got {way!r}")
    return way


@cache
def library(way: str) -> Library:
    """plotly.js of the installed package, brought in one of WAYS."""
    if check_way(way) == "inline":
        packed = b64encode(gzip.compress(_source().encode(), mtime=0)).decode("ascii")
        return Library(hashed(_source()), _ELEMENT.format("", "", Markup(packed)), NOTHING)
    if way == "folder":
        return Library("'self' file:", _ELEMENT.format(FILE, "", ""), LOADS.format(FILE))
    address, integrity = _public()
    kept = Markup('data-integrity="{}"').format(integrity) if integrity else ""
    return Library(address, _ELEMENT.format(address, kept, ""), LOADS.format(address))


def write_beside(page: Path, way: str) -> None:
    """Writes plotly.min.js beside the page where it is to be there, once."""
    target = page.parent / FILE
    if way == "folder" and not (target.is_file() and target.read_bytes() == _source().encode()):
        write_text(target, _source())


def hashed(script: str) -> str:
    """What lets exactly this script run: its hash, as a policy has it."""
    return f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}'"


def policy(scripts: Sequence[str], library: Library | None) -> str:
    """The page's Content-Security-Policy: nothing is loaded, and only what is ours runs."""
    allowed = " ".join([*map(hashed, scripts), *([library.allowed] if library else [])])
    return (
        "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
        f"script-src {allowed}; base-uri 'none'; form-action 'none'"
    )


def installed() -> Path:
    """plotly.js of the installed package, as a file."""
    package = find_spec("plotly")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "package_data" / FILE


@cache
def _source() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _public() -> tuple[str, str]:
    """Plotly's own address of this version of plotly.js, and its hash, "" where it tells none."""
    import plotly.io

    page = plotly.io.to_html({}, include_plotlyjs="cdn", full_html=False)
    tag = next(t for t in re.findall(r"<script[^>]*>", page) if "src=" in t)
    address, integrity = (re.search(rf'{name}="([^"]+)"', tag) for name in ("src", "integrity"))
    assert address is not None
    return address[1], integrity[1] if integrity else ""
