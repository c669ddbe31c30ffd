"""Whether an audit asks everything: a model that costs no money is timed before the first draw.

Everything is asked where that takes less than MINUTE seconds, or less than sampling:

    everything    calls * (a call + COUNTING)
    sampling      NETS + draws * (a call + DRAWING)

"A call" is what making its image and asking the model take here; "draws" are those that certify
all targets at a loss rate of LOSS (``audit.forecast``), or the budget. The other figures were
measured on two cores: self-taught nets took 10 to 14 s, a draw about 50 ms, a counted call 1 ms.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine.assembly import suited
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
"""Calls that are made to time the model, a batch after the other until one took ENOUGH seconds."""
ENOUGH = 0.5
SAMPLES = ("strategy", "strategy_options", "exploration", "repeat_probes", "replay", "compare")
PREDICTS = ("discover", "set_aside", "proxies", "prior_journal", "cohort")
ENDS = ("stop", "goal", "gate", "questions", "seconds", "uncertainty", "max_uncertainty")
GOALS = ("half_width", "at_most")


@dataclass(frozen=True)
class Choice:
    """How a model that costs no money is audited.

    Attributes:
        everything: The sentence that says so where everything is asked; None: it is sampled.
        nets: Whether calls cost more time than teaching nets, which save some.
    """

    everything: str | None
    nets: bool


AS_TOLD = Choice(None, nets=True)


def insists(options: Mapping[str, Any]) -> bool:
    """Return whether an option makes sense only where questions are drawn, or nothing is
    certified."""
    certifies = any(options.get(name) is not None for name in GOALS)
    return not certifies or any(options.get(name) for name in (*SAMPLES, *PREDICTS, *ENDS))


def choice(
    space: QuestionSpace, model: ModelDefaults, certify: Certify, budget: int | None
) -> Choice:
    """Time some calls of a model, and choose.

    Args:
        space: The questions.
        model: What would be asked; one that costs money is asked nothing.
        certify: What an audit that samples would certify.
        budget: Calls, at most; None: any number.

    Raises:
        ModelError: where the model fails.
    """
    check_model(model, space)
    certify.check(EXPLORATION)
    sources = Judge(space, model.answers).sources
    calls = space.images if model.answers == "all" else space.size
    calls += sources.count * sources.most
    paid = model.costs_money or space.oracle.judge_by is not None
    if paid or (budget is not None and budget < calls):
        return AS_TOLD
    certifier = suited(certify, space).certifier(space, model.answers)
    if certifier is None:
        return AS_TOLD
    likely = forecasts(certifier, EXPLORATION, certify.unanswered == "both", [LOSS])[1]
    draws = likely.likely[LOSS]
    call = seconds_per_call(space, model)
    everything, sampling = calls * (call + COUNTING), NETS + draws * (call + DRAWING)
    if everything >= max(MINUTE, sampling):
        return Choice(None, nets=draws * call > NETS)
    whole, seconds = model.answers == "all" and space.dataset.has_images, max(everything, 1)
    what = f"about all {space.images:,} images" if whole else f"all {space.size:,} questions"
    return Choice(f"asking {what} takes about {_rounded(seconds)}: rates are exact", nets=False)


def seconds_per_call(space: QuestionSpace, model: ModelDefaults) -> float:
    """Return how long a call takes, the making of its image included, by asking about some images
    from all over the space; of source images where follow-ups are made of answers."""
    judge = Judge(space, model.answers)
    seconds, count = 0.0, 1
    for batch in BATCHES:
        questions = space.nth(np.linspace(0, space.size - 1, min(batch, space.size)).astype(int))
        calls = np.unique(space.image_of(questions) if model.answers == "all" else questions)
        begun, count = time.perf_counter(), len(calls)
        if space.needs_answers:
            prompts = [judge.sources.prompt(judge.sources.of(int(q))) for q in questions[:count]]
        else:
            prompts = [judge.prompt(int(call)) for call in calls]
        checked(model, prompts)
        seconds = time.perf_counter() - begun
        if seconds > ENOUGH:
            break
    return seconds / count


def of_everything(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an ``Audit`` that certifies as those of one that asks everything."""
    left = {name: value for name, value in options.items() if name not in GOALS}
    if "certify" in left:
        left["certify"] = replace(left["certify"], half_width=None, at_most=None)
    if "sampling" in left:
        return left | {"sampling": replace(left["sampling"], strategy=EVERYTHING)}
    return left | {"strategy": EVERYTHING}


def chosen(
    space: QuestionSpace, model: ModelDefaults, options: Mapping[str, Any]
) -> tuple[dict[str, Any], str | None]:
    """Return the options of an ``Audit``, changed as ``choice`` has it, and its sentence."""
    groups = {name: options.get(name) for name in ("certify", "sampling", "limits")}
    own = {n: v for n, v in options.items() if n not in (*groups, "device", "clock", "notes")}
    certify, sampling, limits = grouped(own, **groups)
    if insists({**vars(certify), **vars(sampling), **vars(limits)}):
        return dict(options), None
    best = choice(space, model, certify, limits.budget)
    if best.everything is not None:
        return of_everything(options), best.everything
    if not best.nets and certify.self_taught == "auto" and "certify" not in options:
        return {**options, "self_taught": False}, None
    return dict(options), None


def _rounded(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
