"""The first screen: the error rate, or the difference of those of two models; its cost, the highest
error rates, and the next steps.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from ...certify.further import longest
from ...certify.status import Compared, calls_of
from ...oracles.base import error_of
from ...utils.figures import POINT, is_exact
from ..advice import Names, Step, in_money, next_steps, steps_of_two, to_decide
from ..difference import DECISIONS, WHOLE, brief, names_of
from ..opening import CHANGED, WIDE, opening
from ..outcomes import FAILED, wilson
from .evidence import Evidence, Failure, Standing
from .gallery import Picture, picture
from .rates import axis
from .section import FEW, Section, amount, estimated, percent, span, within

OPEN = 4
"""Open targets that are named, at most."""
WORST = 3
"""Groups that are shown."""
PICTURED = 2
"""Pictures of each."""
AROUND = 4
"""Marks of the axis of differences to either side of 0, at most."""
SOME = 0.005
"""Groups with a lower bound below this are not among the worst."""


class Group(NamedTuple):
    """Questions of one kind, and their error rate.

    Attributes:
        rate, basis: The rate, and the answers it rests on, in words.
        lower, upper: Ends of the bar, as shares.
        query: The filter of the gallery.
        failing: Number of wrong calls.
        failures: Those that the page lists, the surest mistakes first.
    """

    name: str
    rate: str
    basis: str
    lower: float
    upper: float
    query: str
    failing: int
    failures: list[Failure]


def verdict_section(evidence: Evidence) -> Section:
    """Show verdict, cost, worst groups and next steps."""
    groups, concepts_are, asked = worst(evidence), evidence.space.concepts_are, evidence.table
    if concepts_are == "classes":  # as in ``certify.targets.selected``
        asked = asked[asked["truth"] == 1]
    first, every = first_rates(evidence) if evidence.certificate else (None, None)
    return evidence.section(
        "Verdict",
        "verdict",
        "headline.html",
        first=first,
        every=every,
        original=first is not None and first.place == (opening(evidence.facts) or [-1])[0],
        unknown=first and (first.lower, first.upper) == (-1 if first.id.signed else 0, 1),
        vague=first and first.upper - first.lower > WIDE,
        changed=CHANGED,
        raw_rate=error_of(concepts_are, evidence.settings.oracle.rates),
        asked=len(asked),
        wrong=int((asked["loss"] >= FAILED).sum()),
        settled=sum(s.settled for s in evidence.standings),
        worst=list(zip(groups, pictured(groups), strict=True)),
        steps=shown_steps(evidence),
    )


def first_rates(evidence: Evidence) -> tuple[Standing, Standing | None]:
    """Return the target of the first sentence, and the one that adds all changes to it, or None.

    In order of preference it is that of the original images, that of all questions, or the worst
    one; of drops the largest.
    """
    rows = evidence.standings
    by_place: dict[int | None, Standing] = {s.place: s for s in rows}
    plain, every = map(by_place.get, opening(evidence.facts) or (None, None))
    if plain is not None and plain.upper - plain.lower <= (WIDE if every else 1 - POINT):
        return plain, every
    if rows[0].id.signed:
        return max(rows, key=lambda s: (s.upper - s.lower < 2, s.estimate, s.lower)), None
    whole = next((s for s in rows if s.kind == "overall"), None)
    return whole or max(rows, key=lambda s: (s.lower, s.estimate)), None


# -- next steps ------------------------------------------------------------------------------------


def shown_steps(evidence: Evidence) -> list[Step]:
    """Return the next steps; where an audit continues, the first names open targets, and the calls
    that they take."""
    open_ = [s for s in evidence.standings if not s.settled]
    if not open_:
        return next_steps(evidence.run, names(evidence))
    open_.sort(key=lambda s: -s.half_width)
    named = ", ".join(f"{s.name} ({within(s.half_width)})" for s in open_[:OPEN])
    more = f" and {amount(len(open_) - OPEN)} more" if len(open_) > OPEN else ""
    further = longest(s.more_calls for s in open_)
    takes = "no forecast of the calls that takes yet"
    if further is not None:
        which = "it" if len(open_) == 1 else "all of them"
        drawn = len(evidence.draws) + len(evidence.sources)
        cost = in_money(further, evidence.cost, drawn, evidence.facts.currency)
        takes = f"{which} would take {further} more calls{cost}"
    return next_steps(evidence.run, names(evidence), f"still open: {named}{more}; {takes}")


def names(evidence: Evidence) -> Names:
    """Return the names by which commands of a page call its run."""
    return Names(evidence.folder, evidence.spec, head=evidence.head)


# -- the highest error rates -----------------------------------------------------------------------


def worst(evidence: Evidence) -> list[Group]:
    """Return the groups with the highest lower bounds, worst first.

    The target about everything, lower bounds near 0 and emptied intervals are left out.
    """
    if evidence.certificate is None:
        return raw_groups(evidence)[:WORST]
    if evidence.certificate.drops:
        return []
    rows = evidence.standings
    known = [s for s in rows if s.kind != "overall" and s.lower >= SOME and not s.emptied]
    return [
        Group(
            s.name,
            estimated(s.estimate, s.lower, s.upper),
            span(s.lower, s.upper) + ("" if s.settled else ", still open"),
            s.lower,
            s.upper,
            f"target={s.place}",
            evidence.failing[s.place],
            [f for f in evidence.failures if s.place in f.targets],
        )
        for s in sorted(known, key=lambda s: -s.lower)[:WORST]
    ]


def raw_groups(evidence: Evidence) -> list[Group]:
    """Return sides of concepts and changes of the image, by the lower end of Wilson's interval.

    So a large sample comes before a small one with the same rate. Groups of fewer than FEW
    questions, and those without a mistake, are left out.
    """
    table = evidence.counted.assign(wrong=evidence.counted["loss"] >= FAILED)
    parts: list[tuple[str, str, Any]] = []
    # the stubs know no tuples as keys of groups
    sides: Any = table.groupby(["concept", "truth"], sort=False)
    for (concept, truth), part in sides if evidence.sided else ():
        name = f"{concept}, where it is {'present' if truth else 'absent'}"
        parts.append((name, f"concept={evidence.concepts.index(concept)}&truth={truth}", part))
    changes: Any = table.groupby(["relation", "severity"], sort=False)
    for (relation, severity), part in changes:
        query = f"relation={evidence.relations.index(relation)}&severity={severity}"
        parts.append((evidence.change(relation, severity), query, part))
    groups = []
    for name, query, part in parts:
        bad, count = int(part["wrong"].sum()), len(part)
        if count >= FEW and bad:
            wrong = set(part.loc[part["wrong"], "question"])
            met = [f for f in evidence.failures if any(a.question in wrong for a in f.mistakes)]
            basis = f"{amount(bad)} of {amount(count)} questions, not certified"
            rate = percent(bad / count), basis, *wilson(bad, count)
            groups.append(Group(name, *rate, query, len(met), met))
    return sorted(groups, key=lambda g: -g.lower)


def pictured(groups: Sequence[Group]) -> list[list[tuple[Picture, Failure]]]:
    """Return per group the follow-ups of its surest mistakes. Samples that no earlier group shows
    come first, and one of each."""
    seen, shown = set[str](), list[list[tuple[Picture, Failure]]]()
    for group in groups:
        kept = [(f, f.pictures[1]) for f in group.failures if f.pictures]
        first = {f.sample: f for f, _ in reversed(kept)}
        kept.sort(key=lambda each: (each[0].sample in seen, each[0] is not first[each[0].sample]))
        best = kept[:PICTURED]
        seen.update(f.sample for f, _ in best)
        shown.append([(picture(png), failure) for failure, png in best])
    return shown


# -- two models ------------------------------------------------------------------------------------


def versus_section(evidence: Evidence) -> Section:
    """Show the first screen: which model has fewer errors, by how much, and the calls."""
    rows, facts, sources = evidence.run.compared, evidence.facts, len(evidence.sources)
    calls = calls_of(evidence.certificate, evidence.draws, evidence.calls, sources, facts.known_a)
    return evidence.section(
        "Verdict",
        "verdict",
        "versus.html",
        row=rows[0],
        decided_count=sum(row.decision != "open" for row in rows),
        count=len(rows),
        models=names_of(facts),
        calls_of=calls,
        steps=_versus_steps(evidence),
    )


def differences_section(evidence: Evidence) -> Section | None:
    """Show a bar around 0 for every difference of two models, its margin shaded, or for every drop
    under a relation; and a table of the answers that they rest on."""
    certificate, rows, margin = evidence.certificate, evidence.run.compared, 0.0
    if certificate is None:
        return None
    if certificate.versus is None:
        rows = [
            Compared(
                s.name, -s.estimate, -s.upper, -s.lower, "" if s.settled else "open", s.questions
            )
            for s in evidence.standings
        ]
    columns = {"target": [r.target for r in rows], "questions": [r.questions for r in rows]}
    if certificate.paired:
        columns["disagree"] = [percent(row.disagreement) for row in rows]
    if certificate.versus is not None:
        margin = certificate.versus.margin
        columns["calls of the old model"] = [row.calls_a for row in rows]
        columns["calls of the new model"] = [row.calls_b for row in rows]
    end, marks = axis([max(-row.lower, row.upper) for row in rows], margin, AROUND)
    names = names_of(evidence.facts)
    return evidence.section(
        "Differences",
        "differences",
        differences=rows,
        end=end,
        marks=[*(-mark for mark in marks[:0:-1]), *marks],
        margin=margin,
        columns=pd.DataFrame(columns),
        whole=all(is_exact(row.lower, row.upper) for row in rows) and WHOLE,
        names=names,
        decisions={k: words.format(b=brief(names[1])) for k, words in DECISIONS.items()},
        rate=certificate.ids[0].rate,
    )


def _versus_steps(evidence: Evidence) -> list[Step]:
    """Return the next steps; the first says how many more calls would decide what is open."""
    _, further = to_decide(evidence.run)
    takes = "this continues" if further is None else f"{further} more calls would decide it"
    return steps_of_two(evidence.run, names(evidence), why=f"still open: {takes}")
