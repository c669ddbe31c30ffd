"""Slices: groups of questions in which failures concentrate, by the answers so far.

Proposers say what questions may have in common (``Atom``); ``PROPOSERS`` lists them.
``search.find`` looks at conjunctions of atoms and ranks them; ``looking`` says when an audit looks.
A slice is a guess: it becomes a target, and only draws made after that certify it
(``certify.rules``: their share of alpha was set aside when the audit began).
"""

from .looking import explore
from .proposers import PROPOSERS, Atom, atoms_of
from .search import Evidence, Slice, find

__all__ = ["PROPOSERS", "Atom", "Evidence", "Slice", "atoms_of", "explore", "find"]
