"""MedMNIST-C: BE and rBE of this audit beside those that were published, by kind of corruption.

Source: Di Salvo et al. (2024), Table 2: means over its twelve data sets, in units of AlexNet's.
"""

import numpy as np

from ...certify.derived import ALL, Figure, figures
from ...certify.formulas import Bounds, rising, stack
from ...relations.medmnistc import CATEGORIES
from .beside import Row, published_tables, table_of
from .evidence import Evidence
from .section import Section, span

WHOLE, RELATIVE = "BE, all corruptions", "rBE, all corruptions"


def section(evidence: Evidence) -> Section | None:
    """None where BE over AlexNet's does not follow from what is certified."""
    if evidence.certificate is None or evidence.certificate.guarantee == "each":
        return None
    rates = {s.id: Bounds(s.estimate, s.lower, s.upper) for s in evidence.standings}
    ours = _ours(figures(evidence.facts.space, rates))
    if not ours:
        return None
    table = published_tables("medmnistc")
    rows = [
        Row(
            what,
            float(b.estimate),
            span(float(b.lower), float(b.upper)),
            tuple(table["rows"][what]),
        )
        for what, b in ours.items()
    ]
    return table_of("medmnistc", rows, table["models"])


def _ours(found: list[Figure]) -> dict[str, Bounds]:
    """What of the table -> this audit's value, in its order."""
    normalised = {f.subject: f.bounds for f in found if f.kind == "normalised" and f.subject != ALL}
    relative = [f.bounds for f in found if f.kind == "relative" and f.subject != ALL]
    members = {
        category: [b for name, b in normalised.items() if name.rpartition("/")[2] in names]
        for category, names in CATEGORIES.items()
    }
    every = {WHOLE: list(normalised.values()), **members, RELATIVE: relative}
    return {what: rising(np.mean, stack(several)) for what, several in every.items() if several}
