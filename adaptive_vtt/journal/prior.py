"""Read the answers of an earlier audit from its journal."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..types import Floats, Indices
from .facts import SpaceFacts, read_facts
from .opening import read_journal
from .rows import AnswerRow

PriorSource = Path | str
"""File of the journal of an earlier audit."""


@dataclass(frozen=True)
class Prior:
    """The judged questions of an earlier audit.

    Excluded questions are omitted: the loss that is journaled with them is a placeholder.

    Attributes:
        where: The journal's file.
        key: The earlier audit's key.
        space: Its question space.
        questions: (n,) question numbers, ascending.
        losses: (n,) their losses in [0, 1].
        answers: The n rows that they come from.
        model: Name of the model.
        ended: True if that audit has ended.
    """

    where: str
    key: str
    space: SpaceFacts
    questions: Indices
    losses: Floats
    answers: tuple[AnswerRow, ...]
    model: str = ""
    ended: bool = True


def read_prior(path: PriorSource) -> Prior:
    """Return the judged questions of the audit in a journal file.

    Raises:
        JournalError: No audit was begun there.
    """
    with closing(read_journal(path)) as journal:
        facts = read_facts(journal.facts())
        answers = [a for call in journal.calls() for a in call.answers]
    judged = [a for a in answers if a.loss is not None and not a.excluded]
    known = tuple(sorted(judged, key=lambda row: row.question))
    questions = np.array([row.question for row in known], np.int64)
    losses = np.array([row.loss for row in known], float)
    ended, model = facts.ended is not None, facts.settings.model
    return Prior(str(path), facts.key, facts.space, questions, losses, known, model, ended)
