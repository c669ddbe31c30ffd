"""Settings of an audit: check them, describe them for the journal, compare them on resuming."""

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InputError, JournalError, ModelError, listed, unexpected
from ..journal.facts import Facts, without_ids
from ..models.base import ModelDefaults
from ..models.checking import currency_of, is_cost, name_of
from ..space import QuestionSpace
from ..strategies import Named, Strategy
from ..types import CallMode, JsonObject
from ..utils.figures import USD
from .options import Certify, Limits, Sampling


def public_options(strategy: Strategy) -> dict[str, Any]:
    """Return a strategy's options: its public attributes that are numbers, texts or flags."""
    plain = (int, float, str, bool)
    return {k: v for k, v in vars(strategy).items() if k[0] != "_" and isinstance(v, plain)}


def describe_settings(
    space: QuestionSpace, model: ModelDefaults, sampling: Sampling, chosen: Named, **plain: Any
) -> JsonObject:
    """Return the fact "settings" of a new journal, with ``plain`` options as they were given."""
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
    """Return the oracle's name and plain attributes, as JSON returns them."""
    oracle = space.oracle.original
    plain = (int, float, str, bool, tuple)
    options: dict[str, Any] = {k: v for k, v in vars(oracle).items() if isinstance(v, plain)}
    if space.oracle.regime is not None:
        options["regime"] = space.oracle.regime
    if space.oracle.tells_losses:
        options["tells_losses"] = True
    if space.oracle.judge_by is not None:
        options["judge"] = space.oracle.judge_by.describe()
    facts = {"name": space.oracle.journal_name, "needs_source": oracle.needs_source, **options}
    facts["rates"] = dict(space.oracle.rates)
    return {name: list(v) if isinstance(v, tuple) else v for name, v in facts.items()}


def describe_space(space: QuestionSpace) -> JsonObject:
    """Return the fact "space" of a new journal."""
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
    """Return the name of the first difference of two ``QuestionSpace.shown``; None: equal."""
    return next((name for name in {**before, **now} if before.get(name) != now.get(name)), None)


def same_audit(
    facts: Facts,
    space: QuestionSpace,
    settings: Mapping[str, Any],
    answered: Callable[[], bool] = lambda: True,
) -> None:
    """Raise JournalError if an audit began with another space or with other settings.

    Args:
        facts: Facts of its journal.
        space: The space of now.
        settings: Facts of now by name, as a new journal would have them.
        answered: Returns whether the journal has answers. If not, the error says how to start
            again.
    """
    if facts.rejudged is not None and settings:
        raise JournalError(
            f"journal: holds answers of {facts.rejudged.source!r}, judged again by another oracle; "
            "its draws were made for the first one, so resume that audit, and judge it again"
        )
    if not (difference := _other_space(facts, space) or _other_settings(facts, settings)):
        return
    if answered():
        difference += "; give what it was begun with, or begin another audit in another folder"
    else:
        difference += (
            "; it holds no answer yet: to start again give journal=adaptive_vtt.journal.begin_anew("
            "Path(...)), which sets it aside and counts calls that may have been lost"
        )
    raise JournalError(difference)


def _other_space(facts: Facts, space: QuestionSpace) -> str | None:
    """Return how the space differs from the journal's, as a sentence; None if it is the same."""
    then = facts.space
    if then.fingerprint == space.fingerprint:
        return None
    same_size = (then.dataset, then.size) == (space.dataset.name, space.size)
    change = ": other images, truths, boxes, or options of relations" if same_size else ""
    relations = [*dict.fromkeys(v.relation.name for v in space.variants)]
    if [*then.concepts] != [*space.concepts]:
        change = f": concepts {listed(then.concepts)}, not {listed(space.concepts)}"
    if [*then.relations] != relations:
        change = f": relations {listed(then.relations)}, not {listed(relations)}"
    return (
        f"journal: belongs to another space: {then.dataset!r} with {then.size} "
        f"questions, not {space.dataset.name!r} with {space.size}{change}"
    )


def _other_settings(facts: Facts, settings: Mapping[str, Any]) -> str | None:
    """Return the first difference from the journal's settings, as a sentence; None without one."""
    for name, value in settings.items():
        before, now = facts.begun_with.get(name), without_ids(value)
        if before == now:
            continue
        if name == "template":
            template = facts.protocol.template
            source = "" if template is None else f" of {template!r}"
            return (
                f"journal: was begun with other words of the prompt, those{source} with the hash "
                f"{before}, and the template's hash is {now} now; restore the template, or begin a "
                "new audit"
            )
        targets = _other_targets(before, now) if name == "certificate" else None
        return f"journal: was begun with {targets or _difference(name, before, now)}"
    return None


def _other_targets(before: Any, now: Any) -> str | None:
    """Return how two certificates differ in targets; other differences may follow from that."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return None
    if before["targets"] != now["targets"]:
        then, names = before["targets"], now["targets"]
        return f"{len(then)} targets, {listed(then)}, not with {len(names)}, {listed(names)}"
    if before["subsets"] != now["subsets"]:
        return "targets of these names that are about other questions (where=, [certify.where])"
    return None


def _difference(name: str, before: Any, value: Any) -> str:
    """Return what differs first, as a part of a sentence; inside a dict, with the field's name."""
    if isinstance(before, dict) and isinstance(value, dict):
        for key in [*value, *before]:
            if before.get(key) != value.get(key):
                return _difference(f"{name} {key}", before.get(key), value.get(key))
    return f"{name} {before!r}, not {value!r}"


def check_settings(
    space: QuestionSpace, model: ModelDefaults, certify: Certify, sampling: Sampling, limits: Limits
) -> None:
    """Raise InputError or ModelError for options that are out of range, or do not fit together.

    It is called before nets are trained, images are made and models are asked.
    """
    check_model(model, space)
    sampling.check()
    if certify.drops and not (certify.certifies or sampling.everything):
        raise InputError(
            "targets 'drops': expected a half_width to certify them to, got none; give one, in "
            "points of the drop: 0.1 is 10"
        )
    limits.check()
    check_cost(space, model, limits.max_cost)
    certify.check(sampling.share(certify.certifies))
    if certify.certifies:
        certify.check_targets(space)


def check_model(model: ModelDefaults, space: QuestionSpace) -> None:
    """Raise ModelError or InputError if the model cannot be asked about the space."""
    if model.answers not in ("one", "all"):
        raise ModelError(f"model {name_of(model)!r}: answers must be 'one' or 'all'")
    if model.needs_image and not space.dataset.has_images:
        raise InputError(
            f"model {name_of(model)!r} looks at images, but dataset {space.dataset.name!r} has "
            "none; name their folder by images = ... in [dataset]"
        )
    if model.takes_words:
        return
    for relation in {v.relation.name: v.relation for v in space.variants}.values():
        place = f"relation {relation.name!r} and model {name_of(model)!r}"
        if model.template_hash is not None and relation.in_words != "nothing":
            raise InputError(
                f"{place}: expected a prompt that says what is marked in the image, got a template "
                "without {words}; put {words} where that is to stand"
            )
        if relation.in_words == "only":
            raise InputError(
                f"{place}: expected a model that takes words, got one that does not; leave the "
                "relation out, or set takes_words if the model reads Prompt.words "
                "(takes_words=true in a program's [model], {words} in an http request)"
            )


def check_cost(space: QuestionSpace, model: ModelDefaults, max_cost: float | None) -> None:
    """Raise InputError if a cap on cost could not be kept with these prices.

    They are the model's, and those of the oracle's judge model, which may be asked about every
    question of a call.
    """
    asked = [("model", model, 1, "[model], or give a budget: the money over the price of a call")]
    if space.oracle.judge_by is not None:
        count, judge = questions_per_call(space, model.answers), space.oracle.judge_by.model
        asked.append(("judge", judge, count, "[oracle.judge.model]"))
    most, names = 0.0, []
    for kind, each, count, place in asked:
        name, price = f"{kind} {name_of(each)!r}", each.most_cost or 0.0
        if max_cost is not None and not each.prices_known:
            raise InputError(
                f"max_cost: expected the prices of {name} to be known, as the cap could not be "
                "kept otherwise; got none; say price_per_call, or price_input and price_output, "
                f"in {place}"
            )
        if not is_cost(price):
            raise unexpected(name, "a most_cost that is finite and 0 or more", price)
        most += count * price
        names.append(name)
    if max_cost is not None and 0 < max_cost < most:
        raise InputError(
            f"max_cost: expected at least {most:g}, which a call of {' and '.join(names)} may cost "
            f"with the longest prompts and replies and all retries; got {max_cost:g}"
        )


def currency_paid(model: ModelDefaults, judge: ModelDefaults | None, facts: Facts | None) -> str:
    """Return the currency of all costs of an audit.

    Args:
        model: The model.
        judge: The judge model; None: there is none.
        facts: Facts of the journal that is resumed; None: a new audit.

    Raises:
        InputError: If model and judge have prices in two currencies.
        JournalError: If the journal's costs are in another currency.
    """
    models = [model] if judge is None else [model, judge]
    now, before = currency_of(models, "oracle.judge"), None if facts is None else facts.currency
    if now and before and now != before:
        raise JournalError(
            f"journal: expected prices in {before}, as what it spent is, got {now}; give prices "
            f"and caps in {before}"
        )
    return now or before or USD


def questions_per_call(space: QuestionSpace, answers: CallMode) -> int:
    """Return the most questions that a call answers."""
    return 1 if answers == "one" else len(space.concepts)


def check_budget(budget: int | None, least: int) -> None:
    """Raise InputError for a budget below ``least``: one question and all repeat probes."""
    if budget is not None and 0 < budget < least:
        raise InputError(
            f"budget: expected at least {least} calls, which one question may take with all that "
            f"has to be asked about its source image, and all repeat probes; got {budget}"
        )
