"""An audit that looks for slices while it goes on, and makes targets of what it finds.

It looks at set draws, so that an interrupted audit finds what an undisturbed one would have: looks
lie a factor apart, since as many answers again as there were tell something new. It also looks once
before it ends for want of open targets.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...certify.targets import Target, masks_of, size, target_of
from ...engine.loop import Hook, Loop
from ...engine.options import DISCOVER_BY, FIRST_LOOK, Certify
from ...errors import InputError
from ...families import OfSlice
from ...journal import Journal
from ...journal.facts import DiscoverFacts, Facts, read_facts
from ...journal.rows import CallRow, DrawRow
from ...space import QuestionSpace
from ...types import Indices, JsonObject
from ..census.everything import members
from .proposers import atoms_of
from .search import Evidence, Found, find

ASKED = "asked"
"""Who found a target that somebody asked for."""
APART = 1.5
"""Factor between the draws of two looks."""


def is_due(draws: int) -> bool:
    """Whether an audit that has made so many draws looks for slices."""
    look = FIRST_LOOK
    while look < draws:
        look = round(APART * look)
    return look == draws


class Looking:
    """Looks for slices of a space, by the proposers named."""

    def __init__(self, space: QuestionSpace, by: Sequence[str]) -> None:
        self.space = space
        self.by = by
        self._atoms = atoms_of(space, by)

    def find(
        self,
        draws: Sequence[DrawRow],
        calls: Collection[CallRow],
        *,
        most: int,
        known: Sequence[Target] = (),
        slices: Sequence[Target] = (),
    ) -> list[Found]:
        """What the answered ones among ``draws`` tell; see ``search.find``."""
        evidence = Evidence.of(self.space, draws, calls)
        return find(self.space, evidence, self._atoms, most=most, known=known, slices=slices)


def explore(
    journal: Journal, space: QuestionSpace, *, most: int, by: Sequence[str] = DISCOVER_BY
) -> list[Found]:
    """What the answers in a journal tell, slices that were found before put aside: guesses, chosen
    among many for these very answers, that no interval covers.

    ``space``: the one that the audit was about. Raises InputError for an unknown proposer.
    """
    facts = read_facts(journal.facts())
    slices = () if facts.certificate is None else facts.certificate.slices
    before = [target_of(OfSlice(s.name), s.masks) for s in slices]
    looking = Looking(space, by)
    return looking.find(journal.draws(proposals=False), journal.calls(), most=most, slices=before)


def fact(space: QuestionSpace, found: Found, since: int, drawn: Indices) -> JsonObject:
    """A slice for the journal (``journal.facts.SliceFacts``), found before draw ``since``, when
    the questions ``drawn`` had been drawn."""
    return {
        "name": found.words,
        "found_by": [*found.found_by],
        "since": since,
        **_questions(space, found.target, drawn),
        "where": found.where,
        "images": found.images,
        "rate": found.rate,
        "base": found.base,
        "least_lift": found.least_lift,
        "tried": found.tried,
    }


def asked_for(
    space: QuestionSpace, target: Target, name: str, evidence: Evidence, drawn: Indices, since: int
) -> JsonObject:
    """The same of a target that somebody asks for at draw ``since``, for whatever reason."""
    inside = evidence.only(evidence.inside(space, [target])[0])
    return {
        "name": name,
        "found_by": [ASKED],
        "since": since,
        **_questions(space, target, drawn),
        "where": None,
        "images": len(np.unique(inside.sample)),
        "rate": inside.rate,
        "base": evidence.rate,
        "least_lift": 0.0,
        "tried": 1,
    }


def _questions(space: QuestionSpace, target: Target, drawn: Indices) -> JsonObject:
    """Which questions a target has, and which of them are among those ``drawn``."""
    seen = drawn[members(space, [target], drawn)[0]]
    return {"size": size(space, target), "seen": seen.tolist(), "masks": masks_of(target)}


class Discovery(Hook):
    """Looks for up to ``certify.discover`` slices in all, at the draws of ``audit.slices.looking``,
    at those of ``also``, and once before the audit ends for want of open targets. Targets that were
    asked for later count among them: alpha is shared by place.

    What is found is journaled before the next draw, from which on it is a target.
    """

    def __init__(self, space: QuestionSpace, certify: Certify) -> None:
        self._most, self._by = certify.discover, tuple(certify.discover_by)
        self._looking = Looking(space, self._by) if self._most else None
        self._also: tuple[int, ...] = ()
        self._looked = -1

    def facts(self) -> JsonObject:
        """What the journal says of it; {} where nothing is looked for."""
        if self._looking is None and not self._also:
            return {}
        return {"discover": {"most": self._most, "by": [*self._by], "also": [*self._also]}}

    def go_on(self, facts: Facts, draws: int) -> JsonObject:
        """What the journal that is gone on with is to say from now on: where more slices are looked
        for than before, the audit looks at the present draw."""
        before = facts.discover or DiscoverFacts(most=0, by=())
        self._also = before.also
        if facts.certificate is not None and facts.certificate.slices:
            self._looked = facts.certificate.slices[-1].since
        if self._most > before.most:
            self._also += (draws,)
        return self.facts()

    def before_draw(self, loop: Loop, drawn: int) -> bool:
        """Looks where that is due; what was drawn is to be committed before."""
        due = self._is_due(loop)
        if due and not drawn:
            self._look(loop)
        return due and drawn > 0

    def _is_due(self, loop: Loop) -> bool:
        draws, found = loop.draws, loop.certifier.rules.slices if loop.certifier else 0
        if self._looking is None or draws == self._looked or found >= self._most:
            return False
        return is_due(draws) or draws in self._also or _last_chance(loop)

    def _look(self, loop: Loop) -> None:
        """Looks, journals what it finds, and goes on with it."""
        certifier, looking = loop.certifier, self._looking
        if certifier is None or looking is None:
            return
        self._looked = loop.draws
        registered = certifier.registered
        found = looking.find(
            _learned(loop),
            loop.journal.calls(),
            most=self._most - certifier.rules.slices,
            known=registered,
            slices=certifier.targets[len(registered) :],
        )
        if found:
            drawn = _drawn(loop)
            told = [fact(looking.space, one, loop.draws, drawn) for one in found]
            _adopt(loop, [one.target for one in found], told)

    def ask_for(self, targets: Mapping[str, Target], loop: Loop) -> None:
        """Makes targets of these, by name, from the next draw on: whatever made somebody ask for
        them lies in the past by then.

        Raises InputError where the audit set no alpha aside for targets that come later, and for
        what is a target already.
        """
        certifier = loop.certifier
        if certifier is None or not certifier.rules.set_aside:
            raise InputError(
                "posthoc: expected an audit that set a share of its alpha aside for targets that "
                "come later (discover, or set_aside in [certify]), got one that set none aside; "
                f"begin a new one with {', '.join(targets)} among its targets and another --out"
            )
        known = [masks_of(target) for target in certifier.targets]
        for name, target in targets.items():
            if (masks := masks_of(target)) in known:
                raise InputError(f"posthoc: {name!r} is a target already")
            known.append(masks)
        evidence = Evidence.of(loop.space, _learned(loop), loop.journal.calls())
        drawn, told, named = _drawn(loop), [], []
        for name, target in targets.items():
            told.append(asked_for(loop.space, target, name, evidence, drawn, loop.draws))
            named.append(replace(target, id=OfSlice(name)))
        _adopt(loop, named, told)


def _adopt(loop: Loop, targets: Sequence[Target], told: Sequence[JsonObject]) -> None:
    """``told``: the targets as facts, which are journaled first."""
    before = loop.journal.facts().get("slices") or []
    loop.journal.set_facts(slices=[*before, *told])
    loop.adopt(targets)


def _learned(loop: Loop) -> list[DrawRow]:
    """The draws that were learnt from."""
    draws = loop.journal.draws(proposals=False)
    return [row for row in draws if row.draw < loop.draw_order.learned]


def _drawn(loop: Loop) -> Indices:
    """Every question that was drawn."""
    drawn = [loop.judge.questions_of(call) for call in loop.draw_order.calls]
    return np.concatenate([np.zeros(0, np.int64), *drawn])


def _last_chance(loop: Loop) -> bool:
    """Whether nothing but want of open targets ends the audit now."""
    state = loop.state()
    open_ = replace(state, lower=None, upper=None)
    ended = any(rule.reached(state) for rule in loop.rules)
    return ended and not any(rule.reached(open_) for rule in loop.rules)
