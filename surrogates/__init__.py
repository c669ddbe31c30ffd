"""Surrogates: what the audit believes about the model, given the answers so far."""

if __name__ != "adaptive_vtt.surrogates":
    raise ImportError("this folder is imported as adaptive_vtt.surrogates, not as surrogates")

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adaptive_vtt.errors import check_known
from adaptive_vtt.utils.importing import lazily
from adaptive_vtt.utils.options import check_options, options_of
from adaptive_vtt.utils.registry import Registry

from .base import BINS, Form, History, Posterior, Surrogate

if TYPE_CHECKING:
    from .answer_gp import AnswerGP, AnswerPoints, lowest_with_hard_answers
    from .features import embed, sample_features
    from .loss_mean import Losses
    from .predictability import Predictability
    from .question_gp import LossSurrogate, QuestionGP
    from .question_model import QuestionModel

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "BINS",
    "QUESTION_GP",
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
    "QuestionModel",
    "Surrogate",
    "embed",
    "lowest_with_hard_answers",
    "named",
    "sample_features",
]

QUESTION_GP = "question-gp"
"""The surrogate of losses, where none is named."""

REGISTRY = Registry(
    "surrogate",
    "surrogates",
    ("observe", "posterior"),
    {QUESTION_GP: f"{__name__}.question_gp:QuestionGP"},
)
"""What may predict losses where an audit certifies: the question GP, or another that takes the
arguments that it takes. The paper's answer GP predicts none, so it has no name here."""


class Named(NamedTuple):
    """What journals call a surrogate, the class or function that makes one, and the options that
    this takes beside what an audit gives it."""

    name: str
    make: Callable[..., Any]
    options: Mapping[str, Any] = {}


def named(
    surrogate: "str | Named",
    options: Mapping[str, Any] | None = None,
    base: Path | None = None,
) -> Named:
    """The surrogate of that name, not made yet; a relative file starts at ``base``.

    Raises InputError for an unknown name, for code that cannot be imported, and for options that
    a built-in one does not have, or that are out of range.
    """
    if isinstance(surrogate, Named):
        return surrogate
    make, given, where = REGISTRY.get(surrogate, base), options or {}, f"surrogate {surrogate!r}"
    for name in given if not REGISTRY.is_code(surrogate) else ():
        check_known("option", name, [told.name for told in options_of(make)], where)
    check_options(make, given, where)
    return Named(surrogate, make, given)
