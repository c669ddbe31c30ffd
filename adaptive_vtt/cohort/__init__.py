"""Cohorts: what three or more other models lost on the same questions."""

from .cohort import MIN_MODELS, Cohort
from .members import Item, Known, Member

__all__ = ["MIN_MODELS", "Cohort", "Item", "Known", "Member"]
