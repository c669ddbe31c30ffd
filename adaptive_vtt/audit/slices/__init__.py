"""Slices: groups of questions in which failures concentrate, by the answers so far.

Proposers return properties that questions may share (``Atom``; ``PROPOSERS``). ``search.find``
ranks conjunctions of atoms. ``looking`` decides when a running audit searches. A slice is only a
hypothesis: it becomes a target, which later draws certify, with a share of alpha that was set aside
when the audit began (``certify.rules``).
"""

from .looking import explore
from .proposers import PROPOSERS, Atom, atoms_of
from .search import Evidence, Slice, find

__all__ = ["PROPOSERS", "Atom", "Evidence", "Slice", "atoms_of", "explore", "find"]
