"""What is certified: an interval per target, as a bar and in figures."""

from collections import Counter
from dataclasses import dataclass

from ...journal.facts import CertificateFacts
from .evidence import Evidence
from .section import Section, aim, exact, fragment, shorten, span
from .target_status import Standing, ordered

LABEL = 40
"""Characters of a target's name beside its bar; longer names are cut short."""
STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Distances between the marks of the axis that are tried, the finest first."""
MARKS = 6
"""Marks of the axis, at most, beside 0."""


@dataclass(frozen=True)
class Bar:
    """A target's interval: where the bar starts, its length, and the estimate, as shares of the
    axis; ``cut`` where the interval reaches beyond the axis."""

    of: Standing
    label: str
    start: float
    length: float
    at: float
    cut: bool


def section(evidence: Evidence) -> Section | None:
    """Guarantee, an interval per target as a bar, all figures; None where nothing is certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    found = evidence.standings
    end, marks = _scale(found, certificate.at_most)
    html = fragment(
        "certified.html",
        certificate=certificate,
        width=certificate.half_width,
        limit=certificate.at_most,
        columns=_columns(certificate),
        span=span,
        targets=[s for _, part in ordered(found) for s in part],
        bars=_bars(found, certificate, end),
        end=end,
        marks=marks,
        failed=Counter(place for f in evidence.failures for place in f.targets),
        words=words(certificate),
        contradicted=any(s.contradicted for s in found),
        adaptive=evidence.adaptive,
        running=evidence.facts.ended is None,
    )
    return Section("Certified", "certified", html)


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


def _columns(certificate: CertificateFacts) -> list[tuple[str, str]]:
    """Headings of the table after the first, and what they mean."""
    width, limit = certificate.half_width, certificate.at_most
    aimed = [] if width is None else [("certified", f"the half-width is at most {aim(width)}")]
    side = "on which side the whole interval lies"
    if certificate.decides:
        side = "on which side the rate was decided to lie, by bets against the limit itself"
    decided = [] if limit is None else [(f"against {exact(limit)}", side)]
    return [
        ("questions", "of the target, in the whole space"),
        ("seen", "questions of the target answered"),
        ("estimate", "of its mean loss: draws and predictions, weighed by their precision"),
        ("by draws", "the estimate by the draws alone, which the choice does not bias"),
        ("interval", "certified; sorted by its upper end"),
        ("half-width", "half the length of the interval"),
        *aimed,
        *decided,
        ("variance ratio", "of these draws against as many uniform ones within the target"),
        ("uniform draws", "effective sample size: so many uniform draws would tell as much"),
        *([("more calls", "until the half-width is reached, roughly")] if aimed else []),
    ]


def _scale(found: list[Standing], limit: float | None) -> tuple[float, list[float]]:
    """Where the bars end, and the marks below: as far as what is settled reaches.

    An open interval may reach further, up to 1; it is cut off there, so that what little is known
    does not take the room of what is. Where nothing is settled all intervals are shown whole.
    """
    whole = not any(s.settled for s in found)
    reach = [s.upper if whole or s.settled else s.estimate for s in found]
    end = min(1.0, 1.06 * max([*reach, limit or 0, 0.02]))
    step = next(s for s in STEPS if end / s <= MARKS)
    return end, [k * step for k in range(1 + int(end / step + 1e-9))]


def _bars(
    found: list[Standing], certificate: CertificateFacts, end: float
) -> list[tuple[str, list[Bar]]]:
    """Per kind of target its heading and bars: what is settled first, then the highest rate."""
    return [
        (title, [_bar(s, end) for s in sorted(part, key=lambda s: (not s.settled, -s.estimate))])
        for title, part in ordered(found)
    ]


def _bar(standing: Standing, end: float) -> Bar:
    start, stop = (min(v / end, 1.0) for v in (standing.lower, standing.upper))
    return Bar(
        standing,
        shorten(standing.label, LABEL),
        start,
        stop - start,
        min(standing.estimate / end, 1.0),
        standing.upper > end,
    )
