"""What is certified: an interval per target, what follows from several of them (BE, rBE, figures of
all classes), and what is merely believed beside that.
"""

from collections import Counter

from ...families import shared
from ...journal.facts import CertificateFacts
from ...types import JsonObject
from ...utils.figures import shorten
from ..derived import Figure, Kind, figures
from .evidence import Evidence, ordered
from .section import Section, aim, exact

LABEL = 40
"""Characters of a target's name beside its bar; longer names are cut short."""
STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Distances between the marks of an axis that are tried, the finest first."""
MARKS = 6
"""Marks of the axis, at most, beside 0."""
LINES: dict[Kind, float | None] = {
    "classes": None,
    "concept": None,
    "difference": 0,
    "BE": None,
    "normalised": 1,
    "relative": 1,
}
"""Kinds of derived figures in the order of the page, and where a line stands in their bars; bars
without one run from 0 to 1. derived.html says what each kind is."""
FLAGS = 6
"""Disagreements that are listed before the reader asks for all."""


def section(evidence: Evidence) -> Section | None:
    """Show guarantee, an interval per target as a bar, and all figures; None where nothing is
    certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    groups, limit = ordered(evidence.standings), certificate.at_most
    end, marks = axis([s.upper for s in evidence.standings], limit or 0, MARKS)
    return Section.of(
        evidence,
        "Certified",
        "certified",
        "certified.html",
        limit=limit,
        targets=[s for _, part in groups for s in part],
        bars=[(t, sorted(part, key=lambda s: not s.settled)) for t, part in groups],
        shorten=shorten,
        most=LABEL,
        end=end,
        marks=marks,
        failed=Counter(place for f in evidence.failures for place in f.targets),
        words=words(certificate),
    )


def axis(ends: list[float], least: float, most: int) -> tuple[float, list[float]]:
    """Return where an axis from 0 ends, behind all ``ends`` and ``least``, and ``most`` marks or
    fewer."""
    end = min(1.0, 1.06 * max([*ends, least, 0.02]))
    step = next((s for s in STEPS if end / s <= most), STEPS[-1])
    return end, [k * step for k in range(1 + int(end / step + 1e-9))]


def words(certificate: CertificateFacts) -> dict[str, str]:
    """Return the aim of this audit in words, and what its targets are called once there and
    before."""
    width, limit = certificate.half_width, certificate.at_most
    aims, lacking = [], []
    if width is not None:
        aims, lacking = [f"an interval of at most {aim(width)}"], ["not yet precise enough"]
    if limit is not None:
        what = "a decision" if certificate.decides else "an interval"
        aims, lacking = [*aims, f"{what} on one side of {exact(limit)}"], [*lacking, "open"]
    return {"aim": " and ".join(aims), "done": certificate.done, "open": " or ".join(lacking)}


# -- figures that follow ---------------------------------------------------------------------------


def derived_section(evidence: Evidence) -> Section | None:
    """Show a table per kind; None where nothing follows."""
    if evidence.certificate is None or evidence.certificate.guarantee == "each":
        return None  # figures of several rates need intervals that hold at once
    bounds = {s.id: s.bounds for s in evidence.standings}
    every, family = figures(evidence.space, bounds), shared(evidence.relations)
    groups = []
    for kind in LINES:
        part = [f for f in every if f.kind == kind]
        if part:
            names = [_label(f, family) for f in part]
            groups.append((kind, [*zip(part, names, _bars(part), strict=True)]))
    if not groups:
        return None
    return Section.of(evidence, "Derived figures", "derived", "derived.html", groups=groups)


def _label(figure: Figure, family: str) -> str:
    """Return what a figure is called among those of its kind, relations without ``family``."""
    relation = (figure.relation or "").removeprefix(family)
    about = ", ".join(filter(None, [relation, figure.concept]))
    several = figure.kind in ("classes", "difference") or not about
    return f"{about}: {figure.quantity}" if about and several else about or figure.quantity


def _bars(part: list[Figure]) -> list[JsonObject]:
    """Return per figure of a kind its interval, its estimate (None: outside) and the kind's line
    (None: none), as shares of the bar's length; all have one scale.

    Intervals with a note may reach far, as a tiny divisor makes them, and are cut off.
    """
    line = LINES[part[0].kind]
    low, high = 0.0, 1.0
    if line is not None:
        steady = [f.bounds for f in part if not f.note] or [f.bounds for f in part]
        low = min(line, *(b.lower for b in steady))
        high = max(line, *(b.upper for b in steady))

    def place(value: float) -> float:
        return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0

    return [
        {
            "start": place(b.lower),
            "end": place(b.upper),
            "at": place(b.estimate) if low <= b.estimate <= high else None,
            "mark": None if line is None else place(line),
        }
        for b in (figure.bounds for figure in part)
    ]


# -- beliefs beside intervals ----------------------------------------------------------------------


def disagreements_section(evidence: Evidence) -> Section | None:
    """Show every raw mean and belief, and those that an interval rules out; None without
    intervals."""
    if evidence.certificate is None:
        return None
    believed = any(s.belief is not None for s in evidence.standings)
    return Section.of(
        evidence,
        "Raw and certified rates",
        "disagreements",
        "disagreements.html",
        targets=[s for _, part in ordered(evidence.standings) for s in part],
        believed=believed,
        flags=[(s, *outside) for s in evidence.standings for outside in s.beliefs_outside],
        most=FLAGS,
    )
