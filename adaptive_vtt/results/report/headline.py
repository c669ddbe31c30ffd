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
from ..difference import DECISIONS, WHOLE, brief, extent, names_of, point_span, points, wrong_more
from ..opening import CHANGED, ORIGINAL, READABLE, WIDE, opening
from ..outcomes import FAILED, wilson
from .evidence import Evidence, Failure, Standing, capital
from .gallery import Picture, picture
from .rates import axis
from .section import FEW, THIN, Section, amount, estimated, exact, percent, span, within

OPEN = 4
"""Open targets that are named, at most."""
WORST = 3
"""Groups that are shown."""
PICTURED = 2
"""Pictures of each."""
EVERYTHING = "every question was asked, so every drop is exact"
AROUND = 4
"""Marks of the axis of differences to either side of 0, at most."""
SOME = 0.005
"""Groups with a lower bound below this are not among the worst."""


class Verdict(NamedTuple):
    """A figure in large type, with the words before and after it, and a line beneath."""

    before: str
    figure: str
    after: str
    sure: str


class Group(NamedTuple):
    """Questions of one kind, and their error rate.

    Attributes:
        rate, basis: The rate, and the answers it rests on, in words.
        lower, upper: Ends of the bar, as shares.
        query: The filter of the gallery.
        failures: Wrong calls, the surest mistakes first.
    """

    name: str
    rate: str
    basis: str
    lower: float
    upper: float
    query: str
    failures: list[Failure]


def verdict_section(evidence: Evidence) -> Section:
    """Show verdict, cost, worst groups and next steps."""
    groups = worst(evidence)
    return evidence.section(
        "Verdict",
        "verdict",
        "headline.html",
        verdict=verdict(evidence),
        settled=sum(s.settled for s in evidence.standings),
        worst=list(zip(groups, pictured(groups), strict=True)),
        steps=shown_steps(evidence),
    )


# -- verdict ---------------------------------------------------------------------------------------


def verdict(evidence: Evidence) -> Verdict:
    """Return the error rate of the first screen.

    In order of preference it is the certified rate on original images with that under all changes,
    the certified rate of all questions, or that of the worst target. Without a certificate it is
    the raw rate.
    """
    if evidence.certificate is None:
        return _raw_verdict(evidence)
    if evidence.certificate.drops:
        return _drop_verdict(evidence)
    rows, places = evidence.standings, opening(evidence.facts) or (None, None)
    by_place: dict[int | None, Standing] = {s.place: s for s in rows}
    plain, every = (by_place.get(place) for place in places)
    if plain is not None and (not _is_vague(plain) or (every is None and not _is_unknown(plain))):
        standing = plain
        after = ORIGINAL.replace("your", f"your {amount(evidence.space.samples)}")
    else:
        whole = next((s for s in rows if s.kind == "overall"), None)
        standing = whole or max(rows, key=lambda s: (s.lower, s.estimate))
        every, after = None, _about(evidence, standing)
    if _is_unknown(standing):
        return Verdict("", "Nothing is known yet", "", "no answer has narrowed an interval down")
    rate, parts = standing.id.rate, _beneath(evidence, standing)
    if _is_vague(standing):
        interval = span(standing.lower, standing.upper)
        return Verdict(f"Hardly known yet: {rate}", interval, after, "; ".join(parts))
    figure, beneath = _shown(standing)
    if every is not None:
        more, below = _shown(every)
        after += f"; {more} {CHANGED}"
        beneath += f"; {CHANGED} {below}"
    return Verdict(capital(rate), figure, after, "; ".join([beneath, *parts]))


def _drop_verdict(evidence: Evidence) -> Verdict:
    """Return the largest drop."""
    rows = evidence.standings
    worst = max(rows, key=lambda s: (s.estimate, s.lower))
    if all((s.lower, s.upper) == (-1, 1) for s in rows):
        return Verdict("", "Nothing is known yet", "", "no answer has narrowed an interval down")
    which = f", the largest drop of {amount(len(rows))}" if len(rows) > 1 else ""
    unit = "" if is_exact(worst.lower, worst.upper) else f"{THIN}points"
    ends = f"{point_span(worst.lower, worst.upper)}{unit}"
    return Verdict(
        f"{capital(worst.id.rate)} {'rises' if worst.estimate >= 0 else 'falls'} by",
        f"{100 * abs(worst.estimate):.1f}{THIN}points",
        f"under {worst.label}{which}",
        "; ".join([ends, *_beneath(evidence, worst)]),
    )


def _about(evidence: Evidence, standing: Standing) -> str:
    """Return words for the questions of a target, to follow its rate."""
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


def _beneath(evidence: Evidence, standing: Standing) -> list[str]:
    """Return the line beneath a rate in parts: images with any wrong label, the rate of a constant
    answer, the confidence."""
    parts, count, certificate = [], len(evidence.standings), evidence.certificate
    assert certificate is not None
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
    """Return the large figure and the line beneath: the estimate first, or the interval if it is
    wide."""
    width, interval = standing.upper - standing.lower, span(standing.lower, standing.upper)
    estimate = estimated(standing.estimate, standing.lower, standing.upper)
    if width > READABLE:
        return interval, f"most likely {estimate}"
    return estimate, "exact" if width <= POINT else interval


def _is_vague(standing: Standing) -> bool:
    return standing.upper - standing.lower > WIDE


def _is_unknown(standing: Standing) -> bool:
    return (standing.lower, standing.upper) == (0, 1)


def _raw_verdict(evidence: Evidence) -> Verdict:
    concepts_are, unit, units = evidence.space.concepts_are, evidence.table, "questions"
    if concepts_are == "classes":  # as in ``certify.targets.selected``
        unit, units = unit[unit["truth"] == 1], "images"
    asked, wrong = len(unit), int((unit["loss"] >= FAILED).sum())
    if not asked:
        return Verdict("", "Nothing is known yet", "", "no question has been answered and judged")
    why = ", as the questions were chosen adaptively" if evidence.adaptive else ""
    counted = f"{amount(wrong)} of {amount(asked)} {units}: a raw figure, without a guarantee{why}"
    rate = capital(error_of(concepts_are, evidence.settings.oracle.rates))
    return Verdict(rate, percent(wrong / asked), "of what was asked", counted)


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
    for (concept, truth), part in sides if evidence.answers.sided else ():
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
            groups.append(Group(name, percent(bad / count), basis, *wilson(bad, count), query, met))
    return sorted(groups, key=lambda g: -g.lower)


def pictured(groups: Sequence[Group]) -> list[list[tuple[Picture, str, int]]]:
    """Return per group the follow-ups of its surest mistakes: picture, caption and call. Samples
    that no earlier group shows come first, and one of each."""
    seen, shown = set[str](), list[list[tuple[Picture, str, int]]]()
    for group in groups:
        kept = [(f, f.pictures[1]) for f in group.failures if f.pictures]
        first = {f.sample: f for f, _ in reversed(kept)}
        kept.sort(key=lambda each: (each[0].sample in seen, each[0] is not first[each[0].sample]))
        best = kept[:PICTURED]
        seen.update(f.sample for f, _ in best)
        shown.append([(picture(png), f"{f.sample}, {f.change}", f.call) for f, png in best])
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
        verdict=_versus_verdict(evidence, rows),
        decided=sum(row.decision != "open" for row in rows),
        count=len(rows),
        models=" / ".join(names_of(facts)),
        calls_of=calls,
        steps=_versus_steps(evidence),
    )


def differences_section(evidence: Evidence) -> Section | None:
    """Show every difference as a bar around 0, and in figures; the margin shaded."""
    certificate, rows = evidence.certificate, evidence.run.compared
    if certificate is None or certificate.versus is None:
        return None
    both, margin = names_of(evidence.facts), certificate.versus.margin
    new = brief(both[1])
    counts = {
        "target": [row.target for row in rows],
        "questions": [row.questions for row in rows],
        "lost differently": [percent(row.disagreement) for row in rows],
        "calls of the old model": [row.calls_a for row in rows],
        "calls of the new model": [row.calls_b for row in rows],
    }
    if not certificate.paired:
        del counts["lost differently"]
    differ = [wrong_more(new, -row.delta, -row.upper, -row.lower) for row in rows]
    bars = [(r, d, DECISIONS[r.decision].format(b=new)) for r, d in zip(rows, differ, strict=True)]
    return _forest(evidence, bars, pd.DataFrame(counts), WHOLE, margin, names=both)


def drops_section(evidence: Evidence) -> Section:
    """Show the drop under every relation as a bar around 0, and in figures."""
    standings = evidence.standings
    rows = [
        Compared(s.name, -s.estimate, -s.upper, -s.lower, "" if s.settled else "open", s.questions)
        for s in standings
    ]
    figures = [f"{points(s.estimate)} ({point_span(s.lower, s.upper)})" for s in standings]
    bars = [(row, figure, row.decision) for row, figure in zip(rows, figures, strict=True)]
    counts = {"target": [s.name for s in standings], "questions": [s.questions for s in standings]}
    rate = standings[0].id.rate
    return _forest(evidence, bars, pd.DataFrame(counts), EVERYTHING, 0.0, names=(), rate=rate)


def _forest(
    evidence: Evidence,
    bars: Sequence[tuple[Compared, str, str]],
    counts: pd.DataFrame,
    whole: str,
    margin: float,
    **more: Any,
) -> Section:
    """Return a table with a bar around 0 per difference, its figure and words; ``whole`` says that
    all are exact."""
    rows = [row for row, _, _ in bars]
    end, marks = axis([max(-row.lower, row.upper) for row in rows], margin, AROUND)
    return evidence.section(
        "Differences",
        "differences",
        bars=bars,
        end=end,
        marks=[(mark, points(mark)) for mark in [*(-m for m in marks[:0:-1]), *marks]],
        margin=margin,
        rows=counts,
        whole=all(is_exact(row.lower, row.upper) for row in rows) and whole,
        **more,
    )


def _versus_verdict(evidence: Evidence, rows: list[Compared]) -> Verdict:
    certificate, row = evidence.certificate, rows[0]
    assert certificate is not None
    assert certificate.versus is not None
    claim, margin = certificate.versus.at_least, certificate.versus.margin
    about = "" if row.target.startswith("overall ") else f"in {row.target}"
    which = "at every moment" if len(rows) == 1 else f"the first of {amount(len(rows))} targets"
    b, sure = names_of(evidence.facts)[1], f", {exact(certificate.confidence)} sure, {which}"
    sure = "" if is_exact(row.lower, row.upper) else sure
    span = f"{extent(-row.upper, -row.lower)}{sure}"
    if row.decision in ("better", "worse"):
        less = "less" if row.decision == "better" else "more"
        size = f"{abs(100 * row.delta):.1f}{THIN}points {less} often"
        return Verdict(f"{b} is wrong", size, about, span)
    ends = f"{wrong_more(b, -row.delta, -row.upper, -row.lower)}{sure}"
    if row.decision == "within":
        limit = f"{100 * margin:g}{THIN}points"
        return Verdict("The models differ by no more than", limit, about, ends)
    if claim is None:
        return Verdict("", "It is open which model is wrong less often", about, ends)
    decided = {"holds": "The claim holds:", "fails": "The claim fails that"}
    how = "more often by at most" if claim <= 0 else "less often by at least"
    before = f"{decided.get(row.decision, 'It is open whether')} {b} is wrong {how}"
    # the interval is certified next to the claim
    return Verdict(before, f"{abs(100 * claim):.3g}{THIN}points", about, f"the interval: {ends}")


def _versus_steps(evidence: Evidence) -> list[Step]:
    """Return the next steps; the first says how many more calls would decide what is open."""
    (calls, further), why = to_decide(evidence.run), "still open: this continues"
    if further is not None:
        most = f"{amount(calls + further.most)} in all at the most, for --budget"
        why += f"; {further} more calls would decide it, {most}"
    return steps_of_two(evidence.run, names(evidence), why=why)
