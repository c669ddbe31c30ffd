"""The worst figures, certified and raw, picked for a plain summary."""

from dataclasses import dataclass, replace

import pandas as pd

from .evidence import Evidence
from .section import FEW, amount
from .target_status import Standing

SIDES = 3
CHANGES = 2
CERTIFIED = 6
SOME = 0.005
"""Where a lower bound is below this, hardly anything is known to go wrong."""


@dataclass(frozen=True)
class Finding:
    """``wrong`` of ``questions`` about ``subject`` went wrong ``where``."""

    subject: str
    where: str
    wrong: int
    questions: int

    @property
    def rate(self) -> float:
        return self.wrong / self.questions


def certified_findings(evidence: Evidence) -> list[Standing]:
    """The targets of which most is known to go wrong: the highest lower bounds, worst first.

    Targets about everything come before. Those of which nothing is known, and contradicted ones,
    are left out.
    """
    sound = [s for s in evidence.standings if not s.contradicted]
    told = [s for s in sound if s.lower > 0 or s.upper < 1]
    solid = [s for s in told if s.lower >= SOME or s.kind == "overall"] or told
    solid.sort(key=lambda s: (s.kind != "overall", -s.lower, s.upper))
    return solid[:CERTIFIED]


def findings(evidence: Evidence) -> list[Finding]:
    """All questions together, then the highest error rates, worst first.

    Those are by side of a concept and by change of the image. Groups of fewer than FEW
    questions are passed over: their rates are mostly noise.
    """
    table = evidence.table.assign(wrong=evidence.table["loss"] >= 0.5)
    sides = [
        Finding(concept, "where it is present" if truth else "where it is absent", wrong, n)
        for (concept, truth), wrong, n in _groups(table, ["concept", "truth"])
    ]
    images = _groups(table, ["relation", "severity"])
    unchanged = [
        f" (unchanged images: {amount(w)} of {amount(n)})"
        for (r, _), w, n in images
        if r == "identity"
    ]
    where = "over all concepts" + "".join(unchanged)
    changes = [
        Finding(evidence.change(relation, severity), where, wrong, n)
        for (relation, severity), wrong, n in images
        if relation != "identity"
    ]
    if not len(table):
        return []
    if evidence.captioned:
        sides, changes = [], [replace(finding, where="over all images") for finding in changes]
    overall = Finding("All questions", "together", int(table["wrong"].sum()), len(table))
    return [overall, *_worst(sides, SIDES), *_worst(changes, CHANGES)]


def _groups(table: pd.DataFrame, by: list[str]) -> list[tuple[tuple[str, int], int, int]]:
    parts = table.groupby(by, sort=False)["wrong"].agg(["sum", "count"])
    return [((str(a), int(b)), int(wrong), int(n)) for (a, b), wrong, n in parts.itertuples()]


def _worst(found: list[Finding], most: int) -> list[Finding]:
    solid = [f for f in found if f.questions >= FEW and f.wrong]
    return sorted(solid, key=lambda f: f.rate, reverse=True)[:most]
