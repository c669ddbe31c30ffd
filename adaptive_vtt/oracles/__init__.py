"""Oracles: answer and expectation in, outcome out."""

from .base import Oracle, Outcome
from .correctness import Correctness

__all__ = ["Correctness", "Oracle", "Outcome"]
