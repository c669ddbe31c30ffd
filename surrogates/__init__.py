"""Surrogates: what the audit believes about the model, given the answers so far."""

if __name__ != "adaptive_vtt.surrogates":
    raise ImportError("this folder is imported as adaptive_vtt.surrogates, not as surrogates")

from .answer_gp import AnswerGP, AnswerPoints
from .base import Posterior, Surrogate
from .predictability import Predictability

__all__ = ["AnswerGP", "AnswerPoints", "Posterior", "Predictability", "Surrogate"]
