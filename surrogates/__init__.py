"""Surrogates: what the audit believes about the model, given the answers so far."""

if __name__ != "adaptive_vtt.surrogates":
    raise ImportError("this folder is imported as adaptive_vtt.surrogates, not as surrogates")

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adaptive_vtt.utils.importing import lazily
from adaptive_vtt.utils.registry import Registry

from .base import BINS, Form, History, Posterior, Surrogate

if TYPE_CHECKING:
    from .answer_gp import AnswerGP, AnswerPoints, lowest_with_hard_answers
    from .features import embed, sample_features
    from .loss_mean import Losses
    from .predictability import Predictability
    from .question_gp import LossSurrogate, QuestionGP

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "BINS",
    "REGISTRY",
    "AnswerGP",
    "AnswerPoints",
    "Form",
    "History",
    "LossSurrogate",
    "Losses",
    "Named",
    "Posterior",
    "Predictability",
    "QuestionGP",
    "Surrogate",
    "embed",
    "lowest_with_hard_answers",
    "named",
    "sample_features",
]

REGISTRY = Registry(
    "surrogate",
    "surrogates",
    ("observe", "posterior"),
    {"question-gp": f"{__name__}.question_gp:QuestionGP"},
)
"""What may predict losses where an audit certifies: the question GP, or another that takes the
arguments that it takes. The paper's answer GP predicts none, so it has no name here."""


class Named(NamedTuple):
    """What journals call a surrogate, and the class or function that makes one."""

    name: str
    make: Callable[..., Any]


def named(surrogate: "str | Named", base: Path | None = None) -> Named:
    """The surrogate of that name, not made yet; a relative file starts at ``base``.

    Raises InputError for an unknown name, and for code that cannot be imported.
    """
    if isinstance(surrogate, Named):
        return surrogate
    return Named(surrogate, REGISTRY.get(surrogate, base))
