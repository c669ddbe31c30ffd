"""What drove the cost: how long each target stayed open."""

from .certified import words
from .evidence import Evidence
from .section import Section, amount, fragment
from .target_status import Standing


def section(evidence: Evidence) -> Section | None:
    """Calls until each target was settled, longest first; None where nothing is certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    calls = len(evidence.history[0].lower) - 1
    found = sorted(evidence.standings, key=lambda s: _order(s, calls))
    html = fragment(
        "cost.html",
        targets=found,
        calls=calls,
        asked=len(evidence.table),
        words=words(certificate),
        summary=_summary(found, calls),
    )
    return Section("What took longest", "slowest", html)


def _order(standing: Standing, calls: int) -> tuple[float, float]:
    """Open ones first, the widest of them on top; then the last to be settled."""
    moment = calls + 1 if standing.settled_at is None else standing.settled_at
    return (-moment, -standing.half_width)


def _summary(found: list[Standing], calls: int) -> str:
    """How much of the audit went into the targets that took longest."""
    open_ = sum(not s.settled for s in found)
    if open_:
        return f"{amount(open_)} of {amount(len(found))} targets are still open."
    moments = sorted((s.settled_at or 0 for s in found), reverse=True)
    if len(moments) < 2:
        return f"It took {amount(moments[0])} calls."
    half = sorted(moments)[(len(moments) - 1) // 2]
    return (
        f"Half of the targets were done after {amount(half)} calls, the last one after "
        f"{amount(moments[0])}."
    )
