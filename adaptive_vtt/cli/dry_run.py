"""``avtt audit --dry-run``: what would be asked and what it may cost; nothing is asked."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import typer
from rich.table import Table

from ..audit.overview import show
from ..certify.forecast import Forecast, forecasts
from ..config import Spec
from ..config.building import CERTIFY_APART, NotImported, build_space, model_of
from ..engine.judge import SourceCalls
from ..engine.options import DEFAULT_EXPLORATION, Certify
from ..engine.prices import Prices
from ..engine.settings import check_budget, check_cost, check_judge, check_model, currency_paid
from ..models import ModelDefaults, adapted_model
from ..models.network.keys import needing_no_key
from ..space import QuestionSpace
from ..stopping import CENTS, SURELY_HARD
from ..strategies import named
from ..utils.figures import USD, money
from .printing import plain_console, table_of

ASSUMED = (0.1, 0.3)
"""Loss rates that "likely" is said for."""
SHOWN = 12
"""Targets that are listed, at most."""
FEW_AT_WORST = 10
"""Lost calls that a cap pays for, below which it is said what makes them cheaper."""
NO_PROXIES = {*CERTIFY_APART, "surrogate"}
"""Fields of [certify] about predictions: a plan knows nothing of them."""


@dataclass(frozen=True)
class Plan:
    """What an audit may take, in calls about follow-ups, source images and repeat probes together.

    ``targets``: of each by itself; ``together``: of all, None where nothing is certified;
    ``total``: the calls that there are. ``worst`` and ``usual``: the price of a call with all
    retries and with none, at the longest prompt and reply; None where prices are not known.
    ``expected``: what calls that the audit draws are likely to cost on average, by what they send,
    and ``expected_most`` where the provider counts much; None where that is not known, or prices do
    not differ. All of them are in ``currency``. ``at_full_length``: ``usual`` is the best that is
    known, and many calls cost a third of it, as replies are shorter.
    """

    questions: int
    total: int
    targets: list[Forecast]
    together: Forecast | None
    worst: float | None
    usual: float | None
    expected: float | None = None
    expected_most: float | None = None
    currency: str = USD
    at_full_length: bool = False

    @property
    def calls(self) -> list[int]:
        """Of all targets together: at least, likely by loss rate, and at most; where nothing is
        certified all calls are likely."""
        if self.together is None:
            return [0, *[self.total] * len(ASSUMED), self.total]
        return _calls(self.together)

    @property
    def likely_price(self) -> float | None:
        """Of a call, as well as it is known."""
        return self.expected or self.usual

    @property
    def dear_price(self) -> float | None:
        """The same where the provider counts much: who goes by a cap had better go by this."""
        return self.expected_most or self.likely_price


@contextmanager
def planning() -> Iterator[None]:
    """Models that are made inside, and asked nothing, need no key; says which are not set yet."""
    with needing_no_key() as unset:
        yield
    for variable in dict.fromkeys(unset):
        told = "a plan needs no key, the audit needs the one in this environment variable"
        typer.echo(f"{variable} is not set yet: {told}", err=True)


def dry_run(spec: Spec, base: Path, as_json: bool) -> None:
    """Prints the plan: bounds worked out from the targets, at once, without importing PyTorch."""
    with planning():
        space = build_space(spec, base)
        model = adapted_model(model_of(spec, base, space, code=False))
    plan = planned(spec, base, space, model)
    notes = [*_of_census(spec, model, plan), *_of_limits(spec, plan)]
    notes += _of_uncertainty(spec, model.hard_answers)
    notes += [*_of_judge(space), *_of_model(model, plan.expected is not None)]
    if as_json:
        typer.echo(json.dumps({**asdict(plan), "notes": notes}, indent=1))
        return
    console = plain_console()
    show(space, [row.target for row in plan.targets], model.answers, console)
    console.print(_sentence(space, plan))
    if plan.together is not None:
        console.print(_table(plan))
    for note in (*notes, "nothing was asked; --rehearse plays it through on coins, in minutes"):
        console.print(note)


def planned(spec: Spec, base: Path, space: QuestionSpace, model: ModelDefaults) -> Plan:
    """The plan of a spec's audit. Raises InputError for what the audit would refuse."""
    priced = not isinstance(model, NotImported)
    check_model(model, space)
    if priced:
        check_cost(model, spec.audit.max_cost)
        check_judge(space, model, spec.audit.max_cost)
    certify = Certify(**spec.certify.model_dump(exclude=NO_PROXIES))
    exploration = spec.audit.exploration
    if exploration is None:
        exploration = DEFAULT_EXPLORATION if certify.certifies else 0.0
    certify.check(exploration)
    with_sources = _with_sources(space, model, spec.audit.repeat_probes)
    sources = SourceCalls(space, model.answers)
    check_budget(
        spec.audit.budget, 1 + spec.audit.repeat_probes + sources.most * bool(sources.count)
    )
    strategy = spec.audit.strategy
    if strategy is not None:
        named(strategy, spec.audit.strategy_options, base)  # raises for one that there is not
    if strategy == "random":
        exploration = 1.0
    certifier = certify.certifier(space, model.answers, even=strategy not in {None, "certify"})
    rows: list[Forecast] = []
    together: Forecast | None = None
    if certifier is not None:
        both = certify.unanswered == "both"
        rows, together = forecasts(certifier, exploration, both, ASSUMED)
        rows, together = [with_sources(row) for row in rows], with_sources(together)
    known = priced and model.prices_known
    worst = float(model.most_cost or 0.0) if known else None
    usual = None if worst is None else worst / model.most_attempts
    draws = space.size if model.answers == "one" else space.images
    total = draws + sources.count * sources.most + spec.audit.repeat_probes
    expected, dear = _expected(spec, space, model, exploration) if known else (None, None)
    if dear is not None and usual is not None:
        dear = min(dear, usual)  # which no call without retries exceeds
    judge = space.oracle.judge_by
    currency = currency_paid(model, None if judge is None else judge.model, None)
    at_full_length = expected is None and usual is not None and model.price_guess is not None
    prices = worst, usual, expected, dear, currency, at_full_length
    return Plan(space.size, total, rows, together, *prices)


def _expected(
    spec: Spec, space: QuestionSpace, model: ModelDefaults, exploration: float
) -> tuple[float, float] | tuple[None, None]:
    """The mean price of a call by the first guess and by the dear one, where calls differ; even
    draws ask dear ones more often."""
    prices, guess = Prices.of(space, model, True, None), model.dear_guess or model.price_guess
    if prices is None or guess is None:
        return None, None
    by_price = spec.audit.by_price and spec.audit.strategy in {None, "certify"}
    certifies = spec.certify.half_width or spec.certify.at_most
    even = exploration if by_price and certifies else 1.0
    return prices.likely(even), Prices.guessed(space, model.answers, guess).likely(even)


def _with_sources(
    space: QuestionSpace, model: ModelDefaults, repeat_probes: int
) -> Callable[[Forecast], Forecast]:
    """What turns draws into calls: source images are asked about once each, before follow-ups of
    theirs, and repeat probes last."""
    sources = SourceCalls(space, model.answers)
    follow_ups = max(1, len(space.variants))

    def often(draws: int) -> int:
        """Sources that so many uniform draws are about."""
        if not sources.count:
            return 0
        return math.ceil(sources.count * -math.expm1(-draws / sources.count))

    def calls(row: Forecast) -> Forecast:
        first = math.ceil(row.at_least / follow_ups) if sources.count else 0
        return Forecast(
            row.target,
            row.at_least + first + repeat_probes,
            {loss: draws + often(draws) + repeat_probes for loss, draws in row.likely.items()},
            row.at_most + sources.count * sources.most + repeat_probes,
        )

    return calls


# -- in words ---------------------------------------------------------------------------------


def _sentence(space: QuestionSpace, plan: Plan) -> str:
    cost = ""
    if plan.worst:
        likely = "likely" if plan.expected else "each" + " at full length" * plan.at_full_length
        cost = f", {likely_price(plan)} {likely}, {money(plan.worst, plan.currency)} at most"
    return f"{space.dataset.name}: {plan.questions:,} questions; {plan.total:,} calls{cost}"


def likely_price(plan: Plan, calls: int = 1) -> str:
    """What so many calls are likely to cost: a range, where a guess is all that is known."""
    ends = (plan.likely_price or 0.0, plan.dear_price or 0.0)
    return " to ".join(dict.fromkeys(money(calls * end, plan.currency) for end in ends))


def _table(plan: Plan) -> Table:
    """Calls until each target is certified, those that take most first; and money."""
    rows = sorted(plan.targets, key=lambda row: -max(row.likely.values()))
    title = "calls until certified"
    if len(rows) > SHOWN:
        title += f", {SHOWN} of {len(rows)} targets"
    columns = ["target", "at least", *(f"{loss:.0%} fail" for loss in ASSUMED), "at most"]
    name = "all targets" if len(rows) > 1 else "in all"
    sums = [[name, *(f"{n:,}" for n in plan.calls)]]
    if plan.likely_price and plan.worst:
        *likely_calls, most = plan.calls
        worst = money(most * plan.worst, plan.currency)
        sums.append(["cost", *(likely_price(plan, n) for n in likely_calls), worst])
    cells = [[row.target, *(f"{n:,}" for n in _calls(row))] for row in rows[:SHOWN]]
    return table_of(columns, cells, title, sums=sums)


def _calls(row: Forecast) -> list[int]:
    return [row.at_least, *(row.likely[loss] for loss in ASSUMED), row.at_most]


def census_is_cheaper(spec: Spec, model: ModelDefaults, plan: Plan) -> bool:
    """Whether asking everything, without choosing, takes less than certifying: answers that cost
    nothing at all, or too few questions to choose among."""
    if spec.model.costs_money or model.costs_money or plan.together is None:
        return False
    return spec.model.free or plan.total <= plan.together.likely[ASSUMED[0]]


def _of_census(spec: Spec, model: ModelDefaults, plan: Plan) -> list[str]:
    if not census_is_cheaper(spec, model, plan):
        return []
    why = "costs nothing" if spec.model.free else "takes no more of them than certifying"
    everything = f"asking all {plan.total:,} calls {why}"
    return [f"{everything}, and is exact: 'avtt census' with the same spec"]


class Limit(NamedTuple):
    """What ends an audit after so many calls at the latest, and its name."""

    calls: int
    name: str


def first_limit(spec: Spec, plan: Plan) -> Limit | None:
    """The limit of calls or money that is met first; None where there is neither."""
    budget, cap = spec.audit.budget, spec.audit.max_cost
    limits = []
    if budget is not None:
        limits.append(Limit(min(budget, plan.total), f"the budget of {budget:,} calls"))
    if cap is not None and plan.dear_price:
        limits.append(Limit(paid_for(cap, plan.dear_price), cap_named(cap, plan)))
    return min(limits, default=None)


def cap_named(cap: float, plan: Plan) -> str:
    """A cap, for a sentence."""
    return f"the cap of {money(cap, plan.currency)} on cost"


def paid_for(cap: float, price: float) -> int:
    """The calls of this price that a cap pays for."""
    return int((cap + CENTS) / price)


def _of_limits(spec: Spec, plan: Plan) -> list[str]:
    cap, limit = spec.audit.max_cost, first_limit(spec, plan)
    if plan.together is None:
        last = Limit(plan.total, "the last question")
        calls, end = last if limit is None else min(limit, last)
        return [f"explores, and certifies nothing: {end} ends it, after at most {calls:,} calls"]
    if limit is None:
        return []
    calls, end = limit
    low, high = plan.together.likely[ASSUMED[0]], plan.together.likely[ASSUMED[-1]]
    likely = "is likely to be enough"
    if calls < plan.together.at_least:
        likely = "ends it before anything so narrow can be certified"
    elif calls < low:
        likely = (
            "is likely to end it before all is certified: 'avtt plan' says to which half-width it "
            "reaches, and 'avtt resume' can raise it"
        )
    elif calls < high:
        likely = f"is enough where few fail, not where {ASSUMED[-1]:.0%} do"
    if end.startswith("the budget") or not plan.worst or cap is None:
        return [f"{end} {likely}"]
    least = paid_for(cap, plan.worst)
    told = [f"{end} (about {calls:,} calls, {least:,} at the worst price) {likely}"]
    if least < FEW_AT_WORST:
        told.append(
            "a call that is lost holds back its worst price: lower max_tokens, max_input_tokens or "
            "retries in [model] for a cap as small as this"
        )
    return told


def _of_uncertainty(spec: Spec, hard: bool) -> list[str]:
    """Whether the uncertainties that are asked for can be reached; ``hard``: answers are 0 or 1."""
    asked = [tau for tau in (spec.stop.uncertainty, spec.stop.max_uncertainty) if tau is not None]
    if not asked:
        return []
    from ..surrogates import lowest_with_hard_answers  # imports PyTorch

    lowest = lowest_with_hard_answers(spec.audit.form)
    told = ["when uncertainty falls as far as [stop] asks was not worked out"]
    if min(asked) >= lowest:
        return told
    if hard:
        end = f"this model gives such answers, so the audit will stop after {SURELY_HARD} of them"
    else:
        end = f"if the first {SURELY_HARD} are all such, the audit stops and says so"
    return [
        *told,
        f"with answers of 0 and 1 alone uncertainty cannot fall below {lowest:.3f} of its prior, "
        f"and {min(asked):g} is asked for: {end}",
    ]


def _of_judge(space: QuestionSpace) -> list[str]:
    if (judge := space.oracle.judge_by) is None:
        return []
    price = "at an unknown price each"
    if judge.code:
        price = "at a price that is not told here, as its code was not imported"
    elif judge.model.prices_known:
        most = money(judge.model.most_cost or 0.0, judge.model.currency or USD)
        price = f"at {most} each at most"
    return [f"the judge {judge.name} is asked what the rule cannot read, {price}, beside the above"]


def _of_model(model: ModelDefaults, priced: bool) -> list[str]:
    found = ["where failures have a pattern, or proxies foresee them, it takes fewer calls"]
    if priced:
        found.append(
            "prices differ: a call's likely one is guessed from its image and words, between the "
            "ways in which providers count, and learnt from the first answers on"
        )
    if isinstance(model, NotImported):
        what = "every concept of an image" if model.answers == "all" else "one question"
        found.append(f"no model was imported: a call is taken to answer {what}")
    return found
