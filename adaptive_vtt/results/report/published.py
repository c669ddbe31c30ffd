"""Figures of this audit beside published ones: what such tables share, MedMNIST-C and REIC.

MedMNIST-C: Di Salvo et al. (2024), Table 2: means over its twelve data sets, in units of AlexNet's.
REIC: Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE 2024), Table I:
300 images each of MSCOCO and PASCAL VOC, three follow-ups per image and relation, with people as
judges. Its images and captioners are not ours to run: the figures are kept as printed.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd

from ...certify.derived import ALL, Bounds, Figure, figures, rising, stack
from ...families import OfRelation, TargetId
from ...relations.medmnistc import CATEGORIES
from ...types import JsonObject
from .evidence import Evidence, Standing
from .section import Section, fragment, span

# -- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One target: its name, rate and interval, and each published model's rate."""

    what: str
    rate: float
    interval: str
    published: tuple[float | None, ...]

    @classmethod
    def of(cls, what: str, target: Standing | Bounds, published: Iterable[float | None]) -> "Row":
        """That of a target whose rate is compared as it is."""
        rate, lower, upper = map(float, (target.estimate, target.lower, target.upper))
        return cls(what, rate, span(lower, upper), tuple(published))


@cache
def published_tables(name: str) -> JsonObject:
    """What data/NAME.json holds, figures as they were printed. Kept: never write to it."""
    text = files(__package__).joinpath(f"data/{name}.json").read_text(encoding="utf-8")
    found: JsonObject = json.loads(text)
    return found


def table_of(
    paper: str, rows: Iterable[Row], models: Iterable[str], source: str = "source"
) -> Section:
    """Rows beside the figures of a paper's ``models``, in the words of data/PAPER.json;
    ``source``: which of them says where those are from."""
    words = published_tables(paper)["words"]
    html = fragment(
        "published_beside.html",
        rows=list(rows),
        models=list(models),
        intro=words["intro"],
        label=words["label"],
        source=words[source],
    )
    return Section(words["title"], words["anchor"], html)


# -- MedMNIST-C ------------------------------------------------------------------------------------


WHOLE, RELATIVE = "BE, all corruptions", "rBE, all corruptions"


def medmnistc_section(evidence: Evidence) -> Section | None:
    """None where BE over AlexNet's does not follow from what is certified."""
    if evidence.certificate is None or evidence.certificate.guarantee == "each":
        return None
    ours = medmnistc_figures(figures(evidence.facts.space, evidence.bounds))
    if not ours:
        return None
    table = published_tables("medmnistc")
    rows = [Row.of(what, b, table["rows"][what]) for what, b in ours.items()]
    return table_of("medmnistc", rows, table["models"])


def medmnistc_figures(found: list[Figure]) -> dict[str, Bounds]:
    """What of Table 2 -> the value that follows from these figures, in its order."""
    normalised = {f.subject: f.bounds for f in found if f.kind == "normalised" and f.subject != ALL}
    relative = [f.bounds for f in found if f.kind == "relative" and f.subject != ALL]
    members = {
        category: [b for name, b in normalised.items() if name.rpartition("/")[2] in names]
        for category, names in CATEGORIES.items()
    }
    every = {WHOLE: list(normalised.values()), **members, RELATIVE: relative}
    return {what: rising(np.mean, stack(several)) for what, several in every.items() if several}


# -- REIC ------------------------------------------------------------------------------------------


REIC = "reic/"


def reic_section(evidence: Evidence) -> Section | None:
    """None where no rate of one of REIC's relations, over all severities, is certified."""
    told = [(each, rates) for each in evidence.standings if (rates := _rates(each.id))]
    if not told:
        return None
    captioners = list(told[0][1])
    rows = (
        Row.of(each.id.columns()["relation"], each, (rates[name] for name in captioners))
        for each, rates in told
    )
    return table_of("reic", rows, captioners)


def _rates(target: TargetId) -> dict[str, float]:
    if not isinstance(target, OfRelation) or not target.relation.startswith(REIC):
        return {}
    return violation_rates(target.relation.removeprefix(REIC))


def violation_rates(relation: str) -> dict[str, float]:
    """Captioner -> share of its follow-ups (Table I, case level, both sets of images) in which
    REIC reports a violation; ``relation``: "crop", "stretch" or "rotate", none for others."""
    stored = published_tables("reic")["I"]
    cases = pd.DataFrame(stored["rows"], columns=stored["columns"])
    cases = cases[(cases["level"] == "case") & (cases["relation"] == relation)]
    sums = cases.groupby("captioner", sort=False)[["TP", "FN", "FP", "TN"]].sum()
    shares = (sums["TP"] + sums["FP"]) / sums.sum(axis=1)
    return {str(name): float(share) for name, share in shares.items()}
