"""The first screen: how much goes wrong, what that cost, where it is worst, what to do next."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...certify.further import longest
from ...journal.facts import CertificateFacts
from ...oracles.base import error_of
from ...utils.figures import POINT
from ..advice import Names, Step, in_money, next_steps
from ..opening import CHANGED, ORIGINAL, READABLE, WIDE, opening
from ..outcomes import FAILED, wilson
from .beside_journal import BASELINE_NAMES
from .evidence import Evidence, Failure, Standing
from .pictures import Picture, picture
from .section import FEW, Section, amount, beside, exact, percent, span, within

OPEN = 4
"""Open targets that are named, at most."""
WORST = 3
"""Groups that are shown."""
PICTURED = 2
"""Pictures of each."""
SOME = 0.005
"""Where a lower bound is below this, hardly anything is known to go wrong."""


class Verdict(NamedTuple):
    """``before`` the ``figure`` and ``after`` it stand in large type, ``sure`` beneath."""

    before: str
    figure: str
    after: str
    sure: str


class Group(NamedTuple):
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


def section(evidence: Evidence) -> Section:
    """Show verdict, cost, worst groups and next steps."""
    groups = worst(evidence)
    return Section.of(
        evidence,
        "Verdict",
        "verdict",
        "headline.html",
        verdict=verdict(evidence),
        settled=sum(s.settled for s in evidence.standings),
        worst=list(zip(groups, pictured(groups), strict=True)),
        steps=shown_steps(evidence),
        baseline_names=BASELINE_NAMES,
    )


# -- verdict ---------------------------------------------------------------------------------------


def verdict(evidence: Evidence) -> Verdict:
    """Return how much goes wrong. Certified where anything is: the error on images as they are,
    which people come for, and that with all changes; else that of all, or of the worst target. Raw
    where nothing is certified."""
    certificate, rows = evidence.certificate, evidence.standings
    if certificate is None:
        return _raw_verdict(evidence)
    places, by_place = opening(evidence.facts), {s.place: s for s in rows}
    plain = None if places is None else by_place.get(places.plain)
    every = None if places is None or places.whole is None else by_place.get(places.whole)
    whole = next((s for s in rows if s.kind == "overall"), None)
    if plain is not None and (not _is_vague(plain) or (every is None and not _is_unknown(plain))):
        standing = plain
        after = ORIGINAL.replace("your", f"your {amount(evidence.space.samples)}")
    else:
        standing = whole or max(rows, key=lambda s: (s.lower, s.estimate))
        every, after = None, _of_all(evidence, standing)
    if _is_unknown(standing):
        return Verdict("", "Nothing is known yet", "", "no answer has narrowed an interval down")
    parts = _beneath(evidence, certificate, standing)
    if _is_vague(standing):
        before, figure = (
            f"Hardly known yet: {standing.id.rate}",
            span(standing.lower, standing.upper),
        )
        return Verdict(before, figure, after, "; ".join(parts))
    figure, beneath = _shown(standing)
    if every is not None:
        more, below = _shown(every)
        after += f"; {more} {CHANGED}"
        beneath += f"; {CHANGED} {below}"
    return Verdict(_capital(standing.id.rate), figure, after, "; ".join([beneath, *parts]))


def _of_all(evidence: Evidence, standing: Standing) -> str:
    """Return what a target is about, as it follows its rate."""
    space, count = evidence.space, len(evidence.standings)
    if standing.kind != "overall":
        worst = f", the worst of {amount(count)} targets"
        only = count == 1 or _is_vague(standing)
        return f"over the questions {standing.id.about}{'' if only else worst}"
    asked = {"labels": "labels", "classes": "images"}.get(space.concepts_are, "questions")
    after = f"over all {amount(standing.size)} {asked}"
    if space.concepts_are == "classes" and space.samples < standing.size:
        after += f", made of {amount(space.samples)}"
    return after


def _beneath(evidence: Evidence, certificate: CertificateFacts, standing: Standing) -> list[str]:
    """Return what stands beneath a rate: the share of images with any wrong label, what a constant
    answer would have, what is missing, how sure."""
    parts, count = [], len(evidence.standings)
    if standing.any_wrong is not None:
        parts.append(f"any label wrong in {percent(standing.any_wrong)} of the images")
    if constant := standing.baseline:
        parts.append(f"answering {constant.answer!r} every time: {percent(constant.rate)}")
    if certificate.counted:
        return [*parts, "as every question is asked"]
    together = f"all {amount(count)} intervals at once"
    if count == 1:
        together = "at every moment"
    elif certificate.guarantee == "each":
        together = f"each of {amount(count)} intervals by itself"
    return [*parts, f"{exact(certificate.confidence)} sure", together]


def _shown(standing: Standing) -> tuple[str, str]:
    """Return what stands in large type, and what beneath: the estimate, or the interval if it is
    wide."""
    width, interval = standing.upper - standing.lower, span(standing.lower, standing.upper)
    estimate = _estimate(standing)
    if width > READABLE:
        return interval, f"most likely {estimate}"
    return estimate, "exact" if width <= POINT else interval


def _is_vague(standing: Standing) -> bool:
    return standing.upper - standing.lower > WIDE


def _is_unknown(standing: Standing) -> bool:
    return (standing.lower, standing.upper) == (0, 1)


def _estimate(standing: Standing) -> str:
    return beside(standing.estimate, standing.lower, standing.upper)


def _capital(rate: str) -> str:
    return f"{rate[0].upper()}{rate[1:]}"


def _raw_verdict(evidence: Evidence) -> Verdict:
    concepts_are, unit, units = evidence.space.concepts_are, evidence.table, "questions"
    if concepts_are == "classes":  # as in ``certify.targets.selected``
        unit, units = unit[unit["truth"] == 1], "images"
    asked, wrong = len(unit), int((unit["loss"] >= FAILED).sum())
    if not asked:
        return Verdict("", "Nothing is known yet", "", "no question has been answered and judged")
    why = "without a guarantee"
    if evidence.adaptive:
        why += ", as the questions were chosen adaptively"
    counted = f"{amount(wrong)} of {amount(asked)} {units}: a raw figure, {why}"
    rate = _capital(error_of(concepts_are, evidence.settings.oracle.rates))
    return Verdict(rate, percent(wrong / asked), "of what was asked", counted)


# -- next steps ------------------------------------------------------------------------------------


def shown_steps(evidence: Evidence) -> list[Step]:
    """Return what to do next; where an audit goes on, the first says which targets are open, and
    how many calls that takes."""
    open_ = [s for s in evidence.standings if not s.settled]
    if not open_:
        return next_steps(evidence.run, names(evidence))
    open_.sort(key=lambda s: -s.half_width)
    named = ", ".join(f"{s.name} ({within(s.half_width)})" for s in open_[:OPEN])
    more = f" and {amount(len(open_) - OPEN)} more" if len(open_) > OPEN else ""
    further = longest(s.more_calls for s in open_)
    takes = "how many more calls that takes cannot be told yet"
    if further is not None:
        which = "it" if len(open_) == 1 else "all of them"
        drawn = len(evidence.draws) + len(evidence.sources)
        cost = in_money(further, evidence.cost, drawn, evidence.facts.currency)
        takes = f"{which} would take {further} more calls{cost}"
    return next_steps(evidence.run, names(evidence), f"still open: {named}{more}; {takes}")


def names(evidence: Evidence) -> Names:
    """Return how commands of a page name its run."""
    return Names(evidence.folder, evidence.spec, head=evidence.head)


# -- where most goes wrong -------------------------------------------------------------------------


def worst(evidence: Evidence) -> list[Group]:
    """Return the groups with the highest lower bounds, worst first; those about everything left
    out, and those of which hardly anything is known to go wrong, or whose interval is emptied."""
    if evidence.certificate is None:
        return raw_groups(evidence)[:WORST]
    known = [
        s for s in evidence.standings if s.kind != "overall" and s.lower >= SOME and not s.emptied
    ]
    return [
        Group(
            s.name,
            _estimate(s),
            span(s.lower, s.upper) + ("" if s.settled else ", still open"),
            s.lower,
            s.upper,
            f"target={s.place}",
            [f for f in evidence.failures if s.place in f.targets],
        )
        for s in sorted(known, key=lambda s: -s.lower)[:WORST]
    ]


def raw_groups(evidence: Evidence) -> list[Group]:
    """Return sides of concepts and changes of the image, by the lower end of Wilson's interval.

    A small sample with a high rate so comes after a large one. Groups of fewer than FEW
    questions, and those without a mistake, are left out.
    """
    table, groups = evidence.counted, list[Group]()
    table = table.assign(wrong=table["loss"] >= FAILED)

    def add(name: str, part: Any, query: str) -> None:
        bad, count = int(part["wrong"].sum()), len(part)
        if count >= FEW and bad:
            basis = f"{amount(bad)} of {amount(count)} questions, not certified"
            wrong = set(part.loc[part["wrong"], "question"])
            met = [f for f in evidence.failures if any(a.question in wrong for a in f.mistakes)]
            groups.append(Group(name, percent(bad / count), basis, *wilson(bad, count), query, met))

    if evidence.answers.sided:
        sides: Any = table.groupby(["concept", "truth"], sort=False)  # the stubs know no tuples
        for (concept, truth), part in sides:
            name = f"{concept}, where it is {'present' if truth else 'absent'}"
            add(name, part, f"concept={evidence.place_of[concept]}&truth={truth}")
    changes: Any = table.groupby(["relation", "severity"], sort=False)
    for (relation, severity), part in changes:
        query = f"relation={evidence.relations.index(relation)}&severity={severity}"
        add(evidence.change(relation, severity), part, query)
    return sorted(groups, key=lambda g: -g.sure)


def pictured(groups: Sequence[Group]) -> list[list[tuple[Picture, str, int]]]:
    """Return per group the follow-ups of its surest mistakes: picture, words and call.

    Of samples that no group before has shown, as long as there are; of each sample one first.
    """
    seen: set[str] = set()
    shown = []
    for group in groups:
        kept = [f for f in group.failures if f.pictures]
        first = {f.sample: f for f in reversed(kept)}
        kept.sort(key=lambda f: (f.sample in seen, f is not first[f.sample]))
        seen.update(f.sample for f in kept[:PICTURED])
        shown.append(
            [
                (picture(f.pictures[1]), f"{f.sample}, {f.change}", f.call)
                for f in kept[:PICTURED]
                if f.pictures
            ]
        )
    return shown
