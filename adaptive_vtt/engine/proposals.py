"""Proposals: the distribution of a draw, and those of an earlier audit that are drawn again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..certify.strata import by_variant
from ..certify.targets import unpack
from ..errors import InputError
from ..journal import Journal
from ..journal.facts import Facts, ReplayFacts
from ..journal.rows import DrawRow, damaged, pack_proposal, unpack_proposal
from ..types import Bools, Floats, Indices


@dataclass(frozen=True)
class Proposal:
    """The distribution of one draw: ``calls`` (m,) and their ``probabilities`` (m,), 1 in all."""

    calls: Indices
    probabilities: Floats

    def draw(self, rng: np.random.Generator) -> int:
        """Draw the place (0 to m - 1) of one call, by inverse transform."""
        ends = np.cumsum(self.probabilities)
        place = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
        # Rounding may point past the end, or at a call of probability zero there.
        place = min(place, len(ends) - 1)
        while self.probabilities[place] == 0:
            place -= 1
        return place

    def pack(self) -> bytes:
        """Return the proposal as bytes for the journal."""
        return pack_proposal(self.calls, self.probabilities)

    @classmethod
    def unpack(cls, packed: bytes) -> "Proposal":
        """Return the proposal that ``pack`` wrote; raise JournalError if the bytes are damaged."""
        return cls(*unpack_proposal(packed))


def mix(
    calls: Indices, weights: Floats, exploration: float, even: Floats | None = None
) -> Proposal:
    """Return the proposal q = (1 - exploration) w / sum(w) + exploration * even.

    Args:
        calls: (m,) numbers of calls.
        weights: (m,) weights w, at least 0, not all 0.
        exploration: From 0 to 1.
        even: (m,) probabilities of the exploration. Default None: uniform, 1 / m.
    """
    spread = 1 / len(weights) if even is None else even
    return Proposal(calls, (1 - exploration) * weights / weights.sum() + exploration * spread)


def parts_of(
    mixture: Mapping[str, Floats], of_call: Bools, exploration: float, probability: float
) -> dict[str, float]:
    """Return how much of a call's probability each reason contributes, "even" last.

    Args:
        mixture: Reason -> its part (n,) of the weights of all questions.
        of_call: (n,) True for the call's questions.
        exploration: From 0 to 1.
        probability: The call's probability, exploration included.
    """
    total = sum(float(part.sum()) for part in mixture.values())
    parts = {
        reason: (1 - exploration) * float(part[of_call].sum()) / total
        for reason, part in mixture.items()
    }
    return parts | {"even": max(probability - sum(parts.values()), 0.0)}


class Replay:
    """The draws of model A's earlier audit, which come first in an audit of A and B.

    B is asked what A was asked, in A's order, so that only B is paid for. The proposal of each such
    draw is A's, as journaled. It was fixed by A's earlier answers and drawn with A's key, and
    neither knew anything of B. So the draw is random given everything before it in either audit.

    Predictions for draw t may therefore use both models' losses on draws before t. They must not
    use A's later losses, which show the questions that are still to come. The draw at which A's
    audit ended depends on A's answers until then, so the audit may continue from there.

    The argument fails if B depends on A's draws: if B was trained on the failures of A's audit, or
    if targets were chosen by them.

    Args:
        journal: A's journal, which has to stay open: proposals are read when they are needed.
        facts: Its facts.
        where: Its path, for error messages.

    Raises:
        InputError: If A's proposals give some candidates no chance.
    """

    def __init__(self, journal: Journal, facts: Facts, where: str) -> None:
        if facts.settings.exploration <= 0:
            got = "exploration = 0, with which some are never drawn"
            raise InputError(_message(where, "proposals that give every candidate a chance", got))
        self._journal, self._where = journal, where
        self._subsets = facts.certificate and (facts.certificate.targets, facts.certificate.subsets)
        self.draws: Sequence[DrawRow] = journal.draws(proposals=False)
        self._settings = facts.settings
        self._stratified = any("stratum" in draw.why for draw in self.draws)
        self.strata: Indices | None = None
        """The strata of calls that A's draws came from (``CallStrata``); None: not of calls."""
        if self._stratified and facts.settings.answers == "all" and facts.population:
            masks = [unpack(target["variants"]) for target in facts.population["targets"]]
            self.strata = by_variant(np.array(masks))
        self.facts = ReplayFacts(key=facts.key, draws=len(self.draws), head=journal.head)

    def check(
        self, targets: Sequence[str], subsets: str, stratified: bool, candidates: int
    ) -> None:
        """Raise InputError if A's draws came from other strata than this audit has.

        Args:
            targets: Names of this audit's targets.
            subsets: Their ``certify.targets.fingerprint``.
            stratified: True if they form strata.
            candidates: This audit's number of candidates per draw.
        """
        if not self._stratified:
            return
        differ = self.strata is None and self._subsets != (tuple(targets), subsets)
        if differ or not stratified:
            names = ", ".join(self._subsets[0]) if self._subsets else "none"
            got = f"{', '.join(targets)}; A's draws chose groups of questions by its targets"
            raise InputError(_message(self._where, f"the targets of that audit ({names})", got))
        if self._settings.answers == "all" and self._settings.candidates != candidates:
            expected = f"candidates = {self._settings.candidates}, as in that audit"
            raise InputError(_message(self._where, expected, f"{candidates}"))

    def at(self, number: int) -> DrawRow | None:
        """Return A's draw of this number, without its proposal; None if A made fewer draws."""
        return self.draws[number] if number < len(self.draws) else None

    def proposal(self, number: int) -> Proposal:
        """Return the proposal of A's draw; raise JournalError if the draw does not match it."""
        proposal, draw = Proposal.unpack(self._journal.proposal(number)), self.draws[number]
        probability = proposal.probabilities[proposal.calls == draw.call]
        if len(probability) != 1 or probability[0] != draw.probability:
            expected = f"draw {number} to be drawn from its proposal"
            raise damaged(f"journal_a {self._where!r}", expected, "another proposal")
        return proposal


def _message(where: str, expected: str, got: str) -> str:
    return f"journal_a {where!r}: replay: expected {expected}, got {got}; take use = 'condition'"
