"""Where most is known to go wrong: certified groups first, raw ones where nothing is certified."""

import math
from dataclasses import dataclass
from typing import Any

from .album import Picture, picture
from .evidence import Evidence
from .failures import Failure
from .section import FEW, amount, percent, span
from .target_status import Standing

WORST = 3
"""Groups that are shown."""
SHOWN = 2
"""Pictures of each."""
SOME = 0.005
"""Where a lower bound is below this, hardly anything is known to go wrong."""
Z = 1.96
"""Standard deviations of a 95 % interval of Wilson's."""


@dataclass(frozen=True)
class Group:
    """Questions of one kind, and how often they go wrong.

    ``rate`` and ``basis`` say so in words. ``sure`` and ``perhaps``: the ends of the bar, shares:
    so much goes wrong at least, and at most. ``query``: what the gallery filters by; ``failures``:
    the calls that went wrong there, the surest mistakes first.
    """

    name: str
    rate: str
    basis: str
    sure: float
    perhaps: float
    query: str
    failures: list[Failure]


def worst(evidence: Evidence) -> list[Group]:
    """The groups with the highest lower bounds, worst first; those about everything left out."""
    if evidence.certificate is None:
        return raw_groups(evidence)[:WORST]
    several = [s for s in evidence.standings if s.kind != "overall" and _known(s)]
    return [_certified(evidence, s) for s in sorted(several, key=lambda s: -s.lower)[:WORST]]


def _known(standing: Standing) -> bool:
    """Whether more than hardly anything is known to go wrong, and nothing contradicts it."""
    return standing.lower >= SOME and not standing.contradicted


def raw_groups(evidence: Evidence) -> list[Group]:
    """Sides of concepts and changes of the image, by the lower end of Wilson's interval.

    A small sample with a high rate so comes after a large one. Groups of fewer than FEW
    questions, and those without a mistake, are left out.
    """
    table = evidence.counted.assign(wrong=evidence.counted["loss"] >= 0.5)
    found = []
    if evidence.sided:
        for concept, truth, bad, n in _counts(table, ["concept", "truth"]):
            name = f"{concept}, where it is {'present' if truth else 'absent'}"
            query = f"concept={evidence.concepts.index(concept)}&truth={truth}"
            met = [f for f in evidence.failures if f.about(concept, truth)]
            found.append(_raw(name, bad, n, query, met))
    for relation, severity, bad, n in _counts(table, ["relation", "severity"]):
        query = f"relation={evidence.relations.index(relation)}&severity={severity}"
        met = [f for f in evidence.failures if (f.relation, f.severity) == (relation, severity)]
        found.append(_raw(evidence.change(relation, severity), bad, n, query, met))
    return sorted((g for g in found if g is not None), key=lambda g: -g.sure)


def wilson(wrong: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share (Wilson, 1927), as if questions were drawn evenly."""
    share, square = wrong / count, Z * Z / count
    centre = (share + square / 2) / (1 + square)
    reach = Z * math.sqrt(share * (1 - share) / count + square / (4 * count)) / (1 + square)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def _counts(table: Any, by: list[str]) -> list[tuple[str, int, int, int]]:
    parts = table.groupby(by, sort=False)["wrong"].agg(["sum", "count"])
    return [(str(a), int(b), int(wrong), int(n)) for (a, b), wrong, n in parts.itertuples()]


def _raw(name: str, bad: int, count: int, query: str, met: list[Failure]) -> Group | None:
    if count < FEW or not bad:
        return None
    basis = f"{amount(bad)} of {amount(count)} questions, not certified"
    return Group(name, percent(bad / count), basis, *wilson(bad, count), query, met)


def _certified(evidence: Evidence, standing: Standing) -> Group:
    met = [f for f in evidence.failures if standing.place in f.targets]
    basis = span(standing.lower, standing.upper)
    if not standing.settled:
        basis += ", still open"
    return Group(
        standing.name,
        percent(standing.estimate),
        basis,
        standing.lower,
        standing.upper,
        f"target={standing.place}",
        met,
    )


def pictured(groups: list[Group]) -> list[list[tuple[Picture, str, int]]]:
    """Per group the follow-ups of its surest mistakes: picture, words and call.

    Of samples that no group before has shown, as long as there are.
    """
    seen: set[str] = set()
    found = []
    for group in groups:
        kept = [f for f in group.failures if f.pictures]
        chosen = sorted(_firsts(kept), key=lambda f: f.sample in seen)[:SHOWN]
        seen.update(f.sample for f in chosen)
        found.append(
            [
                (picture(f.pictures[1]), f"{f.sample}, {f.change}", f.call)
                for f in chosen
                if f.pictures
            ]
        )
    return found


def _firsts(failures: list[Failure]) -> list[Failure]:
    """The first of every sample, then the others."""
    first = {f.sample: f for f in reversed(failures)}
    return sorted(failures, key=lambda f: f is not first[f.sample])
