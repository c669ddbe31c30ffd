"""Search for slices while an audit runs, and targets made of them.

It looks at set draws, so that an interrupted audit finds what an undisturbed one would have: looks
lie a factor apart, since as many answers again as there were add something new. It also looks once
before it ends for want of open targets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...certify.targets import Target, masks_of, members, size, target_of
from ...engine.loop import Hook, Loop
from ...engine.options import DISCOVER_BY, FIRST_LOOK, Certify
from ...errors import InputError, unexpected
from ...families import OfSlice
from ...journal import Journal
from ...journal.facts import DiscoverFacts, Facts, read_facts
from ...space import QuestionSpace
from ...types import JsonObject
from .proposers import atoms_of
from .search import Evidence, Slice, find

ASKED = "asked"
"""The proposer of targets that a user asked for."""
FIGURES = ("images", "rate", "base", "least_lift", "tried")
"""Fields of a slice that the journal keeps as they are."""
APART = 1.5
"""Factor between the draws of two looks."""


def is_due(draws: int) -> bool:
    """Return whether an audit looks for slices after this number of draws."""
    look = FIRST_LOOK
    while look < draws:
        look = round(APART * look)
    return look == draws


def explore(
    journal: Journal, space: QuestionSpace, *, most: int, by: Sequence[str] = DISCOVER_BY
) -> list[Slice]:
    """Propose slices from the answers in a journal, those certified before put aside.

    They are guesses, chosen among many for these very answers, that no interval covers.

    Args:
        journal: The journal of an audit of one model.
        space: The space of that audit.
        most: Number of slices, at most.
        by: Names of proposers.

    Returns:
        The slices, the surest first.

    Raises:
        InputError: A proposer is unknown, or the audit compared two models.
    """
    facts = read_facts(journal.facts())
    facts.refuse_pairs("slices", "audit the rates of one model")
    slices = () if facts.certificate is None else facts.certificate.slices
    before = [target_of(OfSlice(s.name), s.masks) for s in slices]
    evidence = Evidence.of(space, journal.draws(proposals=False), journal.calls())
    return find(space, evidence, atoms_of(space, by), most=most, slices=before)


class Discovery(Hook):
    """Hook that looks for up to ``certify.discover`` slices in all, and makes targets of them.

    It looks at the draws of ``is_due``, at those of ``also``, and once before the audit ends for
    want of open targets. Targets that were asked for later count among them: alpha is shared by
    place. A slice is journaled before the next draw, from which on it is a target.
    """

    def __init__(self, space: QuestionSpace, certify: Certify) -> None:
        self._most, self._by = certify.discover, tuple(certify.discover_by)
        self._atoms = atoms_of(space, self._by) if self._most else None
        self._also: tuple[int, ...] = ()
        self._looked = -1

    def facts(self, before: Facts | None, draws: int) -> JsonObject:
        """Return what is looked for; {} for nothing.

        Where a resumed audit is to look for more slices than before, it looks at the present draw.
        """
        if before is not None:
            earlier = before.discover or DiscoverFacts(most=0, by=())
            self._also = earlier.also
            if before.certificate is not None and before.certificate.slices:
                self._looked = before.certificate.slices[-1].since
            if self._most > earlier.most:
                self._also += (draws,)
        if self._atoms is None and not self._also:
            return {}
        return {"discover": {"most": self._most, "by": [*self._by], "also": [*self._also]}}

    def before_draw(self, loop: Loop, drawn: int) -> bool:
        """Look where that is due, once all draws are committed."""
        certifier, draws = loop.certifier, loop.draws
        if certifier is None or self._atoms is None or draws == self._looked:
            return False
        left = self._most - certifier.rules.slices
        if left <= 0 or not (is_due(draws) or draws in self._also or _last_chance(loop)):
            return False
        if drawn:
            return True
        self._looked = draws
        registered = certifier.registered
        slices = find(
            loop.space,
            _evidence(loop),
            self._atoms,
            most=left,
            known=registered,
            slices=certifier.targets[len(registered) :],
        )
        if slices:
            _adopt(loop, slices)
        return False

    def ask_for(self, targets: Mapping[str, Target], loop: Loop) -> None:
        """Make targets of these, by name, from the next draw on: whatever made a user ask for them
        lies in the past by then.

        Raises InputError if the audit set no alpha aside for targets that come later, and for
        what is a target already.
        """
        certifier = loop.certifier
        if certifier is None or not certifier.rules.set_aside:
            raise unexpected(
                "posthoc",
                "an audit that set a share of its alpha aside for targets that come later "
                "(discover, or set_aside in [certify])",
                "one that set none aside",
                f"begin a new one with {', '.join(targets)} among its targets and another --out",
            )
        known = [masks_of(target) for target in certifier.targets]
        evidence, slices = _evidence(loop), []
        for name, target in targets.items():
            if (masks := masks_of(target)) in known:
                raise InputError(f"posthoc: {name!r} is a target already")
            known.append(masks)
            inside = evidence.only(evidence.inside(loop.space, [target])[0])
            images, named = len(np.unique(inside.sample)), replace(target, id=OfSlice(name))
            slices.append(Slice((), named, images, inside.rate, evidence.rate, 0.0, tried=1))
        _adopt(loop, slices)


def _adopt(loop: Loop, slices: Sequence[Slice]) -> None:
    """Journal slices, then make targets of them. A user asked for those without atoms."""
    asked = [loop.judge.questions_of(call) for call in loop.draw_order.calls]
    drawn, space = np.concatenate([np.zeros(0, np.int64), *asked]), loop.space
    rows = [
        {
            "name": each.words,
            "found_by": [*each.proposers] or [ASKED],
            "since": loop.draws,
            "size": size(space, each.target),
            "seen": drawn[members(space, [each.target], drawn)[0]].tolist(),
            "masks": masks_of(each.target),
            "where": each.where if each.atoms else None,
            **{figure: getattr(each, figure) for figure in FIGURES},
        }
        for each in slices
    ]
    before = loop.journal.facts().get("slices") or []
    loop.journal.set_facts(slices=[*before, *rows])
    loop.adopt([each.target for each in slices])


def _evidence(loop: Loop) -> Evidence:
    """Return the answers that were learnt from."""
    learned = loop.draw_order.learned
    draws = [row for row in loop.journal.draws(proposals=False) if row.draw < learned]
    return Evidence.of(loop.space, draws, loop.journal.calls())


def _last_chance(loop: Loop) -> bool:
    """Return whether the audit ends now, and only for want of open targets."""
    state = loop.state()
    open_ = replace(state, targets=())
    ended = any(rule.reached(state) for rule in loop.rules)
    return ended and not any(rule.reached(open_) for rule in loop.rules)
