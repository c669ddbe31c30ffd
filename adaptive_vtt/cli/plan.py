"""``avtt plan``, and ``avtt audit --dry-run``: estimate calls and cost without calling the model.

Bounds follow from the targets (``audit.forecast``), without importing PyTorch. Calls about
follow-ups, source images and repeat probes are counted together.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..audit.all_or_sample import insists
from ..audit.forecast import Forecast, forecasts
from ..audit.overview import show
from ..certify.further import KNOWN, Range
from ..config import Spec
from ..config.building import CERTIFY_APART, NotImported, build_space, model_of, unworked
from ..datasets.base import adapted_dataset
from ..engine.options import Certify, Sampling
from ..engine.prices import Prices
from ..engine.settings import check_budget, check_cost, check_model, currency_paid
from ..engine.source_calls import SourceCalls
from ..errors import InputError, listed
from ..models import ModelDefaults, adapted_model
from ..models.checking import checked
from ..models.network.chat import Chat, Provider
from ..models.network.keys import needing_no_key
from ..models.unanswered import remedy
from ..models.yes_no import NO_IMAGE
from ..people.items import HALF_WIDTH, items_pool
from ..pool import Pool
from ..results.cautions import fallen_back
from ..results.report.evidence import Evidence
from ..results.run import Run
from ..space import QuestionSpace
from ..stopping import CENTS, SURELY_HARD, check_half_width
from ..strategies import named
from ..types import IDENTITY, CallMode, Prompt, Unanswered
from ..utils.figures import USD, money, percent, points, shorten
from ..utils.importing import pip_install
from .options import names, share
from .printing import filled, plain_console, print_json, table_of
from .spec_changes import read

WIDTHS = "0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4"
"""Default half-widths of the table."""
ASSUMED = (0.1, 0.3)
"""Loss rates at which the likely calls are estimated."""
SHOWN = 12
"""Targets that are listed, at most."""
COLUMNS = ("at least", *(f"rate {100 * loss:.0f} %" for loss in ASSUMED), "at most")


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

    Prints what was read of the data, an example of a call, the calls and cost of
    every half-width, and how far the spec's limits reach. For the options of an
    audit, 'avtt audit --dry-run' prints the same. --pilot forecasts by the draws,
    and the cost of a call, of an earlier audit. For a CSV of items, as 'avtt
    label' takes, the number of labels is estimated.

    --probe asks a chat model whether a black and a white image are black. Exit
    codes: 0 it looked; 4 it did not; 2 no answer.

    Example: avtt plan SPEC.toml --targets overall,relations

    Args:
        spec (SPEC.toml): What would be audited, or a CSV of items.
        half_width (LIST): Half-widths of the table, separated by commas.
        targets (LIST): What is certified, separated by commas. Default: the spec's.
        group (COLUMN): With a CSV of items: a column of groups to certify; repeatable.
        pilot (DIR): Run folder of an earlier audit of the same targets.
        probe: Instead, make two calls that show whether a chat model looks at its images.
    """
    widths = sorted({share(width) for width in names(half_width) or [half_width]})
    for width in widths:
        check_half_width(width, "--half-width")
    items = spec.suffix == ".csv"
    of_spec = {"--targets": targets, "--pilot": pilot, "--probe": probe, "--set": set_}
    for option, value in (of_spec if items else {"--group": group}).items():
        if value:
            wanted = "a SPEC.toml" if items else "a CSV of items"
            raise InputError(f"{option}: expected {wanted} with it, got {spec}")
    if items:
        pool, handles = items_pool(spec, {"group": group})
        plans = {w: of_items(pool, Certify(w, targets=handles)) for w in (HALF_WIDTH, *widths)}
        rows = [Width.of(width, plans[width]) for width in widths]
        return _print(pool, "one", plans[HALF_WIDTH], rows, [], json_, f"to {points(HALF_WIDTH)}")
    chosen, base = read(spec, False, {"certify.targets": names(targets)}, set_)
    if probe:
        raise typer.Exit(ask_twice(chosen, base))
    estimate(chosen, base, json_, widths, None if pilot is None else Pilot.of(pilot))


def of_items(pool: QuestionSpace, certify: Certify) -> "Plan":
    """Return the plan of an audit of the items of a pool, whose calls are labels."""
    share = Sampling().share(True)
    certify.check(share)
    certifier = certify.certifier(pool, "one")
    assert certifier is not None  # as there is a half-width
    rows, together = forecasts(certifier, share, False, ASSUMED)
    return Plan(pool.size, pool.size, rows, together)


def estimate(
    spec: Spec,
    base: Path,
    as_json: bool,
    widths: Sequence[float] = (),
    pilot: "Pilot | None" = None,
) -> None:
    """Print the plan of a spec.

    Args:
        spec: What would be audited.
        base: Folder at which the paths of the spec start.
        as_json: Print JSON in place of tables.
        widths: Half-widths of the table, as shares; ``WIDTHS`` where there are none.
        pilot: An earlier audit of the same targets.
    """
    with needing_no_key() as unset:
        space = build_space(spec, base)
        model = adapted_model(model_of(spec, base, space, code=False))
    for variable in dict.fromkeys(unset):
        why = "a plan needs no key, the audit needs the one in this environment variable"
        typer.echo(f"{variable} is not set yet: {why}", err=True)
    if isinstance(model, Provider) and model.uninstalled:
        needs = f"the audit needs the package {model.library}, a plan does not"
        typer.echo(f"{needs}: {pip_install(model.library)}", err=True)
    chosen, rows = planned(spec, base, space, model), []
    audit = spec.audit.model_copy(update={"exploration": spec.audit.exploration or None})
    for width in widths or map(float, WIDTHS.split(",")):
        certify = spec.certify.model_copy(update={"half_width": width})
        narrowed = spec.model_copy(update={"certify": certify, "audit": audit})
        rows.append(Width.of(width, planned(narrowed, base, space, model), pilot))
    notes = _notes(spec, space, model, chosen, rows, pilot)
    if isinstance(model, Chat):
        notes = [f"words of a call:\n{_first_words(space, model)}", *notes]
    _print(space, model.answers, chosen, rows, notes, as_json)


def _first_words(space: QuestionSpace, model: Chat) -> str:
    """Return the text that a chat model is sent about the first image."""
    dataset = adapted_dataset(space.dataset)
    asks = dataset.asks(0)
    concepts = tuple(name for name in space.asked if not asks or name in asks)
    concepts = concepts[:1] if model.answers == "one" else concepts
    asked = tuple(asks[name] for name in concepts) if asks else ()
    return model.template.render(Prompt(None, concepts, dataset.sample_id(0), IDENTITY, 0, asked))


# -- the estimate ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """Calls and prices of an audit; a price is None if it is not known.

    Attributes:
        questions: Number of questions.
        total: Number of calls that ask everything.
        targets: The calls that each target takes by itself.
        together: The calls that all targets take, or None if nothing is certified.
        worst: Price of a call with all retries, at the longest prompt and reply.
        usual: Price of a call without retries, at the longest prompt and reply.
        expected: Likely mean price of the calls that are drawn.
        expected_most: That mean if the provider counts many tokens.
        currency: Currency of the prices.
        at_full_length: Whether no better price than ``usual`` is known.
    """

    questions: int
    total: int
    targets: list[Forecast]
    together: Forecast | None
    worst: float | None = None
    usual: float | None = None
    expected: float | None = None
    expected_most: float | None = None
    currency: str = USD
    at_full_length: bool = False

    def likely_cost(self, calls: int = 1) -> str:
        """Return the likely cost of ``calls`` calls, as a range if prices are guessed."""
        ends = (self.expected or 0.0, self.expected_most or 0.0)
        return " to ".join(dict.fromkeys(money(calls * end, self.currency) for end in ends))


def planned(spec: Spec, base: Path, space: QuestionSpace, model: ModelDefaults) -> Plan:
    """Return the plan of a spec's audit. Raise InputError for what the audit would refuse."""
    section, known = spec.audit, not isinstance(model, NotImported)
    check_model(model, space)
    if known:
        check_cost(space, model, section.max_cost)
    certify = Certify(**spec.certify.model_dump(exclude={*CERTIFY_APART, "surrogate"}))
    exploration = Sampling(exploration=section.exploration).share(certify.certifies)
    certify.check(exploration)
    sources, probes = SourceCalls(space, model.answers), section.repeat_probes
    check_budget(section.budget, 1 + probes + sources.most_per_source * bool(sources.count))
    if section.strategy is not None:
        named(section.strategy, section.strategy_options, base)  # raises for an unknown one
    if section.strategy == "random":
        exploration = 1.0
    by_need = section.strategy in {None, "certify"}
    certifier = certify.certifier(space, model.answers, even=not by_need)
    rows: list[Forecast] = []
    if certifier is not None:
        both = certify.unanswered == "both"
        each, together = forecasts(certifier, exploration, both, ASSUMED)
        rows = [_in_calls(row, sources, space, probes) for row in (*each, together)]
    worst = float(model.most_cost or 0.0) if known and model.prices_known else None
    usual = None if worst is None else worst / model.most_attempts
    expected = expected_most = usual
    prices, guess = Prices.of(space, model, True, None), model.high_guess or model.price_guess
    if guessed := (usual is not None and prices is not None and guess is not None):
        # draws by price ask expensive calls less often, even ones do not
        even = exploration if section.by_price and by_need and certify.certifies else 1.0
        expected = prices.likely(even)
        expected_most = min(Prices.guessed(space, model.answers, guess).likely(even), usual)
    judge = space.oracle.judge_by
    draws = space.size if model.answers == "one" else space.images
    return Plan(
        questions=space.size,
        total=draws + sources.count * sources.most_per_source + probes,
        targets=rows[:-1],
        together=rows[-1] if rows else None,
        worst=worst,
        usual=usual,
        expected=expected,
        expected_most=expected_most,
        currency=currency_paid(model, None if judge is None else judge.model, None),
        at_full_length=not guessed and usual is not None and model.price_guess is not None,
    )


def _in_calls(row: Forecast, sources: SourceCalls, space: QuestionSpace, probes: int) -> Forecast:
    """Return a forecast of draws as one of calls: a source image is asked about once, before its
    follow-ups, and repeat probes last."""
    count = sources.count

    def calls(draws: int) -> int:
        # n uniform draws meet a share of about 1 - exp(-n / count) of the sources
        return draws + probes + (math.ceil(count * -math.expm1(-draws / count)) if count else 0)

    first = math.ceil(row.at_least / max(1, len(space.variants))) if count else 0
    likely = {loss: calls(draws) for loss, draws in row.likely.items()}
    most = row.at_most + count * sources.most_per_source + probes
    return Forecast(row.target, row.at_least + first + probes, likely, most)


@dataclass(frozen=True)
class Pilot:
    """An earlier audit: its folder, evidence, mean cost of a call, target names and currency."""

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
            fits = certificate and not (certificate.versus or certificate.drops)
            if certificate is None or not fits or not run.calls:
                raise InputError(
                    f"--pilot {folder}: expected an audit of one model that certifies and asked "
                    "something, got a comparison of two, or one that explores, is of drops or empty"
                )
            content, currency = Evidence(run.journal), run.facts.currency
        calls, width = len(content.widest) - 1, float(content.widest[-1])
        if content.calls_to(width / 2) is None:
            raise InputError(
                f"--pilot {folder}: expected an audit with more than {KNOWN} draws about every "
                f"target, and that left something to ask, got {points(width)} after {calls} calls"
            )
        cost = content.cost / max(calls, 1)
        return cls(folder, content, cost, frozenset(certificate.targets), currency)

    def check(self, narrowed: Plan) -> None:
        """Raise InputError if the pilot certified other targets, or was paid in another
        currency."""
        if self.cost and self.currency != narrowed.currency:
            raise InputError(
                f"--pilot {self.folder}: expected an audit that was paid in {narrowed.currency}, "
                f"as this model is, got one in {self.currency}; give model.currency and its prices"
            )
        if others := {row.target for row in narrowed.targets} ^ self.targets:
            raise InputError(
                f"--pilot {self.folder}: expected an audit of the same targets, got one that "
                f"differs in {listed(sorted(others))}; name its targets by --targets"
            )


@dataclass(frozen=True)
class Width:
    """Calls and cost of certifying all targets to +-``half_width``.

    Attributes:
        half_width: The half-width, as a share.
        at_least: Fewest calls.
        likely: Likely calls by loss rate.
        at_most: Most calls.
        cost: Cost of the likely calls: at the lowest loss rate, and at the highest if the provider
            counts many tokens. None if prices are not known.
        by_pilot: Calls that an earlier audit forecasts, None without one.
        range_by_pilot: Range of these in four of five audits.
        cost_by_pilot: Cost of ``by_pilot``, None if prices are not known.
    """

    half_width: float
    at_least: int
    likely: dict[float, int]
    at_most: int
    cost: tuple[float, float] | None
    by_pilot: int | None = None
    range_by_pilot: tuple[int, int] | None = None
    cost_by_pilot: float | None = None

    @classmethod
    def of(cls, width: float, narrowed: Plan, pilot: Pilot | None = None) -> "Width":
        together = narrowed.together
        assert together is not None  # as there is a half-width
        calls, cost = together.likely.values(), None
        if narrowed.expected and narrowed.expected_most:
            cost = min(calls) * narrowed.expected, max(calls) * narrowed.expected_most
        row = cls(width, together.at_least, together.likely, together.at_most, cost)
        if pilot is None:
            return row
        pilot.check(narrowed)
        if (range_ := pilot.content.calls_to(width)) is None:
            return row
        ends = range_.likely, range_.least, range_.most
        likely, least, most = (min(n, row.at_most) for n in ends)
        paid = likely * pilot.cost or None
        return replace(row, by_pilot=likely, range_by_pilot=(least, most), cost_by_pilot=paid)


# -- printing ----------------------------------------------------------------------------------


def _print(
    space: QuestionSpace,
    answers: CallMode,
    chosen: Plan,
    rows: Sequence[Width],
    notes: list[str],
    as_json: bool,
    goal: str = "as the spec asks",
) -> None:
    """Print a plan, its half-widths and its notes.

    Args:
        space: The questions.
        answers: What a call answers.
        chosen: The plan of the spec.
        rows: The half-widths of the table.
        notes: Sentences that follow.
        as_json: Print JSON in place of all that.
        goal: When ``chosen`` is certified, in words.
    """
    if as_json:
        return print_json({**asdict(chosen), "half_widths": [*map(asdict, rows)], "notes": notes})
    console = plain_console()
    what = "labels" if isinstance(space, Pool) else "calls"
    if what == "calls":
        show(space, [row.target for row in chosen.targets], answers, console)
    cost = ""
    if chosen.worst:
        exact = chosen.at_full_length or chosen.expected == chosen.usual
        each = "each" + " at full length" * chosen.at_full_length if exact else "likely"
        most = money(chosen.worst, chosen.currency)
        cost = f", {chosen.likely_cost()} {each}, {most} at most"
    counts = f"{chosen.questions:,} questions; {chosen.total:,} {what}"
    console.print(f"{space.dataset.name}: {counts}{cost}")
    if chosen.together is not None:
        print_targets(chosen, f"{what} in all until certified {goal}")
    by_pilot = any(row.by_pilot is not None for row in rows)
    priced = any(row.cost or row.cost_by_pilot for row in rows)
    columns = ["half-width", *COLUMNS, *["by pilot"] * by_pilot, *["cost in all"] * priced]
    cells = []
    for row in rows:
        cells.append([points(row.half_width), *_numbers(row)])
        if by_pilot:
            ends = row.range_by_pilot
            cells[-1].append(Range(row.by_pilot or 0, *ends).short if ends else "–")
        if costs := (row.cost_by_pilot,) if row.cost_by_pilot is not None else row.cost:
            cells[-1].append(" to ".join(money(cost, chosen.currency) for cost in costs))
    console.print(table_of(columns, cells, f"{what} in all until all targets are certified"))
    likely = f"rate 10 %: likely {what} if a tenth is wrong; fewer if failures have a pattern"
    for note in (likely, *notes, "nothing was asked"):
        console.print(note)


def _numbers(row: Forecast | Width) -> list[str]:
    return [f"{n:,}" for n in (row.at_least, *row.likely.values(), row.at_most)]


def print_targets(plan: Plan, title: str) -> None:
    """Print the calls that each target takes, the most expensive first."""
    together, rows = plan.together, sorted(plan.targets, key=lambda r: -max(r.likely.values()))
    assert together is not None  # as something is certified
    if len(rows) > SHOWN:
        title += f", {SHOWN} of {len(rows)} targets"
    sums = [["all targets" if len(rows) > 1 else "in all", *_numbers(together)]]
    if plan.expected and plan.worst:
        calls = (together.at_least, *together.likely.values())
        worst = money(together.at_most * plan.worst, plan.currency)
        sums.append(["cost in all", *map(plan.likely_cost, calls), worst])
    cells = [[row.target, *_numbers(row)] for row in rows[:SHOWN]]
    plain_console().print(table_of(("target", *COLUMNS), cells, title, sums=sums))


def paid_for(cap: float, price: float) -> int:
    """Return the number of calls of this price that a cap pays for."""
    return int((cap + CENTS) / price)


def _notes(
    spec: Spec,
    space: QuestionSpace,
    model: ModelDefaults,
    plan: Plan,
    rows: Sequence[Width],
    pilot: Pilot | None,
) -> list[str]:
    """Return sentences on how the audit will run, how far its limits reach, and what the plan does
    not estimate."""
    judge, budget, cap = space.oracle.judge_by, spec.audit.budget, spec.audit.max_cost
    paid = spec.model.costs_money or model.costs_money or judge is not None
    samples = insists(dict(spec.audit) | dict(spec.certify) | dict(spec.stop))
    words: dict[str, Any] = {
        "plan": plan,
        "answers": model.answers,
        "imported": not isinstance(model, NotImported),
        "judge": judge,
        "budget": budget,
        "cheap": not paid and not samples and (budget is None or budget >= plan.total),
    }
    if judge is not None and not judge.code and judge.model.prices_known:
        words["judge_price"] = money(judge.model.most_cost or 0.0, judge.model.currency or USD)
    asked = [tau for tau in (spec.stop.uncertainty, spec.stop.max_uncertainty) if tau is not None]
    words |= {"uncertainty": min(asked, default=None), "surely_hard": SURELY_HARD}
    if asked:
        from ..surrogates import lowest_with_hard_answers  # imports PyTorch

        words["lowest"] = lowest_with_hard_answers(spec.audit.form)
    limits = {} if budget is None else {"budget": min(budget, plan.total)}
    price = (pilot.cost if pilot is not None else 0.0) or plan.expected_most
    if cap is not None and price:
        limits["cap"] = min(paid_for(cap, price), plan.total)
        words["least"] = min(paid_for(cap, plan.worst or price), plan.total)
        words["cap"] = money(cap, plan.currency)
    first = min({**limits, "": plan.total}, key={**limits, "": plan.total}.__getitem__)
    needed = {f"{100 * loss:.0f} %": [row.likely[loss] for row in rows] for loss in ASSUMED}
    if pilot is not None:
        needed = {"": [row.by_pilot or row.at_most for row in rows]}
    calls, reached = limits.get(first, 0), dict[str, list[str]]()  # half-width -> rates
    for rate, each in needed.items():
        enough = [row.half_width for row, n in zip(rows, each, strict=True) if n <= calls]
        width = points(min(enough)) if enough else "none of these half-widths"
        reached.setdefault(width, []).append(rate)
    return filled("plan", limits=limits, first=first, reached=reached, **words).splitlines()


# -- --probe: two calls that show whether a chat model is shown its images -------------------------

SIDE = 64
"""Pixels of an image's side: providers refuse smaller ones."""
SHADES = {"black": 0, "white": 255}
QUOTED = 100
"""Most characters of a reply that are shown."""


def ask_twice(spec: Spec, base: Path) -> int:
    """Ask about a black and a white image, and print how the replies were read.

    Returns:
        The exit code: 0 if the model looked, 4 if it did not, 2 if an answer is missing.

    Raises:
        InputError: The model is no chat model, or two calls may cost more than the spec allows.
    """
    model = adapted_model(model_of(unworked(spec), base, build_space(spec, base)))
    if not isinstance(model, Chat):
        raise InputError(
            f"--probe: expected a chat model, which can be asked about any image, got kind "
            f"{spec.model.kind!r}; leave --probe out"
        )
    cap, worst = spec.audit.max_cost, len(SHADES) * model.most_cost
    if cap is not None and worst > cap:
        cost = f"{money(worst, model.prices.currency)} at worst, more than max_cost = {cap:g}"
        raise InputError(f"--probe: two calls may cost {cost}; raise max_cost or lower max_tokens")
    model.template = replace(model.template, ask_concept="Is this image {concept}?")
    images = {shade: np.full((SIDE, SIDE, 3), value, np.uint8) for shade, value in SHADES.items()}
    prompts = [Prompt(i, ("black",), f"a {s} image", "identity", 0) for s, i in images.items()]
    with model:
        answers = checked(model, prompts)
    given = [answer if isinstance(answer, Unanswered) else answer.values[0] for answer in answers]
    values = [v if isinstance(v, float | Unanswered) else Unanswered("no number") for v in given]
    replies = [shorten(" ".join(answer.reply.split()), QUOTED) for answer in answers]
    reasons = [value.reason for value in values if isinstance(value, Unanswered)]
    black, white = (value if isinstance(value, float) else math.nan for value in values)
    code, reason = (0 if black >= 0.5 > white else 4), NO_IMAGE
    if reasons and NO_IMAGE not in reasons:
        code, reason = 2, reasons[0]
    cost = money(sum(answer.cost for answer in answers), model.prices.currency)
    shown = filled(
        "probe",
        rows=zip(SHADES, replies, values, strict=True),
        cautions=fallen_back(model.elicitation()),
        cost=cost if model.prices_known else "",
        code=code,
        remedy=remedy(reason),
        percent=percent,
    )
    typer.echo(shown)
    return code
