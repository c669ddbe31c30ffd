"""What an audit is begun with: checked, described for the journal, compared on resuming."""

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InputError, JournalError, ModelError, listed
from ..journal.facts import Facts, without_ids
from ..models.base import ModelDefaults
from ..models.checking import currency_of, is_cost, name_of
from ..space import QuestionSpace
from ..strategies import Named, Strategy
from ..types import CallMode, JsonObject
from ..utils.figures import USD
from .options import Sampling


def public_options(strategy: Strategy) -> dict[str, Any]:
    """A strategy's options, as its plain attributes."""
    plain = (int, float, str, bool)
    return {k: v for k, v in vars(strategy).items() if k[0] != "_" and isinstance(v, plain)}


def describe_settings(
    space: QuestionSpace, model: ModelDefaults, sampling: Sampling, chosen: Named, **plain: Any
) -> JsonObject:
    """What an audit was begun with, by name; ``plain`` are options as they were given."""
    return {
        "strategy": chosen.name,
        **plain,
        "candidates": sampling.candidates,
        "form": sampling.form,
        "history": sampling.history,
        "strategy_options": public_options(chosen.strategy),
        "answers": model.answers,
        "model": name_of(model),
        "oracle": describe_oracle(space),
        "template": model.template_hash,
    }


def describe_oracle(space: QuestionSpace) -> JsonObject:
    """The oracle's class and plain attributes, as JSON gives them back."""
    oracle = space.oracle.original
    plain = (int, float, str, bool, tuple)
    options: dict[str, Any] = {k: v for k, v in vars(oracle).items() if isinstance(v, plain)}
    if space.oracle.regime is not None:
        options["regime"] = space.oracle.regime
    if space.oracle.tells_losses:
        options["tells_losses"] = True
    if space.oracle.judge_by is not None:
        options["judge"] = space.oracle.judge_by.describe()
    described = {"name": type(oracle).__name__, "needs_source": oracle.needs_source, **options}
    described["rates"] = dict(space.oracle.rates)
    return {k: list(v) if isinstance(v, tuple) else v for k, v in described.items()}


def describe_space(space: QuestionSpace) -> JsonObject:
    return {
        "fingerprint": space.fingerprint,
        "dataset": space.dataset.name,
        "samples": len(space.dataset),
        "concepts": list(space.concepts),
        "variants": [[v.relation.name, v.severity] for v in space.variants],
        "size": space.size,
        "cell_counts": space.cell_counts.tolist(),
        "seed": space.seed,
        "concepts_are": space.oracle.concepts_are,
        "left_out": space.left_out,
        "shown": space.shown,
    }


def other_pictures(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Why pictures are others, of two ``QuestionSpace.shown``; None where they are the same."""
    return next((what for what in {**before, **now} if before.get(what) != now.get(what)), None)


def same_audit(
    facts: Facts,
    space: QuestionSpace,
    settings: Mapping[str, Any],
    answered: Callable[[], bool] = lambda: True,
) -> None:
    """Raises JournalError where an audit with ``facts`` was begun with another space or settings.

    ``answered``: whether its journal holds answers; where not, the error says how to begin anew.
    """
    if facts.rejudged is not None and settings:
        raise JournalError(
            f"journal: holds answers of {facts.rejudged.source!r}, judged anew by another oracle; "
            "its draws were made for the first one, so go on with that audit, and judge it again"
        )
    if not (difference := _other_audit(facts, space, settings)):
        return
    if answered():
        difference += "; give what it was begun with, or begin another audit in another folder"
    else:
        difference += (
            "; it holds no answer yet: to begin anew give journal=adaptive_vtt.journal.begin_anew("
            "Path(...)), which sets it aside and counts calls that may have been lost"
        )
    raise JournalError(difference)


def _other_audit(facts: Facts, space: QuestionSpace, settings: Mapping[str, Any]) -> str | None:
    """What makes it another audit, in words."""
    then = facts.space
    if then.fingerprint != space.fingerprint:
        alike = (then.dataset, then.size) == (space.dataset.name, space.size)
        changed = ": other images, truths, boxes, or options of relations" if alike else ""
        lists = {
            "relations": (
                then.relations,
                [*dict.fromkeys(v.relation.name for v in space.variants)],
            ),
            "concepts": (then.concepts, space.concepts),
        }
        for what, (were, are) in lists.items():
            if [*were] != [*are]:
                changed = f": {what} {listed(were)}, not {listed(are)}"
                break
        return (
            f"journal: belongs to another space: {then.dataset!r} with {then.size} "
            f"questions, not {space.dataset.name!r} with {space.size}{changed}"
        )
    for name, value in settings.items():
        before, now = facts.begun_with.get(name), without_ids(value)
        if name == "certificate" and before != now and (difference := _other_targets(before, now)):
            return f"journal: was begun with {difference}"
        if before != now and name == "template":
            return _other_template(facts, before, now)
        if before != now:
            return f"journal: was begun with {_difference(name, before, now)}"
    return None


def _other_template(facts: Facts, before: Any, now: Any) -> str:
    called = facts.protocol.template
    whose = "" if called is None else f" of {called!r}"
    return (
        f"journal: was begun with other words of the prompt, those{whose} with the hash {before}, "
        f"and the template's hash is {now} now; restore the template, or begin a new audit"
    )


def _other_targets(before: Any, now: Any) -> str | None:
    """How two certificates differ in their targets: all else may follow from that."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return None
    if before["targets"] != now["targets"]:
        then, given = before["targets"], now["targets"]
        return f"{len(then)} targets, {listed(then)}, not with {len(given)}, {listed(given)}"
    if before["subsets"] != now["subsets"]:
        return "targets of these names that are about other questions (where=, [certify.where])"
    return None


def _difference(name: str, before: Any, value: Any) -> str:
    """What differs first, in words; of tables the field."""
    if isinstance(before, dict) and isinstance(value, dict):
        for key in [*value, *before]:
            if before.get(key) != value.get(key):
                return _difference(f"{name} {key}", before.get(key), value.get(key))
    return f"{name} {before!r}, not {value!r}"


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
                f"{who} a model that takes words, as this relation says where to look and "
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


def currency_paid(model: ModelDefaults, judge: ModelDefaults | None, facts: Facts | None) -> str:
    """The currency of all costs of an audit, which goes on with ``facts`` (None: a new one).

    Raises InputError where model and judge are paid in two, JournalError where the journal's costs
    are in another.
    """
    models = [model] if judge is None else [model, judge]
    now, before = currency_of(models, "oracle.judge"), None if facts is None else facts.currency
    if now and before and now != before:
        raise JournalError(
            f"journal: expected prices in {before}, as what it spent is, got {now}; give prices "
            f"and caps in {before}"
        )
    return now or before or USD


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
