"""The page: parts in order, each of some sections, in one frame with everything it needs inside."""

import json
from collections.abc import Callable
from enum import Flag, auto
from pathlib import Path

from ...journal import Journal
from ...utils.files import write_text
from ...utils.threads import one_thread
from .. import census
from ..difference import names_of, short_name
from ..result import Result, summarise
from ..run import Run
from . import appendix, cost, gallery, headline, predictions, rates
from .evidence import Evidence
from .frame import check_way, framed, write_library
from .section import Section

SCRIPTS = ("page.js", "gallery.js", "plots.js", "beliefs.js", "believed.js", "conditions.js")


class Kind(Flag):
    """Kinds of audits, by the sections of their pages.

    EXPLORED certifies nothing: the answer GPs are the result. In a CENSUS every question is asked:
    there are no predictions, and no interval shrinks. In a POOL losses of numbered items are
    entered. PAIRS are two models that were both asked: rates are those of pairs, which few sections
    may show. NEW: of two models that one alone was asked, as the answers of the other were known.
    In DROPS each answer is compared with that about the original image.
    """

    CERTIFIED = auto()
    EXPLORED = auto()
    CENSUS = auto()
    POOL = auto()
    POOL_CENSUS = auto()
    PAIRS = auto()
    NEW = auto()
    DROPS = auto()

    @classmethod
    def of(cls, evidence: Evidence) -> "Kind":
        certificate = evidence.certificate
        counted = certificate is not None and certificate.counted
        if certificate is not None and certificate.drops:
            return cls.DROPS
        if certificate is not None and certificate.versus is not None:
            return cls.PAIRS if certificate.paired else cls.NEW
        if evidence.settings.oracle.tells_losses:
            return cls.POOL_CENSUS if counted else cls.POOL
        return cls.EXPLORED if certificate is None else cls.CENSUS if counted else cls.CERTIFIED


CERTIFIED, EXPLORED, CENSUS, POOL, POOL_CENSUS, PAIRS, NEW, DROPS = Kind
ALL, VERSUS, COUNTED = ~Kind(0), PAIRS | NEW, CENSUS | POOL_CENSUS
SAMPLED, IMAGES = CERTIFIED | POOL, CERTIFIED | EXPLORED | CENSUS
ONE_MODEL, PREDICTED = IMAGES | NEW, CERTIFIED | EXPLORED | NEW
LOSSES = predictions.losses_section, predictions.images_section, predictions.trust_section
ANSWER_GPS = predictions.answers_section, predictions.uncertainty_section
PAGE: dict[str, dict[Callable[[Evidence], Section | None], Kind]] = {
    "Summary": {headline.verdict_section: ~VERSUS, headline.versus_section: VERSUS},
    "Differences": {headline.differences_section: VERSUS | DROPS},
    "Answers": dict.fromkeys(ANSWER_GPS, EXPLORED),
    "Exact rates": {
        rates.census_map_section: COUNTED,
        rates.census_section: COUNTED,
        rates.derived_section: CENSUS,
    },
    "Failures": {
        gallery.failures_section: ~(PAIRS | DROPS),
        gallery.two_answers_section: PAIRS | DROPS,
        gallery.captions_section: IMAGES,
        gallery.slices_section: IMAGES,
    },
    "Certified rates": {
        rates.certified_section: SAMPLED,
        gallery.slices_section: POOL,
        rates.derived_section: CERTIFIED,
        rates.perturbations_section: CERTIFIED,
        rates.realism_section: CERTIFIED | EXPLORED,
    },
    "Replies": {appendix.replies_section: IMAGES},
    "Predictions": {**dict.fromkeys(LOSSES, PREDICTED), **dict.fromkeys(ANSWER_GPS, CERTIFIED)},
    "By image change": {rates.conditions_section: ONE_MODEL},
    "Cost": {
        cost.spending_section: ~POOL_CENSUS,
        cost.widths_section: SAMPLED,
        cost.forecast_section: CERTIFIED,
    },
    "Details": {
        rates.counts_section: ONE_MODEL,
        appendix.asked_section: ONE_MODEL,
        appendix.grounds_section: ALL,
        appendix.settings_section: ALL,
    },
}
"""Title of a part -> the functions that make its sections, and the kinds of audits that show each.
A section that is None is left out, and so is a part without any."""
IDS = {
    "Summary": "verdict",
    "Exact rates": "rates",
    "Certified rates": "certified",
    "Predictions": "believes",
    "By image change": "conditions",
    "Details": "appendix",
}
"""Anchors of parts; the others have their title in small letters."""
OF_ITEMS = {"By image change": "By condition"}
"""Titles of parts where samples are no images."""
OPEN = {"Certified rates": 1, "Predictions": 1, "Cost": 1, "Details": 0}
"""How many sections of a part stand open; the others are folded."""


@one_thread()
def render(source: Journal | Run, folder: Path | None = None, *, plotly: str = "inline") -> str:
    """Return the whole page.

    Args:
        source: The journal of an audit, or its run.
        folder: The folder with baselines and people's judgements, None for none.
        plotly: Where plotly.js stands: "inline", inside the page; in its "folder", next to it; or
            at Plotly's own address, "cdn".

    Raises:
        JournalError: The journal holds no audit.
    """
    evidence = Evidence(source, folder)
    kind = Kind.of(evidence)
    parts: list[tuple[str, str, list[Section]]] = []  # title, anchor, sections
    for title, makers in PAGE.items():
        made = [make(evidence) for make, kinds in makers.items() if kind in kinds]
        if sections := [section for section in made if section is not None]:
            shown = OF_ITEMS.get(title, title) if evidence.sample == "item" else title
            parts.append((shown, IDS.get(title, title.lower()), sections))
    drawn = any('class="plot"' in section.html for *_, sections in parts for section in sections)
    noun, model = "Audit", short_name(evidence.settings.model)
    if kind in VERSUS:
        noun, model = "Comparison", " / ".join(names_of(evidence.facts))
    return framed(
        "page.html",
        scripts=SCRIPTS,
        plotly=check_way(plotly) if drawn else None,
        title=f"{noun} of {model} on {evidence.space.dataset}",
        model=model,
        settings=evidence.settings,
        folder=evidence.folder,
        dataset=evidence.space.dataset,
        parts=parts,
        open=OPEN,
    )


def write_report(source: Journal | Run, path: Path, *, plotly: str = "inline") -> None:
    """Write the page of a run, whole or not at all, with baselines and judgements of its folder.

    Args:
        source: A journal, or a run that is open.
        path: The page's file.
        plotly: As ``render`` takes it; "folder" also writes plotly.min.js next to the page.

    Raises:
        InputError: The page cannot be written.
    """
    path = Path(path)
    write_text(path, render(source, path.parent, plotly=plotly))
    write_library(path, plotly)


def write_run(source: Journal | Run, out: Path, *, plotly: str = "inline") -> Result:
    """Write result.json, report.html and, of a census, its tables into a run folder.

    Args:
        source: A journal, or a run that is open.
        out: The folder.
        plotly: As ``render`` takes it.

    Returns:
        The result.

    Raises:
        InputError: A file cannot be written.
    """
    check_way(plotly)
    run = Run.of(source)
    result = summarise(run)
    text = json.dumps(result.to_dict(), indent=1, allow_nan=False)
    write_text(out / "result.json", f"{text}\n")
    write_report(run, out / "report.html", plotly=plotly)
    census.write(out, dict(result.census))
    return result
