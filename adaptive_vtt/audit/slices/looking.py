"""Search for slices while an audit runs, and make targets of them.

The search runs at fixed numbers of draws, so that a resumed audit has the same slices as an
undisturbed one. These numbers grow by a constant factor, since a search needs many new answers. A
last search runs before an audit ends because no target is open.
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
"""Name, as a proposer, of targets that a user asked for."""
FIGURES = ("images", "rate", "base", "least_lift", "tried")
"""Fields of a slice that are copied to the journal."""
APART = 1.5
"""Factor between the numbers of draws of two searches."""


def is_due(draws: int) -> bool:
    """Return whether an audit searches for slices after this number of draws."""
    look = FIRST_LOOK
    while look < draws:
        look = round(APART * look)
    return look == draws


def explore(
    journal: Journal, space: QuestionSpace, *, most: int, by: Sequence[str] = DISCOVER_BY
) -> list[Slice]:
    """Search for slices in the answers of a journal, without the questions of certified slices.

    They are hypotheses, selected among many on the same answers, so that no interval covers them.

    Args:
        journal: The journal of an audit of one model.
        space: The space of that audit.
        most: Maximum number of slices.
        by: Names of proposers.

    Returns:
        The slices, the one with the largest lower bound of lift first.

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
    """Hook that searches for up to ``certify.discover`` slices, and makes targets of them.

    It searches at the draws of ``is_due``, at further ones (see ``facts``), and once before the
    audit ends because no target is open. Targets that a user asked for later count as slices, as
    each takes the next share of alpha. A slice is journaled, and is a target from the next draw on.
    """

    def __init__(self, space: QuestionSpace, certify: Certify) -> None:
        self._most, self._by = certify.discover, tuple(certify.discover_by)
        self._atoms = atoms_of(space, self._by) if self._most else None
        self._also: tuple[int, ...] = ()  # further draws at which to search
        self._searched = -1  # the draw of the last search

    def facts(self, before: Facts | None, draws: int) -> JsonObject:
        """Return the settings of the search, {} without one.

        If a resumed audit allows more slices than before, it searches at its present draw, too.
        """
        if before is not None:
            earlier = before.discover or DiscoverFacts(most=0, by=())
            self._also = earlier.also
            if before.certificate is not None and before.certificate.slices:
                self._searched = before.certificate.slices[-1].since
            if self._most > earlier.most:
                self._also += (draws,)
        if self._atoms is None and not self._also:
            return {}
        return {"discover": {"most": self._most, "by": [*self._by], "also": [*self._also]}}

    def before_draw(self, loop: Loop, drawn: int) -> bool:
        """Search if that is due; return True to wait first until all draws are committed."""
        certifier, draws = loop.certifier, loop.draws
        if certifier is None or self._atoms is None or draws == self._searched:
            return False
        left = self._most - certifier.rules.slices
        if left <= 0 or not (is_due(draws) or draws in self._also or _last_chance(loop)):
            return False
        if drawn:
            return True
        self._searched = draws
        registered = certifier.registered
        later = certifier.targets[len(registered) :]
        slices = find(
            loop.space, _evidence(loop), self._atoms, most=left, known=registered, slices=later
        )
        if slices:
            _adopt(loop, slices)
        return False

    def ask_for(self, targets: Mapping[str, Target], loop: Loop) -> None:
        """Make targets from the next draw on: a user chose them by earlier draws only.

        Args:
            targets: Name -> target.
            loop: The loop of the audit.

        Raises:
            InputError: The audit set no alpha aside for later targets, or one is a target already.
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
            images, renamed = len(np.unique(inside.sample)), replace(target, id=OfSlice(name))
            slices.append(Slice((), renamed, images, inside.rate, evidence.rate, 0.0, tried=1))
        _adopt(loop, slices)


def _adopt(loop: Loop, slices: Sequence[Slice]) -> None:
    """Journal slices, then make targets of them. Those without atoms were asked for by a user."""
    asked = [loop.judge.questions_of(call) for call in loop.draw_order.calls]
    drawn, space = np.concatenate([np.zeros(0, np.int64), *asked]), loop.space
    rows = [
        {
            "name": slice_.words,
            "proposers": [*slice_.proposers] or [ASKED],
            "since": loop.draws,
            "size": size(space, slice_.target),
            "seen": drawn[members(space, [slice_.target], drawn)[0]].tolist(),
            "masks": masks_of(slice_.target),
            "where": slice_.where if slice_.atoms else None,
            **{figure: getattr(slice_, figure) for figure in FIGURES},
        }
        for slice_ in slices
    ]
    before = loop.journal.facts().get("slices") or []
    loop.journal.set_facts(slices=[*before, *rows])
    loop.adopt([slice_.target for slice_ in slices])


def _evidence(loop: Loop) -> Evidence:
    """Return the answers from which the audit has learnt."""
    learned = loop.draw_order.learned
    draws = [row for row in loop.journal.draws(proposals=False) if row.draw < learned]
    return Evidence.of(loop.space, draws, loop.journal.calls())


def _last_chance(loop: Loop) -> bool:
    """Return whether the audit ends now, and only because no target is open."""
    state = loop.state()
    without_targets = replace(state, targets=())
    ended = any(rule.reached(state) for rule in loop.rules)
    return ended and not any(rule.reached(without_targets) for rule in loop.rules)
