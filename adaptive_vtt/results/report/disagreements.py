"""What is merely believed of the targets, beside what is certified of them."""

from .evidence import Evidence
from .section import Section, fragment, percent, span
from .target_status import Standing, ordered

BELIEFS = {"raw": "the raw mean", "belief": "the answer GP’s belief"}
FLAGS = 6
"""Disagreements that are listed before the reader asks for all."""


def section(evidence: Evidence) -> Section | None:
    """Every raw mean and belief, and those that an interval rules out; None without intervals."""
    if evidence.certificate is None:
        return None
    found = evidence.standings
    html = fragment(
        "disagreements.html",
        targets=[s for _, part in ordered(found) for s in part],
        flags=[flag for s in found for flag in _flags(s)],
        most=FLAGS,
        span=span,
        adaptive=evidence.adaptive,
    )
    return Section("Raw means and beliefs beside the certificate", "disagreements", html)


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
