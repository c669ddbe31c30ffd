"""An audit that looks for slices while it goes on, and makes targets of what it finds.

It looks at set draws, so that an interrupted audit finds what an undisturbed one would have: looks
lie a factor apart, since as many answers again as there were tell something new. It also looks once
before it ends for want of open targets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...certify.targets import Target, masks_of, members, size, target_of
from ...engine.loop import Hook, Loop
from ...engine.options import DISCOVER_BY, FIRST_LOOK, Certify
from ...errors import InputError
from ...families import OfSlice
from ...journal import Journal
from ...journal.facts import DiscoverFacts, Facts, read_facts
from ...space import QuestionSpace
from ...types import Indices, JsonObject
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


def explore(
    journal: Journal, space: QuestionSpace, *, most: int, by: Sequence[str] = DISCOVER_BY
) -> list[Found]:
    """What the answers in a journal tell, slices that were found before put aside: guesses, chosen
    among many for these very answers, that no interval covers.

    ``space``: the one that the audit was about. Raises InputError for an unknown proposer
    and for two models.
    """
    facts = read_facts(journal.facts())
    facts.refuse_pairs("slices", "audit either model alone")
    slices = () if facts.certificate is None else facts.certificate.slices
    before = [target_of(OfSlice(s.name), s.masks) for s in slices]
    evidence = Evidence.of(space, journal.draws(proposals=False), journal.calls())
    return find(space, evidence, atoms_of(space, by), most=most, slices=before)


class Discovery(Hook):
    """Looks for up to ``certify.discover`` slices in all, at the draws of ``audit.slices.looking``,
    at those of ``also``, and once before the audit ends for want of open targets. Targets that were
    asked for later count among them: alpha is shared by place.

    What is found is journaled before the next draw, from which on it is a target.
    """

    def __init__(self, space: QuestionSpace, certify: Certify) -> None:
        self._most, self._by = certify.discover, tuple(certify.discover_by)
        self._atoms = atoms_of(space, self._by) if self._most else None
        self._also: tuple[int, ...] = ()
        self._looked = -1

    def facts(self) -> JsonObject:
        """What the journal says of it; {} where nothing is looked for."""
        if self._atoms is None and not self._also:
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
        if self._atoms is None or draws == self._looked or found >= self._most:
            return False
        return is_due(draws) or draws in self._also or _last_chance(loop)

    def _look(self, loop: Loop) -> None:
        """Looks, journals what it finds, and goes on with it."""
        certifier, atoms = loop.certifier, self._atoms
        if certifier is None or atoms is None:
            return
        self._looked = loop.draws
        registered = certifier.registered
        found = find(
            loop.space,
            _evidence(loop),
            atoms,
            most=self._most - certifier.rules.slices,
            known=registered,
            slices=certifier.targets[len(registered) :],
        )
        if found:
            _adopt(loop, found)

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
        evidence, found = _evidence(loop), []
        for name, target in targets.items():
            inside = evidence.only(evidence.inside(loop.space, [target])[0])
            images, named = len(np.unique(inside.sample)), replace(target, id=OfSlice(name))
            found.append(Found((), named, images, inside.rate, evidence.rate, 0.0, tried=1))
        _adopt(loop, found)


def _adopt(loop: Loop, found: Sequence[Found]) -> None:
    """Slices, which are journaled first; those without atoms somebody asked for."""
    asked = [loop.judge.questions_of(call) for call in loop.draw_order.calls]
    drawn = np.concatenate([np.zeros(0, np.int64), *asked])
    told = [_fact(loop.space, one, loop.draws, drawn) for one in found]
    before = loop.journal.facts().get("slices") or []
    loop.journal.set_facts(slices=[*before, *told])
    loop.adopt([one.target for one in found])


def _fact(space: QuestionSpace, found: Found, since: int, drawn: Indices) -> JsonObject:
    """A slice for the journal (``journal.facts.SliceFacts``), found before draw ``since``, when
    the questions ``drawn`` had been drawn."""
    target = found.target
    return {
        "name": found.words,
        "found_by": [*found.found_by] or [ASKED],
        "since": since,
        "size": size(space, target),
        "seen": drawn[members(space, [target], drawn)[0]].tolist(),
        "masks": masks_of(target),
        "where": found.where if found.atoms else None,
        "images": found.images,
        "rate": found.rate,
        "base": found.base,
        "least_lift": found.least_lift,
        "tried": found.tried,
    }


def _evidence(loop: Loop) -> Evidence:
    """What was learnt from."""
    learned = loop.draw_order.learned
    draws = [row for row in loop.journal.draws(proposals=False) if row.draw < learned]
    return Evidence.of(loop.space, draws, loop.journal.calls())


def _last_chance(loop: Loop) -> bool:
    """Whether nothing but want of open targets ends the audit now."""
    state = loop.state()
    open_ = replace(state, targets=())
    ended = any(rule.reached(state) for rule in loop.rules)
    return ended and not any(rule.reached(open_) for rule in loop.rules)
