"""The first screen: how much goes wrong, what that cost, where it is worst, what to do next."""

from typing import Any, NamedTuple

from ...certify.further import longest
from ...journal.facts import CertificateFacts
from ...oracles.base import error_of
from ...utils.figures import POINT
from ..advice import Names, Step, in_money, next_steps
from ..opening import READABLE, WIDE, WITH_CHANGES, opening, silent_share
from ..outcomes import FAILED, wilson
from .beside_journal import BASELINE_NAMES
from .content import Failure
from .evidence import Evidence, Standing
from .gallery import Picture, picture
from .section import (
    FEW,
    THIN,
    Section,
    aim,
    amount,
    beside,
    duration,
    exact,
    percent,
    span,
    sure,
    within,
)


class Tile(NamedTuple):
    """One number of the headline."""

    label: str
    value: str
    note: str = ""


def tile_of_questions(evidence: Evidence) -> Tile:
    """How many were judged."""
    asked, size = len(evidence.table), evidence.facts.space.size
    share = f"{percent(asked / size)} of the {amount(size)} there are"
    return Tile("Questions judged", amount(asked), share)


def tiles_of_cost(evidence: Evidence, note: str = "") -> list[Tile]:
    """Cost, where there was any, with a ``note`` and what of it is in doubt; and time."""
    time = Tile("Time", duration(evidence.elapsed), "preparing it included, interruptions left out")
    doubt = evidence.facts.money_in_doubt(evidence.unconfirmed)
    told = "; ".join(filter(None, [note, *doubt])) or "as the model reports it"
    cost = Tile("Cost", evidence.facts.money(evidence.cost), told)
    return [cost, time] if evidence.cost or doubt else [time]


class Verdict(NamedTuple):
    """``before`` the ``figure`` and ``after`` it stand in large type, ``sure`` beneath."""

    before: str
    figure: str
    after: str
    sure: str


def section(evidence: Evidence) -> Section:
    """Verdict, cost, worst groups, next steps."""
    certificate, ended = evidence.certificate, evidence.facts.ended
    settled = certificate is not None and all(s.settled for s in evidence.standings)
    groups = worst(evidence)
    return Section.of(
        "Verdict",
        "verdict",
        "headline.html",
        verdict=verdict(evidence),
        standing="" if certificate is None else aims(certificate, evidence.standings),
        stopped=ended is not None,
        reached=ended is not None and settled,
        reason=evidence.reason,
        waiting=len(evidence.draws) - len(evidence.calls),
        tiles=_tiles(evidence),
        worst=list(zip(groups, pictured(groups), strict=True)),
        certified=certificate is not None,
        steps=shown_steps(evidence),
        warnings=[w.rstrip(".") for w in evidence.warnings],
    )


def _tiles(evidence: Evidence) -> list[Tile]:
    calls = len(evidence.calls) + len(evidence.sources)
    tiles = [Tile("Calls", amount(calls), _calls_note(evidence))]
    for one in evidence.baselines:
        took = f"{100 * calls / one.calls:.0f}{THIN}%"
        note = f"for the same guarantee; this audit took {took}"
        tiles.append(Tile(BASELINE_NAMES[one.kind].capitalize(), one.amount, note))
    return [*tiles, tile_of_questions(evidence), *tiles_of_cost(evidence)]


def _calls_note(evidence: Evidence) -> str:
    """What one call tells, and which calls were others."""
    told = "every concept at once"
    if evidence.settings.answers == "one" or len(evidence.concepts) == 1:
        told = "one question"
    elif evidence.facts.space.concepts_are == "classes":
        told = "with the class of an image"
    again = sum(row.repeat_probe for row in evidence.sources)
    about = len(evidence.sources) - again
    note = f"{amount(about)} of them about source images" if about else f"each answers {told}"
    return f"{note}; {amount(again)} repeat probes" if again else note


# -- verdict and next steps ------------------------------------------------------------------------


OPEN = 4
"""Open targets that are named, at most."""


def verdict(evidence: Evidence) -> Verdict:
    """How much goes wrong: certified where anything is, else among what was asked."""
    certificate, found = evidence.certificate, evidence.standings
    if certificate is None:
        return _raw_verdict(evidence)
    if opened := _opening_verdict(evidence, certificate):
        return opened
    whole = next((s for s in found if s.kind == "overall"), None)
    standing = whole or max(found, key=lambda s: (s.lower, s.estimate))
    concepts_are = evidence.facts.space.concepts_are
    asked = {"labels": "labels", "classes": "images"}.get(concepts_are, "questions")
    after = f"over all {amount(standing.size)} {asked}"
    sources = evidence.facts.space.samples
    if concepts_are == "classes" and whole is not None and sources < standing.size:
        after += f", made of {amount(sources)}"
    elif whole is None:
        after = f"over the questions {standing.id.about}"
        if len(found) > 1 and not _hardly_known(standing):
            after += f", the worst of {amount(len(found))} targets"
    if (standing.lower, standing.upper) == (0, 1):
        return Verdict("", "Nothing is known yet", "", "no answer has narrowed an interval down")
    return _told(standing, after, _parts(evidence, certificate, standing))


def _told(standing: Standing, after: str, parts: list[str]) -> Verdict:
    """The estimate in large type; the interval, where that is so wide that it would mislead."""
    before = _capital(standing.id.rate)
    if _hardly_known(standing):
        before = f"Hardly known yet: {standing.id.rate}"
        return Verdict(before, span(standing.lower, standing.upper), after, ", ".join(parts))
    figure, rest = _shown(standing)
    return Verdict(before, figure, after, ", ".join([rest, *parts]))


def _shown(standing: Standing) -> tuple[str, str]:
    """What stands in large type, and what beneath: the estimate, or the interval if it is wide."""
    within, width = span(standing.lower, standing.upper), standing.upper - standing.lower
    if width <= POINT:
        return _estimate(standing), "exact"
    if width <= READABLE:
        return _estimate(standing), within
    return within, f"most likely {_estimate(standing)}"


def _parts(evidence: Evidence, certificate: CertificateFacts, standing: Standing) -> list[str]:
    """What stands beneath a rate: what a constant answer would have, what is missing, how sure."""
    promised = _promised(certificate, len(evidence.standings))
    wrong = standing.any_wrong
    labels = [] if wrong is None else [f"any label wrong in {percent(wrong)} of the images"]
    return [*labels, *_constant(standing), *filter(None, [silent_share(evidence.calls)]), *promised]


def _hardly_known(standing: Standing) -> bool:
    return standing.upper - standing.lower > WIDE


def _opening_verdict(evidence: Evidence, certificate: CertificateFacts) -> Verdict | None:
    """The error on images as they are, which people come for, and then that with all changes; None
    where nothing is known of it."""
    found, places = {s.place: s for s in evidence.standings}, opening(evidence.facts)
    if places is None or (plain := found.get(places.plain)) is None:
        return None
    whole = None if places.whole is None else found.get(places.whole)
    if _hardly_known(plain) and (whole is not None or (plain.lower, plain.upper) == (0, 1)):
        return None
    after = f"on your {amount(evidence.facts.space.samples)} images as they are"
    parts = _parts(evidence, certificate, plain)
    if _hardly_known(plain):
        return _told(plain, after, parts)
    figure, rest = _shown(plain)
    if whole is not None:
        more, below = _shown(whole)
        after += f", {more} {WITH_CHANGES}"
        rest += f"; with changes {below}"
    return Verdict(_capital(plain.id.rate), figure, after, ", ".join([rest, *parts]))


def _constant(standing: Standing) -> list[str]:
    """What the best constant answer would lose on the same questions."""
    if standing.baseline is None:
        return []
    answer, rate = standing.baseline.answer, percent(standing.baseline.rate)
    return [f"answering {answer!r} every time: {rate}"]


def _estimate(standing: Standing) -> str:
    return beside(standing.estimate, standing.lower, standing.upper)


def _capital(rate: str) -> str:
    return f"{rate[0].upper()}{rate[1:]}"


def _promised(certificate: CertificateFacts, count: int) -> list[str]:
    if certificate.counted:
        return ["as every question is asked"]
    return [f"{sure(certificate.confidence)} sure", _together(certificate, count)]


def _together(certificate: CertificateFacts, count: int) -> str:
    if count == 1:
        return "at every moment"
    if certificate.guarantee == "each":
        return f"each of {amount(count)} intervals by itself"
    return f"all {amount(count)} intervals at once"


def _raw_verdict(evidence: Evidence) -> Verdict:
    concepts_are, table = evidence.facts.space.concepts_are, evidence.table
    unit, units = table, "questions"
    if concepts_are == "classes":  # as in ``certify.targets.selected``
        unit, units = table[table["truth"] == 1], "images"
    asked, wrong = len(unit), int((unit["loss"] >= FAILED).sum())
    if not asked:
        return Verdict("", "Nothing is known yet", "", "no question has been answered and judged")
    why = "without a guarantee"
    if evidence.adaptive:
        why += ", as the questions were chosen adaptively"
    counted = f"{amount(wrong)} of {amount(asked)} {units}: a raw figure, {why}"
    rate = _capital(error_of(concepts_are, evidence.settings.oracle.rates))
    return Verdict(rate, percent(wrong / asked), "of what was asked", counted)


def aims(certificate: CertificateFacts, found: list[Standing]) -> str:
    """How many targets have got where they should, as a sentence."""
    settled = sum(s.settled for s in found)
    which = f"{amount(settled)} of {amount(len(found))} targets"
    if len(found) == 1:
        which = found[0].name
    elif settled == len(found):
        which = f"All {amount(settled)} targets"
    if certificate.counted:
        every = len(found) == settled
        return "Every question was asked: rates are exact." if every else "Not all is asked yet."
    wanted = []
    if certificate.half_width is not None:
        wanted.append(f"to {aim(certificate.half_width)}")
    if certificate.at_most is not None:
        wanted.append(f"against {exact(certificate.at_most)}")
    verb = "are" if len(found) > 1 and settled != 1 else "is"
    negated = "" if settled or len(found) > 1 else " not yet"
    against = [s.name for s in found if s.emptied]
    more = f" Invalidated: {', '.join(against)}." if against else ""
    return f"{which} {verb}{negated} {certificate.done} {' and '.join(wanted)}.{more}"


def shown_steps(evidence: Evidence) -> list[Step]:
    """What to do next; the first says which targets are open, and how many calls that takes."""
    steps = next_steps(evidence, names(evidence))
    open_ = [s for s in evidence.standings if not (s.settled or s.emptied)]
    if not open_ or evidence.facts.ended is None or evidence.exact or evidence.facts.rejudged:
        return steps
    open_.sort(key=lambda s: -s.half_width)
    named = ", ".join(f"{s.name} ({within(s.half_width)})" for s in open_[:OPEN])
    more = f" and {amount(len(open_) - OPEN)} more" if len(open_) > OPEN else ""
    further = longest(s.more_calls for s in open_)
    drawn = len(evidence.draws) + len(evidence.sources)
    takes = "how many more calls that takes cannot be told yet"
    if further is not None:
        which = "it" if len(open_) == 1 else "all of them"
        cost = in_money(further, evidence.cost, drawn, evidence.facts.currency)
        takes = f"{which} would take {further} more calls{cost}"
    return [steps[0]._replace(why=f"still open: {named}{more}; {takes}"), *steps[1:]]


def names(evidence: Evidence) -> Names:
    """How commands of a page name its run."""
    return Names(evidence.folder, evidence.spec, head=evidence.head)


# -- where most goes wrong -------------------------------------------------------------------------


WORST = 3
"""Groups that are shown."""
PICTURED = 2
"""Pictures of each."""
SOME = 0.005
"""Where a lower bound is below this, hardly anything is known to go wrong."""


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


def worst(evidence: Evidence) -> list[Group]:
    """The groups with the highest lower bounds, worst first; those about everything left out, and
    those of which hardly anything is known to go wrong, or whose interval is emptied."""
    if evidence.certificate is None:
        return raw_groups(evidence)[:WORST]
    several = [s for s in evidence.standings if s.kind != "overall" and s.lower >= SOME]
    known = sorted((s for s in several if not s.emptied), key=lambda s: -s.lower)
    return [_certified_group(evidence, s) for s in known[:WORST]]


def raw_groups(evidence: Evidence) -> list[Group]:
    """Sides of concepts and changes of the image, by the lower end of Wilson's interval.

    A small sample with a high rate so comes after a large one. Groups of fewer than FEW
    questions, and those without a mistake, are left out.
    """
    table = evidence.counted.assign(wrong=evidence.counted["loss"] >= FAILED)
    found = []
    if evidence.sided:
        for concept, truth, bad, n in _wrong_counts(table, ["concept", "truth"]):
            name = f"{concept}, where it is {'present' if truth else 'absent'}"
            query = f"concept={evidence.concepts.index(concept)}&truth={truth}"
            asked = set(
                table.loc[(table["concept"] == concept) & (table["truth"] == truth), "question"]
            )
            met = [f for f in evidence.failures if any(a.question in asked for a in f.mistakes)]
            found.append(_raw_group(name, bad, n, query, met))
    for relation, severity, bad, n in _wrong_counts(table, ["relation", "severity"]):
        query = f"relation={evidence.relations.index(relation)}&severity={severity}"
        met = [f for f in evidence.failures if (f.relation, f.severity) == (relation, severity)]
        found.append(_raw_group(evidence.change(relation, severity), bad, n, query, met))
    return sorted((g for g in found if g is not None), key=lambda g: -g.sure)


def _wrong_counts(table: Any, by: list[str]) -> list[tuple[str, int, int, int]]:
    parts = table.groupby(by, sort=False)["wrong"].agg(["sum", "count"])
    return [(str(a), int(b), int(wrong), int(n)) for (a, b), wrong, n in parts.itertuples()]


def _raw_group(name: str, bad: int, count: int, query: str, met: list[Failure]) -> Group | None:
    if count < FEW or not bad:
        return None
    basis = f"{amount(bad)} of {amount(count)} questions, not certified"
    return Group(name, percent(bad / count), basis, *wilson(bad, count), query, met)


def _certified_group(evidence: Evidence, standing: Standing) -> Group:
    met = [f for f in evidence.failures if standing.place in f.targets]
    basis = span(standing.lower, standing.upper)
    if not standing.settled:
        basis += ", still open"
    return Group(
        standing.name,
        _estimate(standing),
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
        chosen = sorted(_firsts(kept), key=lambda f: f.sample in seen)[:PICTURED]
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
