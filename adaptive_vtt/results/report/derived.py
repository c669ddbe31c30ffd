"""What follows from the certified targets: figures of all classes, differences, BE and rBE."""

from dataclasses import dataclass

from ...certify.derived import Figure, Kind, figures
from ...certify.formulas import Bounds
from .evidence import Evidence
from .section import Section, fragment, span
from .target_status import shared

TITLES: dict[Kind, tuple[str, str]] = {
    "classes": (
        "All classes together",
        "Macro figures are means over classes. The sizes of classes are those over all "
        "follow-up images; an unanswered question counts as the oracle judged it.",
    ),
    "concept": (
        "Balanced accuracy per concept",
        "The mean of sensitivity and specificity: 1 less the mean of miss and false-alarm rate.",
    ),
    "difference": (
        "Error beyond that on unchanged images",
        "Above 0 the change of the image makes more answers wrong. The line marks 0.",
    ),
    "BE": (
        "Balanced error (BE)",
        "1 less balanced accuracy, over all severities of a relation. All relations: their mean, "
        "unchanged images left out.",
    ),
    "normalised": (
        "BE over AlexNet’s",
        "The measure of MedMNIST-C, with AlexNet’s published errors on the same test set. The "
        "line marks AlexNet: 1.",
    ),
    "relative": (
        "Relative BE (rBE)",
        "How far BE rises above that on unchanged images, over how far AlexNet’s does. The line "
        "marks AlexNet: 1. What comes with a note may lie outside the bar.",
    ),
}
"""Heading and explanation of each kind, in the order of the page."""
MARKS: dict[Kind, float] = {"difference": 0, "normalised": 1, "relative": 1}
"""Where a line stands in the bars of a kind."""
SHARES: tuple[Kind, ...] = ("classes", "concept", "BE")
"""Kinds whose bars run from 0 to 1."""


@dataclass(frozen=True)
class Bar:
    """An interval, its estimate and the kind's line as shares of the bar's length.

    ``at`` is None where the estimate lies outside, ``mark`` where the kind has no line.
    """

    start: float
    end: float
    at: float | None
    mark: float | None


def section(evidence: Evidence) -> Section | None:
    """A table per kind; None where nothing follows."""
    if evidence.certificate is None or evidence.certificate.guarantee == "each":
        return None  # figures of several rates need intervals that hold at once
    rates = {s.id: Bounds(s.estimate, s.lower, s.upper) for s in evidence.standings}
    found = figures(evidence.facts.space, rates)
    if not found:
        return None
    groups = [
        (kind, *titles, part)
        for kind, titles in TITLES.items()
        if (part := _rows([f for f in found if f.kind == kind], shared(evidence.relations)))
    ]
    return Section("Derived figures", "derived", fragment("derived.html", groups=groups, span=span))


def _rows(part: list[Figure], family: str) -> list[tuple[Figure, str, Bar]]:
    """Every figure with its short name and its bar; all bars of a kind have one scale."""
    if not part:
        return []
    low, high = _scale(part)
    return [(figure, _label(figure, family), _bar(figure, low, high)) for figure in part]


def _label(figure: Figure, family: str) -> str:
    """The figure's name without what its heading says, or all relations have in common."""
    return figure.subject.removeprefix(family) or figure.quantity


def _scale(part: list[Figure]) -> tuple[float, float]:
    """Both ends of the bars: 0 and 1 for shares, else all intervals and the line.

    Intervals with a note may reach far, as a tiny divisor makes them, and are cut off.
    """
    kind = part[0].kind
    if kind in SHARES:
        return 0.0, 1.0
    steady = [f for f in part if not f.note] or part
    low = min(MARKS[kind], *(f.bounds.lower for f in steady))
    high = max(MARKS[kind], *(f.bounds.upper for f in steady))
    return low, high


def _bar(figure: Figure, low: float, high: float) -> Bar:
    def place(value: float) -> float:
        return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0

    bounds, mark = figure.bounds, MARKS.get(figure.kind)
    at = place(bounds.estimate) if low <= bounds.estimate <= high else None
    line = None if mark is None else place(mark)
    return Bar(place(bounds.lower), place(bounds.upper), at, line)
