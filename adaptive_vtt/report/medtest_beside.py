"""MedTest: the audit's error rates beside the published ones, relation by relation."""

from ..types import IDENTITY
from .beside import Row
from .evidence import Evidence
from .medtest_published import FAMILY, SEGMENTERS, rates
from .section import Section, fragment


def section(evidence: Evidence) -> Section | None:
    """None where nothing is certified, or nothing was published of such questions."""
    if not evidence.standings or not _all_of_medtest(evidence):
        return None
    oracle = evidence.settings.oracle
    told = [
        (each, rates(each.id, evidence.concepts, oracle.name, oracle.metric))
        for each in evidence.standings
    ]
    models = list(dict.fromkeys(model for _, known in told for model in known))
    if not models:
        return None
    html = fragment(
        "medtest_beside.html",
        rows=[Row.of(each.id.name, each, map(known.get, models)) for each, known in told if known],
        models=models,
        segmentation=models[0] in SEGMENTERS,
    )
    return Section("Beside MedTest’s results", "medtest-published", html)


def _all_of_medtest(evidence: Evidence) -> bool:
    relations = {relation for relation, _ in evidence.variants} - {IDENTITY}
    return bool(relations) and all(name.startswith(FAMILY) for name in relations)
