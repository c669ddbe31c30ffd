"""The page: parts in order, each of some sections, in one frame with everything it needs inside."""

from collections.abc import Callable
from enum import Flag, auto
from pathlib import Path
from typing import NamedTuple

from ...journal import Journal
from ...utils.files import write_text
from ...utils.threads import one_thread
from ..difference import names_of, short_name
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
from .evidence import Evidence
from .frame import check_way, framed, write_beside
from .section import Section

SCRIPTS = ("page.js", "gallery.js", "plots.js", "beliefs.js", "believed.js", "conditions.js")


class Kind(Flag):
    """Kinds of audits, by what their pages show.

    EXPLORED certifies nothing: the answer GPs are the result. In a CENSUS every question is asked:
    nothing is believed, and no interval shrinks. In a POOL losses are told of numbered items. PAIRS
    are two models that were both asked: rates are those of pairs, which few sections may show. Of
    two models NEW alone was asked, as the answers of the other were known.
    """

    CERTIFIED = auto()
    EXPLORED = auto()
    CENSUS = auto()
    POOL = auto()
    POOL_CENSUS = auto()
    PAIRS = auto()
    NEW = auto()

    @classmethod
    def of(cls, evidence: Evidence) -> "Kind":
        certificate = evidence.certificate
        counted = certificate is not None and certificate.counted
        if certificate is not None and certificate.versus is not None:
            return cls.PAIRS if certificate.paired else cls.NEW
        if evidence.settings.oracle.tells_losses:
            return cls.POOL_CENSUS if counted else cls.POOL
        return cls.EXPLORED if certificate is None else cls.CENSUS if counted else cls.CERTIFIED


CERTIFIED, EXPLORED, CENSUS, POOL, POOL_CENSUS, PAIRS, NEW = Kind
ALL, POOLS, VERSUS, COUNTED = ~Kind(0), POOL | POOL_CENSUS, PAIRS | NEW, CENSUS | POOL_CENSUS
SAMPLED, IMAGES = CERTIFIED | POOL, CERTIFIED | EXPLORED | CENSUS
ONE_MODEL, BELIEVED = IMAGES | NEW, CERTIFIED | EXPLORED | NEW
PAGE: dict[str, dict[Callable[[Evidence], Section | None], Kind]] = {
    "Summary": {headline.section: ~VERSUS, differences.headline: VERSUS},
    "Differences": {differences.section: VERSUS},
    "Answers": dict.fromkeys(answer_gps.SECTIONS, EXPLORED),
    "Exact rates": {
        census.map_section: COUNTED,
        census.section: COUNTED,
        certified.derived_section: CENSUS,
    },
    "Failures": {
        appendix.items_section: POOLS,
        gallery.section: ~PAIRS,
        gallery.two_answers_section: PAIRS,
        gallery.captions_section: IMAGES,
        gallery.slices_section: IMAGES,
    },
    "Certified rates": {
        certified.section: SAMPLED,
        gallery.slices_section: POOL,
        certified.derived_section: CERTIFIED,
        perturbations.section: CERTIFIED,
        people.realism_section: CERTIFIED | EXPLORED,
    },
    "Replies": {replies.section: IMAGES},
    "Predictions": {
        believed.pairs_section: PAIRS,
        **dict.fromkeys(believed.SECTIONS, BELIEVED),
        **dict.fromkeys(answer_gps.SECTIONS, CERTIFIED),
    },
    "By image change": {conditions.section: ONE_MODEL},
    "Cost": {
        cost.spending_section: ~POOL_CENSUS,
        cost.slowest_section: SAMPLED,
        cost.widths_section: SAMPLED,
        cost.forecast_section: CERTIFIED,
    },
    "Details": {
        conditions.counts_section: ONE_MODEL,
        certified.disagreements_section: CERTIFIED,
        appendix.asked_section: ONE_MODEL,
        appendix.grounds_section: ALL,
        appendix.settings_section: ALL,
    },
}
"""What the page shows, top to bottom: by the title of a part the functions that make its sections,
and of which kinds of audits each is. A section that is None is left out, and so is a part without
any."""
IDS = {
    "Summary": "verdict",
    "Exact rates": "rates",
    "Certified rates": "certified",
    "Replies": "said",
    "Predictions": "believes",
    "By image change": "conditions",
    "Details": "appendix",
}
"""Anchors of parts; of others the title in small letters."""
OF_ITEMS = {"By image change": "By condition"}
"""Titles of parts where samples are no images."""
OPEN = {"Certified rates": 1, "Predictions": 1, "Cost": 1, "Details": 0}
"""How many sections of a part stand open, where the others open when asked to."""


class Part(NamedTuple):
    """A part of the page; ``id`` is its anchor."""

    title: str
    id: str
    sections: list[Section]


@one_thread()
def render(source: Journal | Run, beside: Path | None = None, *, plotly: str = "inline") -> str:
    """Return the whole page, from the journal, and from what lies ``beside`` it in this folder:
    what random draws took, and what people said.

    Args:
        source: The journal of an audit, or its run.
        beside: The folder, None for none.
        plotly: Where plotly.js stands: "inline", inside the page; in its "folder", beside it; or
            at Plotly's own address, "cdn".

    Raises:
        JournalError: The journal holds no audit.
    """
    evidence = Evidence(source, beside)
    kind = Kind.of(evidence)
    parts = []
    for title, makers in PAGE.items():
        made = [make(evidence) for make, kinds in makers.items() if kind in kinds]
        if sections := [section for section in made if section is not None]:
            shown = OF_ITEMS.get(title, title) if evidence.sample == "item" else title
            parts.append(Part(shown, IDS.get(title, title.lower()), sections))
    drawn = any('class="plot"' in section.html for part in parts for section in part.sections)
    what, model = "Audit", short_name(evidence.settings.model)
    if kind in VERSUS:
        what, model = "Comparison", " / ".join(names_of(evidence.facts))
    return framed(
        "page.html",
        scripts=SCRIPTS,
        plotly=check_way(plotly) if drawn else None,
        title=f"{what} of {model} on {evidence.space.dataset}",
        model=model,
        settings=evidence.settings,
        folder=evidence.folder,
        dataset=evidence.space.dataset,
        parts=parts,
        open=OPEN,
    )


def write_report(source: Journal | Run, path: Path, *, plotly: str = "inline") -> None:
    """Write the page to ``path``, whole or not at all, with what lies beside it; see ``render``.

    For ``plotly="folder"`` plotly.min.js is written beside it.

    Raises:
        InputError: The page cannot be written.
    """
    path = Path(path)
    write_text(path, render(source, beside=path.parent, plotly=plotly))
    write_beside(path, plotly)
