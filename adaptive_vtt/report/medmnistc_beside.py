"""MedMNIST-C: BE and rBE of this audit beside those that were published, by kind of corruption.

Source: Di Salvo et al. (2024), Table 2: means over its twelve data sets, in units of AlexNet's.
"""

import numpy as np

from ..certify.derived import ALL, Figure, figures
from ..certify.formulas import Bounds, rising, stack
from ..relations.medmnistc import CATEGORIES
from .beside import Row
from .evidence import Evidence
from .section import Section, fragment, span

WHOLE, RELATIVE = "BE, all corruptions", "rBE, all corruptions"
MODELS = ("AlexNet", "ResNet50", "DenseNet121", "VGG16", "ViT-B/16")
PUBLISHED: dict[str, tuple[float, ...]] = {
    WHOLE: (1, 1.315, 1.148, 0.930, 0.763),
    "digital": (1, 1.77, 1.45, 1.28, 0.74),
    "noise": (1, 1.10, 1.24, 0.87, 0.50),
    "blur": (1, 1.23, 1.00, 0.91, 0.77),
    "color": (1, 1.48, 1.24, 0.84, 0.80),
    "task-specific": (1, 0.95, 0.78, 0.80, 0.71),
    RELATIVE: (1, 1.661, 1.484, 1.140, 0.599),
}
"""What of the table -> its value for each of MODELS."""


def section(evidence: Evidence) -> Section | None:
    """None where BE over AlexNet's does not follow from what is certified."""
    if evidence.certificate is None or evidence.certificate.guarantee == "each":
        return None
    rates = {s.id: Bounds(s.estimate, s.lower, s.upper) for s in evidence.standings}
    ours = _ours(figures(evidence.facts.space, rates))
    if not ours:
        return None
    rows = [
        Row(what, float(b.estimate), span(float(b.lower), float(b.upper)), PUBLISHED[what])
        for what, b in ours.items()
    ]
    html = fragment("medmnistc_beside.html", rows=rows, models=MODELS)
    return Section("Beside MedMNIST-C's results", "medmnistc-published", html)


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
