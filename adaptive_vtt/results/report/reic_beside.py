"""REIC: the audit's violation rates beside the published ones, relation by relation.

Source: Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE 2024),
Table I: 300 images each of MSCOCO and PASCAL VOC, three follow-ups per image and relation, with
people as judges. Its images and captioners are not ours to run: the figures are kept as printed.
"""

import pandas as pd

from .beside import Row, published_tables, table_of
from .evidence import Evidence
from .section import Section
from .target_status import Standing

FAMILY = "reic/"


def section(evidence: Evidence) -> Section | None:
    """None where no rate of one of REIC's relations, over all severities, is certified."""
    told = [(each, rates) for each in evidence.standings if (rates := _rates(each))]
    if not told:
        return None
    captioners = list(told[0][1])
    rows = (
        Row.of(str(each.id.relation), each, (rates[name] for name in captioners))
        for each, rates in told
    )
    return table_of("reic", rows, captioners)


def _rates(standing: Standing) -> dict[str, float]:
    target = standing.id
    if target.kind != "relation" or not (target.relation or "").startswith(FAMILY):
        return {}
    return violation_rates(str(target.relation).removeprefix(FAMILY))


def violation_rates(relation: str) -> dict[str, float]:
    """Captioner -> share of its follow-ups (Table I, case level, both sets of images) in which
    REIC reports a violation; ``relation``: "crop", "stretch" or "rotate", none for others."""
    stored = published_tables("reic")["I"]
    cases = pd.DataFrame(stored["rows"], columns=stored["columns"])
    cases = cases[(cases["level"] == "case") & (cases["relation"] == relation)]
    sums = cases.groupby("captioner", sort=False)[["TP", "FN", "FP", "TN"]].sum()
    shares = (sums["TP"] + sums["FP"]) / sums.sum(axis=1)
    return {str(name): float(share) for name, share in shares.items()}
