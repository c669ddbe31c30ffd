"""What stands at which address. Every name in one is looked up in a list that was made here: no
address ever becomes a path."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from ...errors import InputError
from . import pages
from .building import PAGE
from .comparison import compare
from .watching import Watch

OURS = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
"""What our own pages may load, and who may frame them."""
DRAWING = OURS.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'").replace(
    "img-src data:", "img-src data: blob:"
)
"""The same of pages with figures, which Plotly styles as it draws them."""
MAX_FIELDS = 100
"""Fields of an address's query, at most."""
FRAMED = "frame-ancestors 'self'"
"""Who may frame a report; what it may load it says itself."""


@dataclass(frozen=True)
class Reply:
    """What is sent back."""

    body: bytes
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    policy: str = OURS
    location: str | None = None


class Site:
    """The pages about what ``watch`` watches."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def answer(self, address: str) -> Reply:
        """What a GET of ``address``, path and query, gets."""
        try:
            parts = urlsplit(address)
            query = parse_qs(parts.query, max_num_fields=MAX_FIELDS)
        except ValueError:  # http://[bad/
            return _page(pages.trouble("Expected an address, got one that cannot be read."), 400)
        try:
            return self._at(parts.path, query)
        except InputError as error:  # the folder went while it was being watched
            return _page(pages.trouble(str(error)), 404)

    def _at(self, path: str, query: Mapping[str, list[str]]) -> Reply:
        match [unquote(step) for step in path.split("/")[1:]]:
            case [""]:
                return self._front(query)
            case ["compare"]:
                return self._compare(query)
            case ["files", name]:
                return _own_file(name)
            case ["run", name, *rest]:
                return self._run(name, rest)
        return _missing(path)

    def _front(self, query: Mapping[str, list[str]]) -> Reply:
        runs = self.watch.runs()
        if [run.folder for run in runs] == [self.watch.root]:
            return Reply(b"", status=302, location=pages.address(runs[0].name))
        rows = [(run, self.watch.rates(run)) for run in runs]
        return _page(pages.runs_page(self.watch.root, rows, query.get("by", [""])[0]))

    def _compare(self, query: Mapping[str, list[str]]) -> Reply:
        names = query.get("run", [])
        chosen = [run for name in names if (run := self.watch.run(name)) is not None]
        if len(chosen) != 2 or len(names) != 2:
            return _page(pages.trouble("Choose two runs of the list to compare them."), 404)
        a, b = chosen
        one, other = self.watch.rates(a), self.watch.rates(b)
        first, second = pages.known(a, one), pages.known(b, other)
        found = compare(first, second) if first and second else None
        everyone = [self.watch.rates(run).value for run in self.watch.runs()]
        among = [rates for rates in everyone if rates is not None]
        page = pages.compare_page(a, b, found, among, one.failure or other.failure)
        return _page(page, policy=DRAWING)

    def _run(self, name: str, rest: list[str]) -> Reply:
        run = self.watch.run(name)
        if run is None:
            return _page(pages.trouble(f"There is no run {name!r} here."), 404)
        match rest:
            case [] | [""]:
                return _page(pages.run_page(run, self.watch.alone))
            case ["state"]:
                state = pages.state(run, self.watch.report(run), self.watch.rates(run))
                return Reply(json.dumps(state).encode(), "application/json")
            case ["report", number, *names]:
                path = self.watch.file(run, number, "/".join(names) or PAGE)
                if path is not None:
                    return Reply(path.read_bytes(), _kind(path), policy=FRAMED)
        return _missing(name)


def _page(text: str, status: int = 200, policy: str = OURS) -> Reply:
    return Reply(text.encode(), status=status, policy=policy)


def _missing(what: str) -> Reply:
    return _page(pages.trouble(f"Nothing is served at {what!r}."), 404)


def _own_file(name: str) -> Reply:
    path = pages.FILES.get(name)
    return _missing(name) if path is None else Reply(path.read_bytes(), _kind(path))


def _kind(path: Path) -> str:
    found = guess_type(path.name)[0] or "application/octet-stream"
    return f"{found}; charset=utf-8" if found.startswith("text/") else found
