"""What is refused before anything is asked: a model or a limit that does not fit."""

from ..errors import InputError, ModelError
from ..models.base import ModelDefaults
from ..models.checking import is_cost, name_of
from ..space import QuestionSpace
from ..types import CallMode


def check_model(model: ModelDefaults, space: QuestionSpace) -> None:
    """Raises ModelError or InputError where the model cannot be asked about the space."""
    if model.answers not in ("one", "all"):
        raise ModelError(f"model {name_of(model)!r}: answers must be 'one' or 'all'")
    if model.needs_image and not space.dataset.has_images:
        raise InputError(
            f"model {name_of(model)!r} looks at images, but dataset {space.dataset.name!r} has "
            "none; name their folder by images = ... in [dataset]"
        )
    if not model.takes_words:
        _check_words(model, space)


def _check_words(model: ModelDefaults, space: QuestionSpace) -> None:
    """Raises InputError for a relation whose words would not reach the model."""
    for relation in {v.relation.name: v.relation for v in space.variants}.values():
        who = f"relation {relation.name!r} and model {name_of(model)!r}: expected"
        if model.template_hash is not None and relation.in_words != "nothing":
            raise InputError(
                f"{who} a prompt that says what is marked in the image, got a template without "
                "{words}; put {words} where that is to stand"
            )
        if relation.in_words == "only":
            raise InputError(
                f"{who} a model that takes words, as this relation tells where to look and "
                "changes no pixel, got one that does not; leave the relation out, or, if the "
                "model goes by Prompt.words, say takes_words = True of it (in [model] of a "
                "program takes_words = true; of an http request {words})"
            )


def check_cost(model: ModelDefaults, max_cost: float | None) -> None:
    """Raises InputError where a cap on cost could not be kept."""
    if max_cost is not None and not model.prices_known:
        raise InputError(
            f"max_cost: expected the prices of model {name_of(model)!r} to be known, as the cap "
            "could not be kept otherwise; got none; say price_per_call, or price_input and "
            "price_output, in [model], or give a budget of calls instead"
        )
    most = 0.0 if model.most_cost is None else model.most_cost
    if not is_cost(most):
        raise InputError(
            f"model {name_of(model)!r}: expected a most_cost that is finite and 0 or more, got "
            f"{most}"
        )
    if max_cost is not None and 0 < max_cost < most:
        raise InputError(
            f"max_cost: expected at least {most:g}, which a single call of model "
            f"{name_of(model)!r} may cost with its longest prompt and reply and all retries; "
            f"got {max_cost:g}"
        )


def check_judge(space: QuestionSpace, model: ModelDefaults, max_cost: float | None) -> None:
    """Raises InputError where a cap on cost could not be kept with the judge of the oracle, which
    may be asked about every question that a call answers."""
    if space.oracle.judge_by is None or max_cost is None:
        return
    judge, per_call = space.oracle.judge_by.model, questions_per_call(space, model.answers)
    if not judge.prices_known:
        raise InputError(
            f"max_cost: expected the prices of the judge {name_of(judge)!r} to be known, as the "
            "cap could not be kept otherwise; got none; say price_per_call, or price_input and "
            "price_output, in [oracle.judge.model]"
        )
    most = float(model.most_cost or 0.0) + per_call * float(judge.most_cost or 0.0)
    if 0 < max_cost < most:
        raise InputError(
            f"max_cost: expected at least {most:g}, which a single call of model "
            f"{name_of(model)!r} and the judge {name_of(judge)!r} may cost together with their "
            f"longest prompts and replies and all retries; got {max_cost:g}"
        )


def questions_per_call(space: QuestionSpace, answers: CallMode) -> int:
    """How many questions a call answers at most."""
    return 1 if answers == "one" else len(space.concepts)


def check_budget(budget: int | None, question: int) -> None:
    """Raises InputError for a budget that is not enough for one question and all repeat probes."""
    if budget is not None and 0 < budget < question:
        raise InputError(
            f"budget: expected at least {question} calls, which one question may take with all "
            f"that has to be asked about its source image, and all repeat probes; got {budget}"
        )
