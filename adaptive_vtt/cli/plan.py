"""``avtt plan``, and ``avtt audit --dry-run``: calls and cost per half-width; nothing is asked.

Bounds are worked out from the targets (``forecast``), without importing PyTorch. Calls
about follow-ups, source images and repeat probes are counted together.
"""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import typer
from rich.table import Table

from ..audit.cheaper import insists
from ..audit.forecast import Forecast, forecasts
from ..audit.overview import show
from ..certify.further import KNOWN
from ..config import Spec
from ..config.building import CERTIFY_APART, NotImported, build_space, model_of
from ..engine.judge import SourceCalls
from ..engine.options import Certify, Sampling
from ..engine.prices import Prices
from ..engine.settings import check_budget, check_cost, check_judge, check_model, currency_paid
from ..errors import InputError, listed
from ..models import ModelDefaults, adapted_model
from ..models.network.keys import needing_no_key
from ..people.items import HALF_WIDTH, items_pool
from ..pool import Pool
from ..results.report.evidence import Evidence
from ..results.run import Run
from ..space import QuestionSpace
from ..stopping import CENTS, SURELY_HARD, check_half_width
from ..strategies import named
from ..types import CallMode
from ..utils.figures import USD, money, points
from .options import names
from .printing import plain_console, table_of
from .probe import probe as ask_twice
from .spec_changes import read

WIDTHS = "0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4"
"""Half-widths of the table, where none are named."""
ASSUMED = (0.1, 0.3)
"""Loss rates at which the likely calls are estimated."""
SHOWN = 12
"""Targets that are listed, at most."""
FEW_AT_WORST = 10
"""Number of lost calls that a cap pays for, below which a note says what makes them cheaper."""
NO_PROXIES = {*CERTIFY_APART, "surrogate"}
"""Fields of [certify] about predictions: a plan knows nothing of them."""


def plan(
    spec: Path,
    *,
    half_width: str = WIDTHS,
    targets: str | None = None,
    group: list[str] | None = None,
    pilot: Path | None = None,
    probe: bool = False,
    set_: list[str] | None = None,
    json_: bool = False,
) -> None:
    """Estimate calls and cost without calling the model.

    Prints what was read of the data, one call as it may be made, the calls and
    cost of every half-width, and how far the spec's limits reach. With --pilot,
    draws are taken to vary and to win as those of that audit did, at its cost of
    a call. 'avtt audit --dry-run' prints the same for the options of an audit.
    With --probe, the model is asked of a black and of a white image whether it is
    black: exit code 0 where it looked, 4 where it did not, 2 without an answer.
    Of a CSV of items, as 'avtt label' takes, it prints the labels that it takes.

    Example: avtt plan SPEC.toml --targets overall,relations

    Args:
        spec (SPEC.toml): What would be audited, or a CSV of items.
        half_width (LIST): Half-widths of the table, separated by commas.
        targets (LIST): What is certified; commas. Default: the spec's.
        group (COLUMN): Of a CSV of items: a column of groups to certify; again for more.
        pilot (DIR): Folder of an earlier audit of these targets to go by.
        probe: Instead of estimating, make two calls that tell whether a chat model looks.
    """
    widths, items = _widths(half_width), spec.suffix == ".csv"
    of_spec = {"--targets": targets, "--pilot": pilot, "--probe": probe, "--set": set_}
    for option, value in (of_spec if items else {"--group": group}).items():
        if value:
            wanted = "a SPEC.toml" if items else "a CSV of items"
            raise InputError(f"{option}: expected {wanted} with it, got {spec}")
    if items:
        pool, names_ = items_pool(spec, {"group": group})
        rows = [Width.of(width, _of_items(pool, names_, width)) for width in widths]
        return _print(pool, "one", _of_items(pool, names_, HALF_WIDTH), rows, [], json_)
    chosen, base = read(spec, False, {"certify.targets": names(targets)}, set_)
    if probe:
        raise typer.Exit(ask_twice(chosen, base))
    estimate(chosen, base, json_, widths, None if pilot is None else Pilot.of(pilot))


def _widths(text: str) -> list[float]:
    """Return the half-widths in ascending order. Raise InputError for what is no list of them."""
    try:
        widths = sorted({float(width) for width in names(text) or ()})
    except ValueError:
        widths = []
    if not widths:
        raise InputError(f"--half-width: expected numbers such as 0.05,0.1, got {text!r}")
    for width in widths:
        check_half_width(width)
    return widths


def estimate(
    spec: Spec,
    base: Path,
    as_json: bool,
    widths: Sequence[float] = (),
    pilot: "Pilot | None" = None,
) -> None:
    """Print the plan of a spec; ``widths``: half-widths of the table (default: ``WIDTHS``)."""
    with planning():
        space = build_space(spec, base)
        model = adapted_model(model_of(spec, base, space, code=False))
    chosen, rows = planned(spec, base, space, model), []
    for width in widths or _widths(WIDTHS):
        narrowed = planned(_with_half_width(spec, width), base, space, model)
        rows.append(Width.of(width, narrowed, pilot))
    notes = [*_notes(spec, space, model, chosen, rows, pilot)]
    _print(space, model.answers, chosen, rows, notes, as_json)


def _print(
    space: QuestionSpace,
    answers: CallMode,
    chosen: "Plan",
    rows: Sequence["Width"],
    notes: list[str],
    as_json: bool,
) -> None:
    """Print a plan, its half-widths and what else there is to know."""
    if as_json:
        half_widths = [asdict(row) for row in rows]
        result = {**asdict(chosen), "half_widths": half_widths, "notes": notes}
        typer.echo(json.dumps(result, indent=1))
        return
    console = plain_console()
    show(space, [row.target for row in chosen.targets], answers, console)
    cost = ""
    if chosen.worst:
        likely = "likely" if chosen.expected else "each" + " at full length" * chosen.at_full_length
        worst = money(chosen.worst, chosen.currency)
        cost = f", {_likely_cost(chosen)} {likely}, {worst} at most"
    counts = f"{chosen.questions:,} questions; {chosen.total:,} calls"
    console.print(f"{space.dataset.name}: {counts}{cost}")
    if chosen.together is not None:
        console.print(_by_target(chosen, chosen.together))
    console.print(_by_width(rows, chosen.currency))
    for note in (*notes, "nothing was asked; failures with a pattern take fewer calls"):
        console.print(note)


@contextmanager
def planning() -> Iterator[None]:
    """Build models without their keys; say on stderr which keys the audit will need."""
    with needing_no_key() as unset:
        yield
    for variable in dict.fromkeys(unset):
        why = "a plan needs no key, the audit needs the one in this environment variable"
        typer.echo(f"{variable} is not set yet: {why}", err=True)


def _with_half_width(spec: Spec, width: float) -> Spec:
    """Return the spec as an audit that certifies to ``width``."""
    certify = spec.certify.model_copy(update={"half_width": width})
    audit = spec.audit.model_copy(update={"exploration": spec.audit.exploration or None})
    return spec.model_copy(update={"certify": certify, "audit": audit})


# -- the estimate ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """Calls and prices of an audit.

    ``targets``: calls of each by itself; ``together``: of all, None where nothing is certified;
    ``total``: all calls that there are. ``worst`` and ``usual``: price of a call with all retries
    and with none, at the longest prompt and reply; None where prices are not known. ``expected``:
    mean price of the calls that the audit is likely to draw, and ``expected_most`` where the
    provider counts much; None where that is not known, or prices do not differ. All prices are in
    ``currency``. ``at_full_length``: ``usual`` is the best that is known.
    """

    questions: int
    total: int
    targets: list[Forecast]
    together: Forecast | None
    worst: float | None
    usual: float | None
    expected: float | None
    expected_most: float | None
    currency: str
    at_full_length: bool

    @property
    def likely_price(self) -> float | None:
        """Price of a call, as well as it is known."""
        return self.expected or self.usual

    @property
    def dear_price(self) -> float | None:
        """The same where the provider counts much: caps go by this one."""
        return self.expected_most or self.likely_price


def planned(spec: Spec, base: Path, space: QuestionSpace, model: ModelDefaults) -> Plan:
    """Return the plan of a spec's audit. Raise InputError for what the audit would refuse."""
    known = not isinstance(model, NotImported)
    check_model(model, space)
    if known:
        check_cost(model, spec.audit.max_cost)
        check_judge(space, model, spec.audit.max_cost)
    certify, section = Certify(**spec.certify.model_dump(exclude=NO_PROXIES)), spec.audit
    exploration = Sampling(exploration=section.exploration).share(certify.certifies)
    certify.check(exploration)
    sources, probes = SourceCalls(space, model.answers), section.repeat_probes
    check_budget(section.budget, 1 + probes + sources.most * bool(sources.count))
    if section.strategy is not None:
        named(section.strategy, section.strategy_options, base)  # raises for an unknown one
    if section.strategy == "random":
        exploration = 1.0
    by_need = section.strategy in {None, "certify"}
    certifier = certify.certifier(space, model.answers, even=not by_need)
    rows: list[Forecast] = []
    if certifier is not None:
        forecast, all_together = forecasts(
            certifier, exploration, certify.unanswered == "both", ASSUMED
        )
        rows = [_in_calls(row, sources, space, probes) for row in (*forecast, all_together)]
    worst = float(model.most_cost or 0.0) if known and model.prices_known else None
    usual = None if worst is None else worst / model.most_attempts
    prices, guess = Prices.of(space, model, True, None), model.dear_guess or model.price_guess
    expected = dear = None
    if usual is not None and prices is not None and guess is not None:
        # even draws ask dear calls more often
        weighed = section.by_price and by_need and certify.certifies
        even = exploration if weighed else 1.0
        expected = prices.likely(even)
        guessed = Prices.guessed(space, model.answers, guess).likely(even)
        dear = min(guessed, usual)  # no call without retries exceeds it
    judge = space.oracle.judge_by
    draws = space.size if model.answers == "one" else space.images
    return Plan(
        questions=space.size,
        total=draws + sources.count * sources.most + probes,
        targets=rows[:-1],
        together=rows[-1] if rows else None,
        worst=worst,
        usual=usual,
        expected=expected,
        expected_most=dear,
        currency=currency_paid(model, None if judge is None else judge.model, None),
        at_full_length=expected is None and usual is not None and model.price_guess is not None,
    )


def _of_items(pool: Pool, targets: Sequence[str], width: float) -> Plan:
    """Return the plan of an audit of items: a call is a label, which nobody is paid for here."""
    certify = Certify(half_width=width, targets=targets)
    exploration = Sampling().share(True)
    certify.check(exploration)
    certifier = certify.certifier(pool, "one")
    assert certifier is not None  # there is a half-width
    rows, together = forecasts(certifier, exploration, False, ASSUMED)
    return Plan(pool.size, pool.size, rows, together, None, None, None, None, USD, False)


def _in_calls(row: Forecast, sources: SourceCalls, space: QuestionSpace, probes: int) -> Forecast:
    """Return a forecast of draws as one of calls: a source image is asked about once, before its
    follow-ups, and repeat probes last."""
    count = sources.count

    def calls(draws: int) -> int:
        # so many uniform draws are about 1 - exp(-draws / count) of the sources
        return draws + probes + (math.ceil(count * -math.expm1(-draws / count)) if count else 0)

    first = math.ceil(row.at_least / max(1, len(space.variants))) if count else 0
    likely = {loss: calls(draws) for loss, draws in row.likely.items()}
    most = row.at_most + count * sources.most + probes
    return Forecast(row.target, row.at_least + first + probes, likely, most)


@dataclass(frozen=True)
class Pilot:
    """An earlier audit: its ``folder``, what its journal says, what a call of it ``cost`` in which
    ``currency``, and the names of its targets."""

    folder: Path
    content: Evidence
    cost: float
    targets: frozenset[str]
    currency: str

    @classmethod
    def of(cls, folder: Path) -> "Pilot":
        """Read an audit. Raise InputError for one that certified nothing, compared two models, or
        is too short to forecast by."""
        with Run.opened(folder) as run:
            certificate = run.certificate
            if certificate is None or certificate.versus is not None or not run.calls:
                raise InputError(
                    f"--pilot {folder}: expected an audit of one model that certifies and asked "
                    "something, got a comparison of two, or one that explores or is empty"
                )
            content, currency = Evidence(run.journal), run.facts.currency
        widths = content.widest
        if content.calls_to(float(widths[-1]) / 2) is None:
            raise InputError(
                f"--pilot {folder}: expected an audit with more than {KNOWN} draws about every "
                f"target, and that left something to ask, got {points(widths[-1])} after "
                f"{len(widths) - 1} calls"
            )
        cost = content.cost / max(len(widths) - 1, 1)
        return cls(folder, content, cost, frozenset(certificate.targets), currency)

    def check(self, narrowed: Plan) -> None:
        """Raise InputError where it certified other targets, or was paid in another currency."""
        mine, others = narrowed.currency, {row.target for row in narrowed.targets} ^ self.targets
        if self.cost and self.currency != mine:
            raise InputError(
                f"--pilot {self.folder}: expected an audit that was paid in {mine}, as this model "
                f"is, got one in {self.currency}; give model.currency and prices in it"
            )
        if others:
            raise InputError(
                f"--pilot {self.folder}: expected an audit of the same targets, got one that "
                f"differs in {listed(sorted(others))}; name its targets by --targets"
            )


@dataclass(frozen=True)
class Width:
    """What certifying all targets to +-``half_width`` takes.

    Calls ``at_least`` and ``at_most``, ``likely`` by loss rate, and ``by_pilot`` as an earlier
    audit's journal forecasts (None without one), in four of five audits within
    ``range_by_pilot``. ``cost`` of the likely calls by loss rate, ``cost_at_most`` where the
    provider counts much, and ``cost_by_pilot``; None where prices are not known.
    """

    half_width: float
    at_least: int
    likely: dict[float, int]
    at_most: int
    cost: dict[float, float] | None
    cost_at_most: dict[float, float] | None
    by_pilot: int | None = None
    range_by_pilot: tuple[int, int] | None = None
    cost_by_pilot: float | None = None

    @classmethod
    def of(cls, width: float, narrowed: Plan, pilot: Pilot | None = None) -> "Width":
        together = narrowed.together
        assert together is not None  # there is a half-width, so it certifies
        cost, dear = (
            {loss: calls * price for loss, calls in together.likely.items()} if price else None
            for price in (narrowed.likely_price, narrowed.dear_price)
        )
        row = cls(width, together.at_least, together.likely, together.at_most, cost, dear)
        if pilot is None:
            return row
        pilot.check(narrowed)
        if (calls := pilot.content.calls_to(width)) is None:
            return row
        likely, least, most = (min(n, row.at_most) for n in (calls.likely, calls.least, calls.most))
        paid = likely * pilot.cost or None
        return replace(row, by_pilot=likely, range_by_pilot=(least, most), cost_by_pilot=paid)


# -- in words ----------------------------------------------------------------------------------


def _likely_cost(plan: Plan, calls: int = 1) -> str:
    """Return what so many calls are likely to cost: a range where prices are guessed."""
    ends = (plan.likely_price or 0.0, plan.dear_price or 0.0)
    return " to ".join(dict.fromkeys(money(calls * end, plan.currency) for end in ends))


COLUMNS = ("at least", *(f"{loss:.0%} fail" for loss in ASSUMED), "at most")


def _numbers(row: Forecast | Width) -> list[str]:
    return [f"{n:,}" for n in (row.at_least, *row.likely.values(), row.at_most)]


def _by_target(plan: Plan, together: Forecast) -> Table:
    """Return calls until each target is certified as the spec asks, the most expensive first."""
    rows = sorted(plan.targets, key=lambda row: -max(row.likely.values()))
    title = "calls until certified as the spec asks"
    if len(rows) > SHOWN:
        title += f", {SHOWN} of {len(rows)} targets"
    sums = [["all targets" if len(rows) > 1 else "in all", *_numbers(together)]]
    if plan.likely_price and plan.worst:
        calls = (together.at_least, *together.likely.values())
        worst = money(together.at_most * plan.worst, plan.currency)
        sums.append(["cost", *(_likely_cost(plan, n) for n in calls), worst])
    cells = [[row.target, *_numbers(row)] for row in rows[:SHOWN]]
    return table_of(("target", *COLUMNS), cells, title, sums=sums)


def _by_width(rows: Sequence[Width], currency: str) -> Table:
    """Return calls and cost until all targets are certified, by half-width."""
    by_pilot = any(row.by_pilot is not None for row in rows)
    priced = any(row.cost or row.cost_by_pilot for row in rows)
    cells = []
    for row in rows:
        cells.append([points(row.half_width), *_numbers(row)])
        if by_pilot:
            ends = dict.fromkeys(row.range_by_pilot or ())
            cells[-1].append(" to ".join(f"{n:,}" for n in ends) or "–")
        if row.cost_by_pilot is not None:
            cells[-1].append(money(row.cost_by_pilot, currency))
        elif row.cost and row.cost_at_most:
            costs = min(row.cost.values()), max(row.cost_at_most.values())
            cells[-1].append(" to ".join(money(cost, currency) for cost in costs))
    columns = ["half-width", *COLUMNS, *["by pilot"] * by_pilot, *["cost"] * priced]
    return table_of(columns, cells, "calls until all targets are certified")


def _notes(
    spec: Spec,
    space: QuestionSpace,
    model: ModelDefaults,
    plan: Plan,
    rows: Sequence[Width],
    pilot: Pilot | None,
) -> Iterator[str]:
    """Yield what else an audit of the spec will do, and what the plan does not know."""
    judge = space.oracle.judge_by
    sections, budget = (spec.audit, spec.certify, spec.stop), spec.audit.budget
    options = {n: v for section in sections for n, v in section.model_dump().items()}
    paid = spec.model.costs_money or model.costs_money or judge is not None
    if not paid and not insists(options) and (budget is None or budget >= plan.total):
        yield (
            f"calls cost no money: the audit times some, and asks all {plan.questions:,} questions "
            "where that takes less than a minute, or less than sampling; rates are then exact "
            "(--sample insists on sampling)"
        )
    yield from _of_limits(spec, plan, rows, pilot)
    yield from _of_uncertainty(spec, model.hard_answers)
    if judge is not None:
        price = "at an unknown price each" + ", as its code was not imported" * judge.code
        if not judge.code and judge.model.prices_known:
            most = money(judge.model.most_cost or 0.0, judge.model.currency or USD)
            price = f"at {most} each at most"
        yield f"the judge {judge.name} is asked what the rule cannot read, {price}, in addition"
    if plan.expected is not None:
        yield (
            "prices differ: a call's likely one is guessed from its image and words, between the "
            "ways in which providers count, and learnt from the first answers on"
        )
    if plan.at_full_length:
        yield "costs are of replies at full length: many calls cost a third of that"
    if isinstance(model, NotImported):
        what = "every concept of an image" if model.answers == "all" else "one question"
        yield f"no model was imported: a call is taken to answer {what}"


def paid_for(cap: float, price: float) -> int:
    """Return the number of calls of this price that a cap pays for."""
    return int((cap + CENTS) / price)


def _of_limits(spec: Spec, plan: Plan, rows: Sequence[Width], pilot: Pilot | None) -> Iterator[str]:
    """Yield how far each limit of the spec reaches: its calls, and the narrowest half-width."""
    budget, cap = spec.audit.budget, spec.audit.max_cost
    price = (pilot.cost if pilot is not None else 0.0) or plan.dear_price
    limits = []
    if budget is not None:
        limits.append((min(budget, plan.total), f"the budget of {budget:,} calls"))
    if cap is not None and price:
        calls, least = (
            min(paid_for(cap, each), plan.total) for each in (price, plan.worst or price)
        )
        pays = f"pays for about {calls:,} calls ({least:,} at the worst price)"
        limits.append((calls, f"the cap of {money(cap, plan.currency)} on cost {pays}"))
        if least < FEW_AT_WORST:
            yield (
                "a call that is lost holds back its worst price: lower max_tokens, "
                "max_input_tokens or retries in [model] for a cap as small as this"
            )
    if plan.together is None:
        calls, end = min([*limits, (plan.total, "the last question")])
        yield f"explores, and certifies nothing: {end} ends it, after at most {calls:,} calls"
    needed = {f"where {loss:.0%} fail": [row.likely[loss] for row in rows] for loss in ASSUMED}
    if pilot is not None:
        needed = {"by the pilot": [row.by_pilot or row.at_most for row in rows]}
    for calls, limit in limits:
        ends = []
        for case, each in needed.items():
            enough = [row.half_width for row, n in zip(rows, each, strict=True) if n <= calls]
            ends.append(f"{points(min(enough)) if enough else 'none of these'} {case}")
        yield f"{limit}: enough for {', '.join(ends)}; 'avtt resume' can raise it"


def _of_uncertainty(spec: Spec, hard: bool) -> Iterator[str]:
    """Yield whether [stop]'s uncertainties can be reached; ``hard``: answers are 0 or 1."""
    asked = [tau for tau in (spec.stop.uncertainty, spec.stop.max_uncertainty) if tau is not None]
    if not asked:
        return
    from ..surrogates import lowest_with_hard_answers  # imports PyTorch

    lowest = lowest_with_hard_answers(spec.audit.form)
    yield "when uncertainty falls as far as [stop] asks was not worked out"
    if min(asked) < lowest:
        end = f"if the first {SURELY_HARD} are all such, the audit stops and says so"
        if hard:
            stops = f"the audit will stop after {SURELY_HARD} of them"
            end = f"this model gives such answers, so {stops}"
        yield (
            f"with answers of 0 and 1 alone uncertainty cannot fall below {lowest:.3f} of its "
            f"prior, and {min(asked):g} is asked for: {end}"
        )
