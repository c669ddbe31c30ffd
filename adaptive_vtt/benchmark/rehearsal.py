"""What an audit would take, before a single call is paid for: a rehearsal on coins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..audit import Audit
from ..datasets.base import CompleteDataset
from ..engine.settings import check_cost
from ..errors import InputError
from ..models.base import ModelDefaults, ModelUnderTest, adapted_model
from ..oracles import Case, Oracle, OracleDefaults, Outcome, Received, Version
from ..oracles.base import Questions
from ..space import QuestionSpace
from ..types import Answer, Memory, Prompt, Sample, Unanswered, Value
from ..utils.random_streams import generator

ASSUMED = (0.1, 0.3)
"""Loss rates that are rehearsed."""


@dataclass(frozen=True)
class Estimate:
    """What an audit would take if every question failed with probability ``loss``.

    ``cost`` is for all calls at their worst price, all retries included, ``likely`` for one
    attempt each; both are at the longest prompt and reply, and None where prices are not known.
    ``certified``: whether all targets would be, within the budget.
    """

    loss: float
    calls: int
    cost: float | None
    likely: float | None
    certified: bool
    reason: str


def rehearse(
    space: QuestionSpace,
    model: ModelUnderTest,
    options: dict[str, Any],
    losses: Sequence[float] = ASSUMED,
    progress: Callable[[int], object] = lambda calls: None,
) -> list[Estimate]:
    """The audit with ``options``, played through in memory without asking the model.

    Losses are coins, which tell the question GP nothing: an audit of a model whose failures
    have a pattern takes fewer calls. ``progress`` is told the calls so far. Raises InputError
    where nothing would be certified and there is no budget, as that would ask everything.
    """
    known = adapted_model(model)
    check_cost(known, options.get("max_cost"))
    if not any(options.get(name) for name in ("half_width", "at_most", "budget")):
        raise InputError("dry run: expected a half_width, an at_most or a budget, got none")
    # what it would take, not what it may; nobody foresees coins, and coins tell nothing of how
    # uncertain answers leave the GPs
    unknown = {"journal": None, "max_cost": None, "goal": None, "self_taught": False}
    options = {**options, **unknown}
    found = []
    oracle = space.oracle
    try:
        for loss in losses:
            space.oracle = _Coins(oracle, loss)
            with Audit(space, _Nobody(known), **options) as audit:
                result = audit.run(lambda step: progress(step.state.calls))
            price = result.cost if known.prices_known else None
            certified = bool(len(result.targets)) and bool(result.reached.all())
            likely = None if price is None else price / known.most_attempts
            reason = result.reason or ""
            found.append(Estimate(loss, result.calls, price, likely, certified, reason))
    finally:
        space.oracle = oracle
    return found


class _Nobody(ModelDefaults):
    """Stands in for a model that is not to be asked; costs what that would at most."""

    needs_image = False
    most_cost: float

    def __init__(self, model: ModelDefaults) -> None:
        self.answers, self.takes_words = model.answers, model.takes_words
        self.most_cost = float(model.most_cost or 0.0)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [Answer((0.5,) * len(p.concepts), self.most_cost) for p in prompts]


class _Coins(OracleDefaults):
    """Loses each question with probability ``loss``, whatever was answered."""

    def __init__(self, oracle: OracleDefaults, loss: float) -> None:
        self.oracle = oracle
        self.needs_source = oracle.needs_source
        self.rates = oracle.rates
        self.loss = loss

    @property
    def original(self) -> Oracle:
        return self.oracle.original

    def most_versions(self, dataset: CompleteDataset) -> int:
        return self.oracle.most_versions(dataset)

    def versions(self, sample: Sample, received: Received | None) -> Mapping[int, Version]:
        return self.oracle.versions(sample, None)  # as nothing is said: the most there may be

    def memory(self, space: Questions) -> Memory | None:
        return self.oracle.memory(space)

    def expect(self, *_: Any) -> int:
        return 1

    def judge_call(self, cases: Sequence[Case], values: Sequence[Value]) -> list[Outcome]:
        rolls = [generator(0, "rehearsal", case.question.number).random() for case in cases]
        lost = [float(roll < self.loss) for roll in rolls]
        return [Outcome(loss, 1 - loss / 2, 1 - loss) for loss in lost]
