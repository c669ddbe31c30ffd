"""The page: sections in order, in one frame with everything it needs inside."""

from collections.abc import Callable
from pathlib import Path

from markupsafe import Markup

from ..journal import Journal
from ..utils.files import write_text
from . import (
    asked,
    beliefs,
    caption_violations,
    certified,
    cost,
    counts,
    derived,
    gallery,
    headline,
    published,
    spending,
    uncertainty,
    widths,
)
from .evidence import Evidence
from .section import Section, fragment

SECTIONS: tuple[Callable[[Evidence], Section | None], ...] = (
    headline.section,
    certified.section,
    derived.section,
    published.section,
    widths.section,
    cost.section,
    spending.section,
    beliefs.section,
    uncertainty.section,
    counts.section,
    caption_violations.section,
    gallery.section,
    asked.section,
)
"""What the page shows, top to bottom. A new part is a module and a line here; None is left out."""

HERE = Path(__file__).parent


def render(journal: Journal) -> str:
    """The whole page, from the journal alone."""
    evidence = Evidence.of(journal)
    return str(
        fragment(
            "page.html",
            settings=evidence.settings,
            dataset=evidence.facts.space.dataset,
            sections=[part for make in SECTIONS if (part := make(evidence)) is not None],
            style=_ours("page.css"),
            scripts=[_plotly(), _ours("page.js"), _ours("charts.js"), _ours("certified.js")],
        )
    )


def write_report(journal: Journal, path: Path) -> None:
    """The page in a file, which is replaced in one step."""
    write_text(Path(path), render(journal))


def _ours(name: str) -> Markup:
    """A file of this folder, to stand in the page as it is."""
    return Markup((HERE / name).read_text(encoding="utf-8"))


def _plotly() -> Markup:
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())
