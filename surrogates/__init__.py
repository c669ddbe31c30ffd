"""Surrogates: what the audit believes about the model, given the answers so far."""

if __name__ != "adaptive_vtt.surrogates":
    raise ImportError("this folder is imported as adaptive_vtt.surrogates, not as surrogates")

from adaptive_vtt.utils.registry import Registry

from .answer_gp import AnswerGP, AnswerPoints
from .base import Posterior, Surrogate
from .embedding import embed
from .features import sample_features
from .loss_mean import Losses
from .predictability import Predictability
from .question_gp import QuestionGP

__all__ = [
    "REGISTRY",
    "AnswerGP",
    "AnswerPoints",
    "Losses",
    "Posterior",
    "Predictability",
    "QuestionGP",
    "Surrogate",
    "embed",
    "sample_features",
]

REGISTRY = Registry(
    "surrogate",
    "surrogates",
    ("observe", "posterior"),
    {
        "answer-gp": f"{__name__}.answer_gp:AnswerGP",
        "question-gp": f"{__name__}.question_gp:QuestionGP",
    },
)
"""What beliefs are made of. Audits that certify predict losses with the question GP."""
