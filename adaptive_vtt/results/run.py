"""A run: a journal read once, and the figures that follow from its rows.

Facts, rows and figures are read, or computed, at first use, and kept. So a run shows one moment of
an audit, and all who need several of them share one run.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

import pandas as pd

from ..certify.game import Game
from ..certify.status import Compared, TargetStatus, compared, read_statuses
from ..certify.tracks import Track, counted_track, members_of, played
from ..certify.verify import recompute
from ..certify.verify_counting import counted
from ..engine.repeat_probes import Repeated, repeated
from ..journal import Journal, read_journal
from ..journal.belief_groups import Believed, believed
from ..journal.costs import costs_of
from ..journal.facts import CertificateFacts, Facts, read_facts
from ..journal.files import journal_at
from ..journal.rows import BeliefRow, CallRow, DrawRow, JudgingRow, SourceRow
from ..types import JsonObject
from .outcomes import any_wrong, is_mute, judged


class Run:
    """The content of a journal, read once.

    Args:
        journal: Its journal, in a file or in memory.
        statuses: Every target, from an audit that is still open. None takes them as the end of the
            audit journaled them, or else recomputes them from the rows.
    """

    def __init__(self, journal: Journal, statuses: Sequence[TargetStatus] | None = None) -> None:
        self.journal, self.head = journal, journal.head
        self._known = statuses

    @classmethod
    def of(cls, source: "Journal | Run") -> "Run":
        """Return the run, as it is, or that of a journal."""
        return source if isinstance(source, Run) else cls(source)

    @classmethod
    def opened(cls, where: Path | str) -> Self:
        """Return the run in a folder, or of a journal's file, to be closed after use.

        Raises:
            JournalError: No audit was begun there.
        """
        return cls(read_journal(journal_at(where)))

    def close(self) -> None:
        """Release the journal's file; what was read is kept."""
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what was journaled ------------------------------------------------------------------------

    @cached_property
    def raw(self) -> JsonObject:
        """The facts as stored."""
        return self.journal.facts()

    @cached_property
    def facts(self) -> Facts:
        """The facts, checked. Raises JournalError if no audit was begun."""
        return read_facts(self.raw)

    @property
    def certificate(self) -> CertificateFacts | None:
        """The targets, the goal and the confidence; None in audits that certify nothing."""
        return self.facts.certificate

    @cached_property
    def draws(self) -> list[DrawRow]:
        """All draws, without their proposals."""
        return self.journal.draws(proposals=False)

    @cached_property
    def calls(self) -> list[CallRow]:
        """All answered calls, in the order of their commit."""
        return self.journal.calls()

    @cached_property
    def sources(self) -> list[SourceRow]:
        """All answers about source images."""
        return self.journal.sources()

    @cached_property
    def judging(self) -> list[JudgingRow]:
        """All steps of asking a judge."""
        return self.journal.judging()

    @cached_property
    def pictures(self) -> dict[int, tuple[bytes, bytes]]:
        """Source and follow-up PNG by call, of those that were kept."""
        return self.journal.pictures()

    @cached_property
    def belief_rows(self) -> list[BeliefRow]:
        """Predictions at checkpoints."""
        return self.journal.beliefs()

    @cached_property
    def believed(self) -> Believed | None:
        """The groups of ``belief_rows``; None if none were kept."""
        return believed(self.raw)

    # -- what follows ------------------------------------------------------------------------------

    @cached_property
    def table(self) -> pd.DataFrame:
        """The outcomes, one row per judged question; see ``results.outcomes``."""
        return judged(self.facts, self.draws, self.calls)

    @property
    def cost(self) -> float:
        """Cost of all answers, those about source images and of a judge included."""
        return costs_of(self.calls, self.sources, self.judging).cost

    @property
    def unconfirmed(self) -> float:
        """The part of ``cost`` that may not have been charged."""
        return costs_of(self.calls, self.sources, self.judging).unconfirmed

    @cached_property
    def repeat_probes(self) -> Repeated | None:
        """How many answers asked again differ; None if none were."""
        return repeated(self.sources, self.calls)

    @cached_property
    def intervals(self) -> Sequence[TargetStatus]:
        """Every target's interval, as the end journaled it or recomputed from the rows; [] without
        a certificate."""
        certificate, rows = self.certificate, self._known
        if certificate is None:
            return []
        if rows is None and self.facts.intervals is not None:
            rows = read_statuses(certificate, self.facts.intervals)
        if certificate.counted:
            return rows or counted(certificate, self.facts.population, self.calls)
        rows, mute = rows or recompute(certificate, self.draws, self.calls), is_mute(self.calls)
        return [replace(row, certified=row.certified and not mute) for row in rows]

    @cached_property
    def statuses(self) -> list[TargetStatus]:
        """Every target with its counts, in the order of the certificate; [] without one."""
        certificate, rows = self.certificate, self.intervals
        if certificate is None:
            return []
        rows = [replace(row, baseline=certificate.constant(k)) for k, row in enumerate(rows)]
        if certificate.counted:
            shares = any_wrong(self.facts, self.calls, rows)
            return [replace(r, any_wrong=share) for r, share in zip(rows, shares, strict=True)]
        answered, excluded = [0] * len(rows), [0] * len(rows)
        answers = {call.call: call.answers for call in self.calls}
        for draw in self.draws:
            if draw.call not in answers:
                continue
            asked = [answer.question for answer in answers[draw.call]]
            out = {answer.question for answer in answers[draw.call] if answer.excluded}
            for k, members in enumerate(members_of(certificate, draw, asked)):
                answered[k] += len(members)
                excluded[k] += len(out.intersection(members))
        counts = zip(rows, answered, excluded, strict=True)
        return [replace(row, questions=count, excluded=out) for row, count, out in counts]

    @cached_property
    def compared(self) -> list[Compared]:
        """The comparison of two models per target; [] of one model."""
        facts = self.facts
        return compared(facts.certificate, self.statuses, self.draws, self.calls, facts.known_a)

    @cached_property
    def played(self) -> tuple[Game | None, list[Track]]:
        """The game of intervals at the end, None without one; every target's track."""
        if self.certificate is None:
            return None, []
        if self.certificate.counted:
            return None, [counted_track(status) for status in self.statuses]
        return played(self.certificate, self.draws, self.calls)

    @property
    def history(self) -> list[Track]:
        """Every target's interval over the draws, in the order of the certificate."""
        return self.played[1]
