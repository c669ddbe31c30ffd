"""The draws of an earlier audit gone through again before an audit draws questions of its own.

Where model A was audited before, B may be asked what A was asked, in A's order, so that of each
pair only B is paid for. The proposal of such a draw is A's, as journaled: it was fixed by A's
earlier answers and drawn by A's key, which knew nothing of B. So a draw is random given all that
comes before it in either audit, and what is expected of the pair at draw t may follow from both
models' losses on draws before t. From A's later losses it may not: those tell which questions are
still to come. That A's audit ended when it did follows from its answers by then, so it may be gone
on from.

It fails where B knows the draws: a model that was mended with what A's audit found, and targets
that were chosen by it, are right or wrong about these very questions and no others.
"""

from collections.abc import Sequence

from ..errors import InputError, JournalError
from ..journal import Journal
from ..journal.facts import Facts, ReplayFacts
from ..journal.rows import DrawRow
from .proposal import Proposal


class Replay:
    """The draws in the ``journal`` of an audit with ``facts``, at ``where`` for errors.

    Proposals are read as they are needed, so the journal has to stay open. Raises InputError for
    draws whose proposals leave candidates out.
    """

    def __init__(self, journal: Journal, facts: Facts, where: str) -> None:
        if facts.settings.exploration <= 0:
            got = "exploration = 0, with which some are never drawn"
            raise InputError(_message(where, "proposals that give every candidate a chance", got))
        self._journal, self._where = journal, where
        self._subsets = facts.certificate and (facts.certificate.targets, facts.certificate.subsets)
        self.draws: Sequence[DrawRow] = journal.draws(proposals=False)
        self.facts = ReplayFacts(key=facts.key, draws=len(self.draws), head=journal.head)

    def check(self, targets: Sequence[str], subsets: str, stratified: bool) -> None:
        """Raises InputError where the draws chose among strata of other targets than these, named
        and hashed (``certify.targets.fingerprint``); ``stratified``: whether these have some."""
        if not any("stratum" in draw.why for draw in self.draws):
            return
        if not stratified or self._subsets != (tuple(targets), subsets):
            mine = ", ".join(self._subsets[0]) if self._subsets else "none"
            got = f"{', '.join(targets)}; A's draws chose groups of questions by its targets"
            raise InputError(_message(self._where, f"the targets of that audit ({mine})", got))

    def at(self, number: int) -> DrawRow | None:
        """The draw of this number, without its proposal; None where the audit draws by itself."""
        return self.draws[number] if number < len(self.draws) else None

    def proposal(self, number: int) -> Proposal:
        """The proposal of a draw. Raises JournalError where the draw is not of it."""
        proposal, draw = Proposal.unpack(self._journal.proposal(number)), self.draws[number]
        told = proposal.probabilities[proposal.calls == draw.call]
        if len(told) != 1 or told[0] != draw.probability:
            raise JournalError(
                f"journal_a {self._where!r}: expected draw {number} to be drawn from its "
                f"proposal, got "
                "another proposal; the journal is damaged: restore a copy of it"
            )
        return proposal


def _message(where: str, expected: str, got: str) -> str:
    return f"journal_a {where!r}: replay: expected {expected}, got {got}; take use = 'condition'"
