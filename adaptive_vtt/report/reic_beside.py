"""REIC: the audit's violation rates beside the published ones, relation by relation."""

from .beside import Row
from .evidence import Evidence
from .reic_published import violation_rates
from .section import Section, fragment
from .target_status import Standing

FAMILY = "reic/"


def section(evidence: Evidence) -> Section | None:
    """None where no rate of one of REIC's relations, over all severities, is certified."""
    told = [(each, rates) for each in evidence.standings if (rates := _rates(each))]
    if not told:
        return None
    captioners = list(told[0][1])
    html = fragment(
        "reic_beside.html",
        rows=[
            Row.of(str(each.id.relation), each, (rates[name] for name in captioners))
            for each, rates in told
        ],
        models=captioners,
    )
    return Section("Beside REIC’s results", "reic-published", html)


def _rates(standing: Standing) -> dict[str, float]:
    target = standing.id
    if target.kind != "relation" or not (target.relation or "").startswith(FAMILY):
        return {}
    return violation_rates(str(target.relation).removeprefix(FAMILY))
