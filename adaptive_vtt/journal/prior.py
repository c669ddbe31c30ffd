"""What an earlier audit found, read from its journal."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..types import Floats, Indices
from .facts import SpaceFacts, read_facts
from .opening import read_journal

PriorSource = Path | str
"""Where the journal of an earlier audit is: its file."""


@dataclass(frozen=True)
class Prior:
    """The judged questions (n,) of an earlier audit, ascending, and their losses (n,) in [0, 1].

    Questions that did not count are not among them: the loss that is journaled with them is a
    placeholder and was never found.
    ``where``: its file; ``key``: its own, None in journals of versions before keys; ``space``:
    what it asked about.
    """

    where: str
    key: str | int | None
    space: SpaceFacts
    questions: Indices
    losses: Floats


def read_prior(path: PriorSource) -> Prior:
    """The audit in a journal file; raises JournalError where there is none."""
    with closing(read_journal(path)) as journal:
        facts = read_facts(journal.facts())
        answers = [a for call in journal.calls() for a in call.answers]
    known = sorted((a.question, a.loss) for a in answers if a.loss is not None and not a.excluded)
    questions = np.array([q for q, _ in known], np.int64)
    losses = np.array([loss for _, loss in known], float)
    return Prior(str(path), facts.key, facts.space, questions, losses)
