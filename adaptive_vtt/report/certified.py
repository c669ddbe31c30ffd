"""What is certified: an interval per target, beside what is merely believed of it."""

from typing import Any

from ..journal.facts import CertificateFacts
from .evidence import Evidence
from .section import Section, data, figure, fragment, percent, plot_text, shorten, span
from .target_status import Standing, ordered

LABEL = 26
"""Characters of a target's name beside the chart; longer names are cut short."""
FLAGS = 6
"""Disagreements that are listed before the reader asks for all."""
BELIEFS = {"raw": "the raw mean", "belief": "the answer GP’s belief"}


def section(evidence: Evidence) -> Section | None:
    """Guarantee, chart, disagreements, table; None where nothing is certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    found = evidence.standings
    html = fragment(
        "certified.html",
        certificate=certificate,
        width=certificate.half_width,
        limit=certificate.at_most,
        columns=_columns(certificate),
        span=span,
        targets=[s for _, part in ordered(found) for s in part],
        flags=[flag for s in found for flag in _flags(s)],
        most=FLAGS,
        words=words(certificate),
        settings=evidence.settings,
        adaptive=evidence.adaptive,
        size=evidence.facts.space.size,
        running=evidence.facts.ended is None,
        contradicted=any(s.contradicted for s in found),
        believed=any(s.belief is not None for s in found),
        data=data("certified-data", _chart(evidence, certificate)),
    )
    return Section("Certified", "certified", html)


def words(certificate: CertificateFacts) -> dict[str, str]:
    """The aim of this audit in words, and what its targets are called once there and before."""
    width, limit = certificate.half_width, certificate.at_most
    aims = []
    if width is not None:
        aims.append(f"an interval of at most ±{width:g}")
    if limit is not None:
        side = f"on one side of {limit:g}"
        aims.append(f"a decision {side}" if certificate.decides else f"an interval {side}")
    wide = [] if width is None else ["wider than asked"]
    lacking = " or ".join(wide + ([] if limit is None else ["open"]))
    return {"aim": " and ".join(aims), "done": certificate.done, "open": lacking}


def _columns(certificate: CertificateFacts) -> list[tuple[str, str]]:
    """Headings of the table after the first, and what they mean."""
    width, limit = certificate.half_width, certificate.at_most
    aimed = [] if width is None else [("certified", f"the half-width is at most {width:g}")]
    side = "on which side the whole interval lies"
    if certificate.decides:
        side = "on which side the rate was decided to lie, by bets against the limit itself"
    decided = [] if limit is None else [(f"against {limit:g}", side)]
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


def _flags(standing: Standing) -> list[dict[str, str]]:
    """Every belief about a target that its interval rules out, as parts of a sentence."""
    return [
        {
            "name": standing.name,
            "what": BELIEFS[what],
            "value": percent(value),
            "where": where,
            "span": span(standing.lower, standing.upper),
            "why": _why(what, where),
        }
        for what, value, where in standing.astray
    ]


def _why(what: str, where: str) -> str:
    if what == "belief":
        return "it blurs answers, also over the line between absent and present"
    return f"the questions chosen were {'harder' if where == 'above' else 'easier'} than the rest"


def _chart(evidence: Evidence, certificate: CertificateFacts) -> dict[str, Any]:
    """Rows from top to bottom: headings, and targets with their figures."""
    rows: list[dict[str, Any]] = []
    told = words(certificate)
    for title, part in ordered(evidence.standings):
        rows.append({"heading": title})
        rows += [_row(s, told["done" if s.settled else "open"]) for s in part]
    return {"rows": rows, "limit": certificate.at_most}


def _row(standing: Standing, state: str) -> dict[str, Any]:
    return {
        "state": "contradicted" if standing.contradicted else state,
        "label": plot_text(shorten(standing.label, LABEL)),
        "name": plot_text(standing.name),
        "span": span(standing.lower, standing.upper),
        "seen": f"{standing.questions:,} of {standing.size:,}",
        "settled": standing.settled,
        "astray": bool(standing.astray),
        **{k: getattr(standing, k) for k in ("lower", "upper", "estimate", "raw", "belief")},
        "shown": [figure(v) for v in (standing.estimate, standing.raw, standing.belief)],
    }
