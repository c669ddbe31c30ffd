"""The page: parts in order, each of some sections, in one frame with everything it needs inside."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ...journal import Journal
from ...utils.files import write_text
from ...utils.threads import one_thread
from ..difference import names_of
from ..run import Run
from . import (
    answer_gps,
    appendix,
    believed,
    census,
    certified,
    conditions,
    cost,
    differences,
    gallery,
    headline,
    people,
    perturbations,
    replies,
)
from .beside_journal import baselines, said_of_realism
from .evidence import Evidence
from .plotly_library import NOTHING, library, policy, write_beside
from .section import Section, fragment, ours

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


def _appendix(*makers: Maker) -> Part:
    """What the rest stands on, after these."""
    whole = (*makers, appendix.grounds_section, appendix.settings_section)
    return Part("appendix", "Appendix", "Appendix", whole, folded=True)


REPLIES = Part("said", "Replies", "Replies", (replies.section,))
LEARNT = (answer_gps.answers_section, answer_gps.uncertainty_section)
FORETOLD = (believed.section, believed.images, believed.trust)
PARTS = (
    Part("verdict", "Verdict", "Verdict", (headline.section,)),
    Part(
        "failures",
        "Failures",
        "Where it fails",
        (gallery.section, gallery.captions_section, gallery.slices_section),
    ),
    Part(
        "certified",
        "Certified",
        "Certified",
        (
            certified.section,
            certified.derived_section,
            perturbations.section,
            people.realism_section,
        ),
    ),
    REPLIES,
    Part("believes", "Beliefs", "What it believes", (*FORETOLD, *LEARNT)),
    Part("conditions", "Conditions", "Conditions", (conditions.section,)),
    Part(
        "cost",
        "Cost",
        "Cost and trouble",
        (cost.spending_section, cost.slowest_section, cost.widths_section, cost.forecast_section),
    ),
    _appendix(conditions.counts_section, certified.disagreements_section, appendix.asked_section),
)
"""What the page shows, top to bottom. A new section is a function and its place here; one that
returns None is left out, and so is a part without any."""
COUNTED = (
    PARTS[0],
    Part(
        "rates",
        "Rates",
        "Exact rates",
        (census.map_section, census.section, certified.derived_section),
    ),
    PARTS[1],
    REPLIES,
    Part("conditions", "Conditions", "Conditions", (conditions.section,)),
    Part("cost", "Cost", "Cost and trouble", (cost.spending_section,)),
    _appendix(conditions.counts_section, appendix.asked_section),
)
"""Where every question is asked, nothing is believed and no interval shrinks."""
EXPLORED = (
    PARTS[0],
    Part("answers", "Answers", "What it learnt of each concept", LEARNT),
    *(replace(p, makers=FORETOLD) if p.id == "believes" else p for p in PARTS[1:]),
)
"""Where nothing is certified, the answer GPs are the result."""
OF_ITEMS = (
    PARTS[0],
    Part("failures", "Failures", "Where it fails", (appendix.items_section, gallery.section)),
    Part("certified", "Certified", "Certified", (certified.section, gallery.slices_section)),
    Part(
        "cost", "Cost", "Cost", (cost.spending_section, cost.slowest_section, cost.widths_section)
    ),
    _appendix(),
)
"""Of a plain pool, whose losses are told."""
COUNTED_ITEMS = (
    PARTS[0],
    Part("rates", "Rates", "Exact rates", (census.map_section, census.section)),
    OF_ITEMS[1],
    OF_ITEMS[-1],
)
"""Of one whose losses are all told."""
COMPARED = (
    Part("verdict", "Verdict", "Verdict", (differences.headline,)),
    Part("differences", "Differences", "Differences", (differences.section,)),
)
ABOUT_BOTH = (
    *COMPARED,
    Part("failures", "Disagreements", "Where they disagree", (gallery.two_answers_section,)),
    Part("believes", "Beliefs", "What it believes", (believed.section,)),
    Part("cost", "Cost", "Cost and trouble", (cost.spending_section,)),
    _appendix(),
)
"""Of two models that were both asked: rates are those of pairs, which no section may show."""
ABOUT_NEW = (
    *COMPARED,
    Part("failures", "Failures", "Where the new model fails", (gallery.section,)),
    Part("believes", "Beliefs", "What it believes of the new model", FORETOLD),
    Part("conditions", "Conditions", "Conditions", (conditions.section,)),
    Part("cost", "Cost", "Cost and trouble", (cost.spending_section,)),
    _appendix(conditions.counts_section, appendix.asked_section),
)
"""Of a model that alone was asked, as the answers of the other were known."""
SCRIPTS = ("page.js", "gallery.js", "plots.js", "beliefs.js", "believed.js", "conditions.js")


@one_thread()
def render(source: Journal | Run, beside: Path | None = None, *, plotly: str = "inline") -> str:
    """The whole page, from the journal, and from what lies ``beside`` it in this folder: what
    random draws took, and what people said.

    ``plotly``: plotly.js is "inline", inside it; in its "folder", beside it; or loaded from
    Plotly's own address, "cdn". Raises JournalError for a journal that holds no audit.
    """
    brought = library(plotly)
    evidence = Evidence.of(source)
    if beside is not None:
        evidence.baselines = baselines(beside)
        evidence.realism = said_of_realism(beside, evidence.facts)
    made = (
        (part, [s for make in part.makers if (s := make(evidence))]) for part in parts_of(evidence)
    )
    parts = [(part, sections) for part, sections in made if sections]
    drawn = any('class="plot"' in s.html for _, sections in parts for s in sections)
    scripts = [ours(name) for name in SCRIPTS]
    what, model = "Audit", evidence.settings.model
    if evidence.certificate is not None and evidence.certificate.versus is not None:
        what, model = "Comparison", " / ".join(names_of(evidence.facts))
    return str(
        fragment(
            "page.html",
            title=f"{what} of {model} on {evidence.facts.space.dataset}",
            model=model,
            settings=evidence.settings,
            folder=evidence.folder,
            dataset=evidence.facts.space.dataset,
            parts=parts,
            style=ours("page.css"),
            scripts=scripts,
            policy=policy(scripts, brought if drawn else None),
            library=brought.element if drawn else "",
            loads=brought.said if drawn else NOTHING,
        )
    )


def parts_of(evidence: Evidence) -> tuple[Part, ...]:
    """What the page of this journal is made of."""
    certificate = evidence.certificate
    counted = certificate is not None and certificate.counted
    if certificate is not None and certificate.versus is not None:
        return ABOUT_BOTH if certificate.paired else ABOUT_NEW
    if evidence.settings.oracle.tells_losses:
        return COUNTED_ITEMS if counted else OF_ITEMS
    if certificate is None:
        return EXPLORED
    return COUNTED if counted else PARTS


def write_report(source: Journal | Run, path: Path, *, plotly: str = "inline") -> None:
    """Writes the page to ``path``, whole or not at all, with what lies beside it, and for
    ``plotly="folder"`` plotly.min.js beside it; raises InputError where it cannot."""
    path = Path(path)
    write_text(path, render(source, beside=path.parent, plotly=plotly))
    write_beside(path, plotly)
