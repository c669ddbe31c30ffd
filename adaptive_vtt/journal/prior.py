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
"""Where the journal of an earlier audit is: its file."""


@dataclass(frozen=True)
class Prior:
    """The judged questions (n,) of an earlier audit, ascending, their losses (n,) in [0, 1], and
    the rows they stand in.

    Questions that did not count are not among them: the loss that is journaled with them is a
    placeholder.
    ``where``: its file; ``key``: its own; ``space``: what it asked about; ``model``:
    which; ``ended``: whether it has.
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
    """The audit in a journal file; raises JournalError where there is none."""
    with closing(read_journal(path)) as journal:
        facts = read_facts(journal.facts())
        answers = [a for call in journal.calls() for a in call.answers]
    judged = [a for a in answers if a.loss is not None and not a.excluded]
    known = tuple(sorted(judged, key=lambda row: row.question))
    questions = np.array([row.question for row in known], np.int64)
    losses = np.array([row.loss for row in known], float)
    ended, model = facts.ended is not None, facts.settings.model
    return Prior(str(path), facts.key, facts.space, questions, losses, known, model, ended)
