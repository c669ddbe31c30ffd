"""Surrogates: what the audit believes about the model, given the answers so far."""

if __name__ != "adaptive_vtt.surrogates":
    raise ImportError("this folder is imported as adaptive_vtt.surrogates, not as surrogates")

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adaptive_vtt.errors import brief, check_known, unexpected
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
"""Name of the default surrogate of losses."""

REGISTRY = Registry(
    "surrogate",
    "surrogates",
    ("observe(losses)", "posterior(candidates)"),
    {QUESTION_GP: f"{__name__}.question_gp:QuestionGP"},
)
"""Surrogates of losses: the question GP, or another with the same arguments. The paper's answer GP
predicts no losses, so it has no name here."""


class Named(NamedTuple):
    """A surrogate that is not built yet.

    Attributes:
        name: Name in journals.
        make: Class or function that builds it.
        options: Arguments of ``make`` in addition to those that an audit passes.
    """

    name: str
    make: Callable[..., Any]
    options: Mapping[str, Any] = {}


def named(
    surrogate: "str | Named", options: Mapping[str, Any] | None = None, base: Path | None = None
) -> Named:
    """Find a surrogate by name, without building it.

    Args:
        surrogate: Built-in name, name in a package, ``file.py:name``, or a result of this function.
        options: Options of a named surrogate. Default None: none.
        base: Folder that relative files start from. Default None: the working folder.

    Raises:
        InputError: The name is unknown, its code cannot be imported, or an option of a built-in
            surrogate is unknown or out of range.
    """
    if isinstance(surrogate, Named):
        return surrogate
    if not isinstance(surrogate, str):
        raise unexpected("surrogate", "a name, or surrogates.Named(name, class)", brief(surrogate))
    make, options = REGISTRY.get(surrogate, base), options or {}
    owner = f"surrogate {surrogate!r}"
    for name in options if not REGISTRY.is_code(surrogate) else ():
        check_known("option", name, [option.name for option in options_of(make)], owner)
    if not callable(make):
        raise unexpected(owner, "a class or a function", f"an object of {type(make).__name__}")
    check_options(make, options, owner)
    return Named(surrogate, make, options)
