"""Choice between asking all questions and sampling, for models that cost no money.

Such a model is timed first. All questions are asked if that takes less than MINUTE seconds, or less
time than sampling:

    everything    calls * (a call + COUNTING)
    sampling      NETS + draws * (a call + DRAWING)

"A call" is the time to make its image and ask the model. "draws" is the number that certifies all
targets at a loss rate of LOSS (``audit.forecast``). The other figures were measured on two cores:
training self-taught nets took 10 to 14 s, a draw about 50 ms, and a counted call 1 ms.
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
"""Seconds for training all nets, for a draw, and for counting a call."""
LOSS, EXPLORATION = 0.1, 0.2
"""Loss rate and exploration for the forecast of draws."""
BATCHES = (1, 8, 64)
"""Sizes of the batches by which the model is timed, until one takes ENOUGH seconds."""
ENOUGH = 0.5
GOALS = {"half_width": None, "at_most": None}
"""Options that make an audit certify, with their values if it does not."""
DRAWN: dict[str, Any] = {
    **dict.fromkeys(("strategy_options", "exploration", "set_aside", "proxies", "prior_journal")),
    **dict.fromkeys(("cohort", "gate", "questions", "uncertainty", "max_uncertainty")),
    **dict.fromkeys(("repeat_probes", "discover"), 0),
}
"""Options of audits and of SPEC.toml that need draws, with their values if nothing is drawn."""
WHOLE: dict[str, Any] = {**GOALS, **DRAWN, "features": "default", "strategy": EVERYTHING}
"""Values of the options of an audit that asks everything."""
INSISTING = (*DRAWN, "strategy", "replay", "compare", "stop", "goal", "seconds")
"""Options by which a user insists on sampling."""


@dataclass(frozen=True)
class Choice:
    """The choice between asking everything and sampling.

    Attributes:
        changes: Changes of the audit's options, ``WHOLE`` if everything is asked.
        sentence: A message that everything is asked; None if questions are sampled.
        calls: Number of calls that were made to time the model.
    """

    changes: Mapping[str, Any] = field(default_factory=dict)
    sentence: str | None = None
    calls: int = 0


def insists(options: Mapping[str, Any]) -> bool:
    """Return whether an option needs draws, or nothing is to be certified."""
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
        budget: Maximum number of calls; None: any.

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
    forecast = forecasts(certifier, EXPLORATION, certify.unanswered == "both", [LOSS])[1]
    draws = forecast.likely[LOSS]
    call, made = seconds_per_call(space, model)
    everything, sampling = calls * (call + COUNTING), NETS + draws * (call + DRAWING)
    if everything >= max(MINUTE, sampling):
        # training nets would take longer than all calls that sampling makes
        no_nets = certify.self_taught == "auto" and draws * call <= NETS
        return Choice({"self_taught": False} if no_nets else {}, calls=made)
    by_image, seconds = model.answers == "all" and space.dataset.has_images, max(everything, 1)
    what = f"about all {space.images:,} images" if by_image else f"all {space.size:,} questions"
    takes = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    return Choice(WHOLE, f"asking {what} takes about {takes}: rates are exact", made)


def seconds_per_call(space: QuestionSpace, model: ModelDefaults) -> tuple[float, int]:
    """Return the seconds of a call with its image, and the number of calls made to measure them.

    The calls are about images spread evenly over the space, or about source images if follow-ups
    depend on answers.
    """
    judge = Judge(space, model.answers)
    made = 0
    for batch in BATCHES:
        questions = space.nth(np.linspace(0, space.size - 1, min(batch, space.size)).astype(int))
        calls = np.unique(space.image_of(questions) if model.answers == "all" else questions)
        began, count = time.perf_counter(), len(calls)
        made += count
        if space.needs_answers:
            prompts = [judge.sources.prompt(judge.sources.source_of(q)) for q in questions[:count]]
        else:
            prompts = [judge.prompt(int(call)) for call in calls]
        checked(model, prompts)
        seconds = time.perf_counter() - began
        if seconds > ENOUGH:
            break
    return seconds / count, made


def changed(options: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an ``Audit`` with the changes of a ``Choice``.

    If a group of options is given (``certify``, ``sampling``), its fields are changed in it.
    """
    result = {name: value for name, value in options.items() if name not in changes}
    new = {name: changes[name] for name in ("strategy", "self_taught") if name in changes}
    for name in ("certify", "sampling"):
        if (group := options.get(name)) is not None:
            in_group = {f.name: changes[f.name] for f in fields(group) if f.name in changes}
            result[name] = replace(group, **in_group)
            new = {option: value for option, value in new.items() if option not in in_group}
    return result | new


def chosen(
    space: QuestionSpace, model: ModelDefaults, options: Mapping[str, Any]
) -> tuple[dict[str, Any], Choice]:
    """Return the options of an ``Audit`` with the changes of ``choice``, and that choice."""
    groups = {name: options.get(name) for name in ("certify", "sampling", "limits")}
    single = {n: v for n, v in options.items() if n not in (*groups, "device", "clock", "notes")}
    certify, sampling, limits = grouped(single, **groups)
    if insists({**vars(certify), **vars(sampling), **vars(limits)}):
        return dict(options), Choice()
    result = choice(space, model, certify, limits.budget)
    return changed(options, result.changes), result
