"""What is certified: an interval per target, what follows from several of them (BE, rBE, figures of
all classes), and what is merely believed beside that.
"""

from collections import Counter

from ...families import shared
from ...journal.facts import CertificateFacts
from ...types import JsonObject
from ...utils.figures import shorten
from ..derived import Figure, Kind, figures
from .evidence import Evidence, Standing, ordered
from .section import Section, aim, exact, span

# -- intervals -------------------------------------------------------------------------------------


LABEL = 40
"""Characters of a target's name beside its bar; longer names are cut short."""
STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Distances between the marks of the axis that are tried, the finest first."""
MARKS = 6
"""Marks of the axis, at most, beside 0."""


def section(evidence: Evidence) -> Section | None:
    """Guarantee, an interval per target as a bar, all figures; None where nothing is certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    found = evidence.standings
    end, marks = _scale(found, certificate.at_most)
    return Section.of(
        "Certified",
        "certified",
        "certified.html",
        certificate=certificate,
        width=certificate.half_width,
        limit=certificate.at_most,
        span=span,
        targets=[s for _, part in ordered(found) for s in part],
        bars=[
            (title, [_bar(s, end) for s in sorted(part, key=lambda s: not s.settled)])
            for title, part in ordered(found)
        ],
        end=end,
        marks=marks,
        failed=Counter(place for f in evidence.failures for place in f.targets),
        words=words(certificate),
        invalidated=any(s.emptied for s in found),
        adaptive=evidence.adaptive,
        running=evidence.facts.ended is None,
    )


def words(certificate: CertificateFacts) -> dict[str, str]:
    """The aim of this audit in words, and what its targets are called once there and before."""
    width, limit = certificate.half_width, certificate.at_most
    aims = []
    if width is not None:
        aims.append(f"an interval of at most {aim(width)}")
    if limit is not None:
        side = f"on one side of {exact(limit)}"
        aims.append(f"a decision {side}" if certificate.decides else f"an interval {side}")
    wide = [] if width is None else ["wider than asked"]
    lacking = " or ".join(wide + ([] if limit is None else ["open"]))
    return {"aim": " and ".join(aims), "done": certificate.done, "open": lacking}


def _scale(found: list[Standing], limit: float | None) -> tuple[float, list[float]]:
    """Where the axis ends, behind every interval, and its marks."""
    end = min(1.0, 1.06 * max([*(s.upper for s in found), limit or 0, 0.02]))
    step = next(s for s in STEPS if end / s <= MARKS)
    return end, [k * step for k in range(1 + int(end / step + 1e-9))]


def _bar(standing: Standing, end: float) -> JsonObject:
    """A target's interval: where the bar starts, its length, and the estimate, as shares of the
    axis."""
    return {
        "of": standing,
        "label": shorten(standing.label, LABEL),
        "start": standing.lower / end,
        "length": (standing.upper - standing.lower) / end,
        "at": standing.estimate / end,
    }


# -- figures that follow ---------------------------------------------------------------------------


KINDS: tuple[Kind, ...] = ("classes", "concept", "difference", "BE", "normalised", "relative")
"""In the order of the page; derived.html says what each is."""
LINES: dict[Kind, float] = {"difference": 0, "normalised": 1, "relative": 1}
"""Where a line stands in the bars of a kind."""
SHARES: tuple[Kind, ...] = ("classes", "concept", "BE")
"""Kinds whose bars run from 0 to 1."""


def derived_section(evidence: Evidence) -> Section | None:
    """A table per kind; None where nothing follows."""
    if evidence.certificate is None or evidence.certificate.guarantee == "each":
        return None  # figures of several rates need intervals that hold at once
    found = figures(evidence.facts.space, evidence.bounds)
    if not found:
        return None
    groups = [
        (kind, _derived_rows(part, shared(evidence.relations)))
        for kind in KINDS
        if (part := [f for f in found if f.kind == kind])
    ]
    return Section.of("Derived figures", "derived", "derived.html", groups=groups, span=span)


def _derived_rows(part: list[Figure], family: str) -> list[tuple[Figure, str, JsonObject]]:
    """Every figure with its short name, without what its heading says or all relations have in
    common, and its bar; all bars of a kind have one scale."""
    low, high = _derived_scale(part)
    return [
        (
            figure,
            figure.subject.removeprefix(family) or figure.quantity,
            _part_of(figure, low, high),
        )
        for figure in part
    ]


def _derived_scale(part: list[Figure]) -> tuple[float, float]:
    """Both ends of the bars: 0 and 1 for shares, else all intervals and the line.

    Intervals with a note may reach far, as a tiny divisor makes them, and are cut off.
    """
    kind = part[0].kind
    if kind in SHARES:
        return 0.0, 1.0
    steady = [f for f in part if not f.note] or part
    low = min(LINES[kind], *(f.bounds.lower for f in steady))
    high = max(LINES[kind], *(f.bounds.upper for f in steady))
    return low, high


def _part_of(figure: Figure, low: float, high: float) -> JsonObject:
    """An interval, its estimate (None: outside) and the kind's line (None: none), as shares of the
    bar's length."""

    def place(value: float) -> float:
        return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0

    bounds, line = figure.bounds, LINES.get(figure.kind)
    return {
        "start": place(bounds.lower),
        "end": place(bounds.upper),
        "at": place(bounds.estimate) if low <= bounds.estimate <= high else None,
        "mark": None if line is None else place(line),
    }


# -- beliefs beside intervals ----------------------------------------------------------------------


FLAGS = 6
"""Disagreements that are listed before the reader asks for all."""


def disagreements_section(evidence: Evidence) -> Section | None:
    """Every raw mean and belief, and those that an interval rules out; None without intervals."""
    if evidence.certificate is None:
        return None
    found = evidence.standings
    believed = any(s.belief is not None for s in found)
    return Section.of(
        f"Raw means{' and beliefs' * believed} beside the certificate",
        "disagreements",
        "disagreements.html",
        targets=[s for _, part in ordered(found) for s in part],
        believed=believed,
        flags=[(s, *told) for s in found for told in s.beliefs_outside],
        most=FLAGS,
        span=span,
        adaptive=evidence.adaptive,
    )
