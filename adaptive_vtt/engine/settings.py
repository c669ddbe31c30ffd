"""What an audit was begun with: checked, described for the journal, compared on resuming."""

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import JournalError
from ..journal.facts import Facts, without_ids
from ..models.base import ModelDefaults
from ..models.checking import name_of
from ..space import QuestionSpace
from ..strategies import Named, Strategy
from .options import Sampling


def public_options(strategy: Strategy) -> dict[str, Any]:
    """A strategy's options, as its plain attributes."""
    plain = (int, float, str, bool)
    return {k: v for k, v in vars(strategy).items() if k[0] != "_" and isinstance(v, plain)}


def describe_settings(
    space: QuestionSpace, model: ModelDefaults, sampling: Sampling, chosen: Named, **plain: Any
) -> dict[str, Any]:
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


def describe_oracle(space: QuestionSpace) -> dict[str, Any]:
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


def describe_space(space: QuestionSpace) -> dict[str, Any]:
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
    if not answered():
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
        return (
            f"journal: belongs to another space: {then.dataset!r} with {then.size} "
            f"questions, not {space.dataset.name!r} with {space.size}{changed}"
        )
    for name, value in settings.items():
        before, now = facts.begun_with.get(name), without_ids(value)
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


def _difference(name: str, before: Any, value: Any) -> str:
    """What differs first, in words; of tables the field."""
    if isinstance(before, dict) and isinstance(value, dict):
        for key in [*value, *before]:
            if before.get(key) != value.get(key):
                return _difference(f"{name} {key}", before.get(key), value.get(key))
    return f"{name} {before!r}, not {value!r}"
