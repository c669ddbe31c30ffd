"""The journal: the ledger of draws and answers, in SQLite or in memory.

Every report can be recomputed from the journal alone. A draw is committed before its call is sent,
and an answer is committed whole before anything is learnt from it. The journal is also the cache:
an answered call is never paid for again. All rows form one chain of hashes (``chain``), which
reveals any later change.
"""

from typing import TYPE_CHECKING

from ..utils.importing import lazily

if TYPE_CHECKING:
    from .base import Journal
    from .chain import Link, check_chain, check_head, check_undamaged, with_proposal
    from .in_memory import MemoryJournal
    from .opening import (
        JournalSource,
        answered,
        as_of,
        begin_anew,
        closed_on_error,
        holds_answers,
        open_journal,
        opened,
        read_journal,
        recall,
    )
    from .rows import FIGURES
    from .sqlite import VERSION, SQLiteJournal

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "FIGURES",
    "VERSION",
    "Journal",
    "JournalSource",
    "Link",
    "MemoryJournal",
    "SQLiteJournal",
    "answered",
    "as_of",
    "begin_anew",
    "check_chain",
    "check_head",
    "check_undamaged",
    "closed_on_error",
    "holds_answers",
    "open_journal",
    "opened",
    "read_journal",
    "recall",
    "with_proposal",
]
