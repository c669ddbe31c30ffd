"""The page: parts in order, each of some sections, in one frame with everything it needs inside."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from ..journal import Journal
from ..utils.files import write_text
from . import (
    asked,
    baseline,
    beliefs,
    caption_violations,
    certified,
    conditions,
    cost,
    counts,
    derived,
    disagreements,
    gallery,
    grounds,
    headline,
    published,
    settings,
    spending,
    uncertainty,
    widths,
)
from .evidence import Evidence
from .section import Section, fragment

Maker = Callable[[Evidence], Section | None]


@dataclass(frozen=True)
class Part:
    """A part of the page; ``id`` is its anchor, ``short`` its title in the navigation.

    ``folded``: each section opens when asked to."""

    id: str
    short: str
    title: str
    makers: tuple[Maker, ...]
    folded: bool = False


PARTS = (
    Part("verdict", "Verdict", "Verdict", (headline.section,)),
    Part(
        "failures",
        "Failures",
        "Where it fails",
        (gallery.section, caption_violations.section),
    ),
    Part(
        "certified",
        "Certified",
        "Certified",
        (certified.section, derived.section, published.section),
    ),
    Part("conditions", "Conditions", "Conditions", (conditions.section,)),
    Part(
        "cost",
        "Cost",
        "Cost and trouble",
        (spending.section, cost.section, widths.section),
    ),
    Part(
        "appendix",
        "Appendix",
        "Appendix",
        (
            counts.section,
            disagreements.section,
            beliefs.section,
            uncertainty.section,
            asked.section,
            grounds.section,
            settings.section,
        ),
        folded=True,
    ),
)
"""What the page shows, top to bottom. A new section is a module and its place here; one that
returns None is left out, and so is a part without any."""
SCRIPTS = ("page.js", "gallery.js", "lines.js", "beliefs.js", "conditions.js")

HERE = Path(__file__).parent


def render(journal: Journal, uniform: baseline.Uniform | None = None) -> str:
    """The whole page, from the journal, and what uniform questions took if that is known."""
    evidence = replace(Evidence.of(journal), uniform=uniform)
    made = ((part, [s for make in part.makers if (s := make(evidence))]) for part in PARTS)
    return str(
        fragment(
            "page.html",
            settings=evidence.settings,
            dataset=evidence.facts.space.dataset,
            parts=[(part, sections) for part, sections in made if sections],
            style=_ours("page.css"),
            scripts=[_ours(name) for name in SCRIPTS],
        )
    )


def write_report(journal: Journal, path: Path) -> None:
    """The page in a file, which is replaced in one step; a measurement of uniform questions that
    lies beside it is told."""
    path = Path(path)
    write_text(path, render(journal, baseline.read(path.parent)))


def _ours(name: str) -> Markup:
    """A file of this folder, to stand in the page as it is."""
    return Markup((HERE / name).read_text(encoding="utf-8"))
