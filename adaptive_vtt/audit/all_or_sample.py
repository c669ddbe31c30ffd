"""Decision to ask everything, for which a model that costs no money is timed first.

Everything is asked if that takes less than MINUTE seconds, or less than sampling:

    everything    calls * (a call + COUNTING)
    sampling      NETS + draws * (a call + DRAWING)

"A call" is the time to make its image and ask the model. "draws" are those that certify all targets
at a loss rate of LOSS (``audit.forecast``), or the budget. The other figures were measured on two
cores: self-taught nets took 10 to 14 s, a draw about 50 ms, a counted call 1 ms.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ..engine.judge import Judge
from ..engine.options import Certify, grouped
from ..engine.settings import check_model
from ..models.base import ModelDefaults
from ..models.checking import checked
from ..space import QuestionSpace
from ..strategies import EVERYTHING
from .forecast import forecasts

MINUTE = 60.0
NETS, DRAWING, COUNTING = 12.0, 0.05, 0.001
"""Seconds: for all nets, for a draw, and for a call that is counted."""
LOSS, EXPLORATION = 0.1, 0.2
BATCHES = (1, 8, 64)
"""Calls that are made to time the model: batches until one takes ENOUGH seconds."""
ENOUGH = 0.5
GOALS = {"half_width": None, "at_most": None}
DRAWN: dict[str, Any] = {
    **dict.fromkeys(("strategy_options", "exploration", "set_aside", "proxies", "prior_journal")),
    **dict.fromkeys(("cohort", "gate", "questions", "uncertainty", "max_uncertainty")),
    **dict.fromkeys(("repeat_probes", "discover"), 0),
}
"""Options of audits and of SPEC.toml that need draws, and their values if nothing is drawn."""
WHOLE: dict[str, Any] = {**GOALS, **DRAWN, "features": "default", "strategy": EVERYTHING}
"""Changes of the options of an audit that asks everything."""
INSISTING = (*DRAWN, "strategy", "replay", "compare", "stop", "goal", "seconds")


@dataclass(frozen=True)
class Choice:
    """How a model that costs no money is audited.

    Attributes:
        changes: Changes of the audit's options, ``WHOLE`` if everything is asked.
        sentence: Sentence that everything is asked; None if questions are sampled.
        calls: Calls that were made to time the model.
    """

    changes: Mapping[str, Any] = field(default_factory=dict)
    sentence: str | None = None
    calls: int = 0


def insists(options: Mapping[str, Any]) -> bool:
    """Return whether an option needs draws, or nothing is certified."""
    certifies = any(options.get(name) is not None for name in GOALS)
    return not certifies or any(options.get(name) for name in INSISTING)


def choice(
    space: QuestionSpace, model: ModelDefaults, certify: Certify, budget: int | None
) -> Choice:
    """Time some calls of a model, and choose between asking everything and sampling.

    Args:
        space: The questions.
        model: The model; one that costs money is not timed, but sampled.
        certify: The certificates of an audit that samples.
        budget: Most calls; None for any number.

    Raises:
        ModelError: The model fails.
    """
    check_model(model, space)
    certify.check(EXPLORATION)
    sources = Judge(space, model.answers).sources
    calls = space.images if model.answers == "all" else space.size
    calls += sources.count * sources.most_per_source
    paid = model.costs_money or space.oracle.judge_by is not None
    if paid or (budget is not None and budget < calls):
        return Choice()
    certifier = certify.suited(space).certifier(space, model.answers)
    if certifier is None:
        return Choice()
    likely = forecasts(certifier, EXPLORATION, certify.unanswered == "both", [LOSS])[1]
    draws = likely.likely[LOSS]
    call, made = seconds_per_call(space, model)
    everything, sampling = calls * (call + COUNTING), NETS + draws * (call + DRAWING)
    if everything >= max(MINUTE, sampling):
        untaught = certify.self_taught == "auto" and draws * call <= NETS
        return Choice({"self_taught": False} if untaught else {}, calls=made)
    whole, seconds = model.answers == "all" and space.dataset.has_images, max(everything, 1)
    what = f"about all {space.images:,} images" if whole else f"all {space.size:,} questions"
    takes = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    return Choice(WHOLE, f"asking {what} takes about {takes}: rates are exact", made)


def seconds_per_call(space: QuestionSpace, model: ModelDefaults) -> tuple[float, int]:
    """Return the seconds that a call takes, with its image, and the number of calls made.

    They are about images from all over the space, or about source images if follow-ups depend on
    answers.
    """
    judge = Judge(space, model.answers)
    made = 0
    for batch in BATCHES:
        questions = space.nth(np.linspace(0, space.size - 1, min(batch, space.size)).astype(int))
        calls = np.unique(space.image_of(questions) if model.answers == "all" else questions)
        begun, count = time.perf_counter(), len(calls)
        made += count
        if space.needs_answers:
            prompts = [judge.sources.prompt(judge.sources.source_of(q)) for q in questions[:count]]
        else:
            prompts = [judge.prompt(int(call)) for call in calls]
        checked(model, prompts)
        seconds = time.perf_counter() - begun
        if seconds > ENOUGH:
            break
    return seconds / count, made


def changed(options: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an ``Audit`` with the changes of a ``Choice``.

    Fields of a group that was given are changed in the group.
    """
    result = {name: value for name, value in options.items() if name not in changes}
    new = {name: changes[name] for name in ("strategy", "self_taught") if name in changes}
    for name in ("certify", "sampling"):
        if (group := options.get(name)) is not None:
            own = {f.name: changes[f.name] for f in fields(group) if f.name in changes}
            result[name] = replace(group, **own)
            new = {option: value for option, value in new.items() if option not in own}
    return result | new


def chosen(
    space: QuestionSpace, model: ModelDefaults, options: Mapping[str, Any]
) -> tuple[dict[str, Any], Choice]:
    """Return the options of an ``Audit`` with the changes of ``choice``, and that choice."""
    groups = {name: options.get(name) for name in ("certify", "sampling", "limits")}
    own = {n: v for n, v in options.items() if n not in (*groups, "device", "clock", "notes")}
    certify, sampling, limits = grouped(own, **groups)
    if insists({**vars(certify), **vars(sampling), **vars(limits)}):
        return dict(options), Choice()
    best = choice(space, model, certify, limits.budget)
    return changed(options, best.changes), best
