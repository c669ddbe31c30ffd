"""When an audit looks for slices, and what it writes down of those it finds.

It looks at set draws, so that an interrupted audit finds what an undisturbed one would have: looks
lie a factor apart, since as many answers again as there were tell something new. It also looks once
before it ends for want of open targets.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...certify.population import masks_of, target_of
from ...certify.targets import Target, member, size
from ...engine.plan import DISCOVER_BY
from ...journal import Journal
from ...journal.facts import read_facts
from ...journal.rows import CallRow, DrawRow
from ...space import QuestionSpace
from ...types import Indices, TargetId
from .evidence import Evidence
from .proposers import atoms_of
from .search import Found, find

FIRST = 60
"""The draw at which an audit looks first: fewer answers seldom tell anything."""
ASKED = "asked"
"""Who found a target that somebody asked for."""
APART = 1.5
"""Factor between the draws of two looks."""


def is_due(draws: int) -> bool:
    """Whether an audit that has made so many draws looks for slices."""
    look = FIRST
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
    before = [target_of(TargetId("slice", filter=s.name), s.masks) for s in slices]
    looking = Looking(space, by)
    return looking.find(journal.draws(proposals=False), journal.calls(), most=most, slices=before)


def fact(space: QuestionSpace, found: Found, since: int, drawn: Indices) -> dict[str, Any]:
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
) -> dict[str, Any]:
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


def _questions(space: QuestionSpace, target: Target, drawn: Indices) -> dict[str, Any]:
    """Which questions a target has, and which of them are among those ``drawn``."""
    sample, variant, concept = space.parts(drawn)
    truth = space.dataset.truth(sample, concept)
    seen = drawn[member(space, [target], sample, variant, concept, truth)[0]]
    return {"size": size(space, target), "seen": seen.tolist(), "masks": masks_of(target)}
