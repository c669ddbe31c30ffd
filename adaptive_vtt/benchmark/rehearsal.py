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
from ..space import QuestionSpace
from ..stopping import MaxCost
from ..types import Answer, Prompt, Sample, Unanswered, Value
from ..utils.random_streams import generator

ASSUMED = (0.1, 0.3)
"""Loss rates that are rehearsed."""


@dataclass(frozen=True)
class Estimate:
    """What an audit would take if every question failed with probability ``loss``.

    ``cost`` is for all calls at their worst price, all retries included, ``likely`` for one
    attempt each; both are at the longest prompt and reply, and None where prices are not known.
    ``certified``: whether all targets would be, within the limits; ``capped``: whether the cap on
    cost ends it before.
    """

    loss: float
    calls: int
    cost: float | None
    likely: float | None
    certified: bool
    reason: str
    capped: bool = False


def rehearse(
    space: QuestionSpace,
    model: ModelUnderTest,
    options: dict[str, Any],
    losses: Sequence[float] = ASSUMED,
    progress: Callable[[int], object] = lambda calls: None,
    price: float | None = None,
) -> list[Estimate]:
    """The audit with ``options``, played through in memory without asking the model.

    Losses are coins, which tell the question GP nothing: an audit of a model whose failures
    have a pattern takes fewer calls. ``progress`` is told the calls so far. ``price``: of a call,
    above 0, by which a ``max_cost`` among the options ends the rehearsal; None: such a cap ends
    nothing. Raises InputError where nothing would be certified and nothing else ends it, as that
    would ask everything.
    """
    known = adapted_model(model)
    cap = options.get("max_cost")
    check_cost(known, cap)
    cap = None if price is None else cap
    if cap is None and not any(options.get(n) for n in ("half_width", "at_most", "budget")):
        raise InputError("dry run: expected a half_width, an at_most or a budget, got none")
    # nobody foresees coins, and coins tell nothing of how uncertain answers leave the GPs
    unknown = {"journal": None, "max_cost": cap, "goal": None, "self_taught": False}
    options = {**options, **unknown}
    found = []
    oracle = space.oracle
    try:
        for loss in losses:
            space.oracle = _Coins(oracle, loss)
            with Audit(space, _Nobody(known, price), **options) as audit:
                result = audit.run(lambda step: progress(step.state.calls))
                capped = cap is not None and bool(MaxCost(cap).reached(audit.state()))
            most = result.calls * float(known.most_cost or 0.0) if known.prices_known else None
            likely = None if most is None else most / known.most_attempts
            certified = bool(len(result.targets)) and bool(result.reached.all())
            capped = capped and not certified
            reason = result.reason or ""
            found.append(Estimate(loss, result.calls, most, likely, certified, reason, capped))
    finally:
        space.oracle = oracle
    return found


class _Nobody(ModelDefaults):
    """Stands in for a model that is not to be asked; a call costs ``price``, or where that is None
    what the model's costs at most."""

    needs_image = False
    most_cost: float

    def __init__(self, model: ModelDefaults, price: float | None) -> None:
        self.answers, self.takes_words = model.answers, model.takes_words
        self.most_cost = float(model.most_cost or 0.0) if price is None else price

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

    def expect(self, *_: Any) -> int:
        return 1

    def judge_call(self, cases: Sequence[Case], values: Sequence[Value]) -> list[Outcome]:
        rolls = [generator(0, "rehearsal", case.question.number).random() for case in cases]
        lost = [float(roll < self.loss) for roll in rolls]
        return [Outcome(loss, 1 - loss / 2, 1 - loss) for loss in lost]
