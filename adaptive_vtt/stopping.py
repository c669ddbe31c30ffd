"""Rules that end an audit: ``a | b`` ends it once either is met, ``a & b`` once both are."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from .certify.status import TargetStatus
from .errors import InputError, check_known, unexpected
from .types import EndedBy, Floats
from .utils.figures import USD, money
from .utils.options import Option

__all__ = [
    "AllOf",
    "Certified",
    "Compared",
    "Decided",
    "FirstOf",
    "MaxCalls",
    "MaxCost",
    "MaxQuestions",
    "State",
    "StoppingRule",
    "UncertaintyBelow",
    "WallClock",
]


@dataclass(frozen=True)
class State:
    """The state of an audit.

    Attributes:
        calls: Calls drawn so far.
        questions: Questions judged so far.
        elapsed: Seconds so far.
        uncertainty: u- and u+ of each concept (C x 2) as shares of their value before any
            question, NaN on a side where nothing is left to ask.
        targets: State of every target; none in audits that do not certify.
        next_calls: Most calls that the next question may take: 2 if its source image may have to be
            asked about, too.
        cost: Money spent.
        reserved: Most that calls on their way and the next question may cost.
        lost: The part of ``reserved`` for calls that were sent and never came back, each with all
            of its ``attempts``.
        waiting: The part of ``reserved`` for calls that were drawn and may still come back.
        attempts: Most attempts of a call.
        hard: Number of answers if all were 0 or 1; otherwise 0.
        lowest: Lowest relative uncertainty that answers of 0 and 1 alone can reach.
        limit: Rate that bets decide targets against; None: none.
    """

    calls: int
    questions: int
    elapsed: float
    uncertainty: Floats
    targets: tuple[TargetStatus, ...] = ()
    next_calls: int = 1
    cost: float = 0.0
    reserved: float = 0.0
    lost: float = 0.0
    waiting: float = 0.0
    attempts: int = 1
    hard: int = 0
    lowest: float = 0.0
    limit: float | None = None

    @property
    def widest(self) -> float:
        """The relative uncertainty of the most uncertain side; 0 when nothing is left."""
        return float(np.nanmax(self.uncertainty)) if not self.exhausted else 0.0

    @property
    def mean(self) -> float:
        """The mean relative uncertainty over the sides that can still be asked about."""
        return float(np.nanmean(self.uncertainty)) if not self.exhausted else 0.0

    @property
    def exhausted(self) -> bool:
        """True if nothing is left to ask."""
        return bool(np.isnan(self.uncertainty).all())


class End(NamedTuple):
    """The end of an audit: the ``reason`` as a part of a sentence, and what ended it."""

    reason: str
    by: EndedBy = ""


class StoppingRule(Protocol):
    """Rule that decides from the state whether to stop."""

    def reached(self, state: State) -> str | None:
        """Return a reason to stop, as a part of a sentence; None: continue."""


ROUNDING = 1e-9
"""Largest excess of a half-width that counts as rounding."""
SURELY_HARD = 100
"""Number of answers, all of them 0 or 1, after which the model is taken to give no others."""
WIDEST = 0.5
"""Half-width of the interval of any rate before any question, from 0 to 1."""
MAX_CONFIDENCE = 1 - 1e-9
"""Largest confidence. Nearer to 1, 1 - confidence loses most of its digits."""
MANY_ATTEMPTS = 3
"""Number of attempts of a lost call from which on the reason suggests fewer retries."""
CENTS = 1e-9
"""Tolerance, in units of money, where sums of costs are compared: far below any price, and far
above what floats lose by rounding."""


class Combinable:
    """Base of rules that ``|`` and ``&`` combine. ``by`` is the name in a journal that it ended."""

    by: ClassVar[EndedBy] = ""

    def reached(self, state: State) -> str | None:
        raise TypeError(f"{type(self).__name__} defines no rule")

    def __or__(self, other: StoppingRule) -> "FirstOf":
        return FirstOf((self, other))

    def __and__(self, other: StoppingRule) -> "AllOf":
        return AllOf((self, other))


@dataclass(frozen=True)
class MaxCalls(Combinable):
    """Stop before the model is called more than ``limit`` times.

    Attributes:
        limit: Calls, at least 1.
    """

    limit: int

    def __post_init__(self) -> None:
        _positive("calls", self.limit)

    def reached(self, state: State) -> str | None:
        if state.calls + state.next_calls <= self.limit:
            return None
        if state.calls > self.limit:
            return f"{state.calls} calls were made, {self.limit} allowed"
        if state.calls == self.limit:
            return f"{self.limit} calls were made"
        return (
            f"{state.calls} of {self.limit} calls were made; the next question may take "
            f"{state.next_calls}"
        )

    def __str__(self) -> str:
        return f"{self.limit} calls"


@dataclass(frozen=True)
class MaxCost(Combinable):
    """Stop before another question may cost more than is left.

    Attributes:
        limit: The most that may be spent, above 0.
        currency: ISO 4217 code of the limit's currency.
    """

    limit: float
    currency: str = USD

    def __post_init__(self) -> None:
        _positive("cost", self.limit)

    def reached(self, state: State) -> str | None:
        if state.cost + state.reserved <= self.limit + CENTS:
            return None
        following = state.reserved - state.lost - state.waiting
        amounts = (state.cost, self.limit, state.lost, state.waiting, following)
        spent, limit, lost, waiting, cost = (money(x, self.currency) for x in amounts)
        kinds = {f"{lost} for lost calls": state.lost, f"{waiting} for open calls": state.waiting}
        held = " and ".join(text for text, amount in kinds.items() if amount)
        unit = "call" if state.next_calls == 1 else "question"
        reason = f"{spent} of {limit} was spent, {f'{held} is held back, ' if held else ''}"
        reason += f"and the next {unit} may cost {cost}"
        if state.attempts > 1:
            reason += f" in up to {state.attempts} attempts"
        if state.lost and state.attempts >= MANY_ATTEMPTS:
            reason += " (fewer retries hold less back: --set model.retries=1 in a new audit)"
        return reason

    def __str__(self) -> str:
        return f"a cost of {money(self.limit, self.currency)}"


@dataclass(frozen=True)
class MaxQuestions(Combinable):
    """Stop once ``limit`` questions are answered; one call may answer several."""

    limit: Annotated[int, Option("a limit: answered questions", name="questions", ge=1)]

    def __post_init__(self) -> None:
        _positive("questions", self.limit)

    def reached(self, state: State) -> str | None:
        return f"{self.limit} questions were answered" if state.questions >= self.limit else None

    def __str__(self) -> str:
        return f"{self.limit} questions"


@dataclass(frozen=True)
class UncertaintyBelow(Combinable):
    """Stop once the answer GPs are certain enough (the paper's tau, relative to the prior).

    Sides with nothing left to ask do not count.

    Attributes:
        tau: A share of the prior uncertainty, in (0, 1].
        over: Compare the mean over all sides of all concepts ("mean"), as the paper's Figure 4
            does, or the most uncertain side ("max"), which may never fall for a model that is
            always sure of itself.
    """

    tau: Annotated[
        float,
        Option(
            "a goal: mean uncertainty of the answer GPs, as a share of its prior; with answers of "
            "0 and 1 alone it cannot fall below 0.763 (form variance: 0.654)",
            name="uncertainty",
            gt=0,
            le=1,
        ),
    ]
    over: Literal["mean", "max"] = "mean"

    def __post_init__(self) -> None:
        check_known("aggregate", self.over, ("mean", "max"), "stop")
        if not 0 < self.tau <= 1:
            raise InputError(f"stop: expected an uncertainty in (0, 1], got {self.tau}")

    def reached(self, state: State) -> str | None:
        if state.exhausted:
            return None
        level = state.mean if self.over == "mean" else state.widest
        if level <= self.tau:
            return f"the {self.over} uncertainty is {level:.3f} of its prior, at most {self.tau:g}"
        if state.hard >= SURELY_HARD and state.lowest > self.tau:
            return (
                f"the {self.over} uncertainty cannot fall to {self.tau:g} of its prior: all "
                f"{state.hard} answers were 0 or 1, with which at least {state.lowest:.3f} is left;"
                " certify instead (half_width), which such answers can, ask for more than that, or "
                "have the model give probabilities"
            )
        return None

    def __str__(self) -> str:
        return f"{self.over} uncertainty at most {self.tau:g} of its prior"


class _EveryTarget(Combinable, ABC):
    """Stop once every target is done, except abandoned ones.

    A target whose draws contradict its interval is not done.
    """

    def reached(self, state: State) -> str | None:
        targets = [target for target in state.targets if not target.abandoned]
        done = [self._done(state, target) and not target.invalidated for target in targets]
        if not state.targets or not all(done):
            return None
        abandoned, (word, reason) = len(state.targets) - len(targets), self._words(state)
        if not abandoned:
            return reason
        others = "other is" if abandoned == 1 else f"other {abandoned} are"
        count = f"{len(targets)} of {len(state.targets)} targets are {word}"
        return f"{count}, and the {others} invalidated"

    @abstractmethod
    def _done(self, state: State, target: TargetStatus) -> bool:
        """Return whether a target is done."""

    @abstractmethod
    def _words(self, state: State) -> tuple[str, str]:
        """Return the word for a target that is done, and the reason to stop."""


@dataclass(frozen=True)
class Certified(_EveryTarget):
    """Stop once every target is certified.

    Attributes:
        half_width: The widest half-width of an interval, above 0 and below 0.5.
    """

    half_width: float

    def __post_init__(self) -> None:
        check_half_width(self.half_width, "stop: half_width")

    def _done(self, state: State, target: TargetStatus) -> bool:
        slack = ROUNDING * target.id.signed  # ends of a difference are twice a rate, less 1
        return target.half_width <= self.half_width + slack

    def _words(self, state: State) -> tuple[str, str]:
        done = f"certified to +-{self.half_width:g}"
        return done, f"all {len(state.targets)} targets are {done}"

    def __str__(self) -> str:
        return f"every target within +-{self.half_width:g}"


@dataclass(frozen=True)
class Decided(_EveryTarget):
    """Stop once every target is decided to lie above ``at_most``, or at most at it.

    Audits with this limit decide by bets of their own (``certify.decisions``); against any other
    limit a target is decided once its whole interval lies on one side.

    Attributes:
        at_most: The limit, a rate from 0 to 1.
    """

    at_most: float

    def _done(self, state: State, target: TargetStatus) -> bool:
        return self._side(state, target) != "open"

    def _side(self, state: State, target: TargetStatus) -> str | None:
        if state.limit == self.at_most:
            return target.decided
        below = "below" if target.upper <= self.at_most else "open"
        return "above" if target.lower > self.at_most else below

    def _words(self, state: State) -> tuple[str, str]:
        sides = [self._side(state, target) for target in state.targets]
        sides_above = f"{sides.count('above')} of {len(sides)} above {self.at_most:g}"
        return f"decided against {self.at_most:g}", f"every target is decided: {sides_above}"

    def __str__(self) -> str:
        return f"every target on one side of {self.at_most:g}"


@dataclass(frozen=True)
class Compared(_EveryTarget):
    """Stop once every difference of two models is decided; see ``certify.decisions``.

    Attributes:
        margin: A difference in [0, 1) that does not matter.
        at_least: A claim in (-1, 1) that is decided in place of signs. Default None: no claim.
    """

    margin: float
    at_least: float | None = None

    def _done(self, state: State, target: TargetStatus) -> bool:
        return target.decision not in (None, "open")

    def _words(self, state: State) -> tuple[str, str]:
        what, count = "difference" if self.at_least is None else "claim", len(state.targets)
        subject = f"the {what} is" if count == 1 else f"all {count} {what}s are"
        return "decided", f"{subject} decided"

    def __str__(self) -> str:
        if self.at_least is not None:
            return f"every difference on one side of {self.at_least:g}"
        within = f", or within {self.margin:g}" if self.margin else ""
        return f"every difference on one side of 0{within}"


@dataclass(frozen=True)
class WallClock(Combinable):
    """Stop after ``seconds`` of audit, interruptions not counted."""

    seconds: Annotated[float, Option("a limit: seconds of audit", gt=0)]

    def __post_init__(self) -> None:
        _positive("seconds", self.seconds)

    def reached(self, state: State) -> str | None:
        return f"{self.seconds:g} seconds have passed" if state.elapsed >= self.seconds else None

    def __str__(self) -> str:
        return f"{self.seconds:g} seconds"


def all_invalidated(state: State) -> str | None:
    """Return the reason why an audit ends whose answers contradict each other, or None.

    All pseudo-outcomes of a target have one mean if the losses do not change. So an interval that
    empties shows that they changed, or that chance did it, with the probability that is allowed for
    misses. More calls would spend the budget on a target that cannot be certified any more.

    If each interval holds by itself, chance empties some of many. Such targets are abandoned, and
    the audit continues until no interval is left.
    """
    count = sum(target.emptied for target in state.targets)
    abandoned = sum(target.abandoned for target in state.targets)
    if not count or 0 < abandoned < len(state.targets):
        return None
    targets = "one target" if count == 1 else f"{count} targets"
    return f"the model's answers changed during the audit: nothing is left for {targets}"


def check_rule(rule: object, where: str) -> None:
    """Raise InputError for an object that is no StoppingRule."""
    if isinstance(rule, type) or not callable(getattr(rule, "reached", None)):
        example = "an object with a method reached, such as stopping.WallClock(60)"
        raise unexpected(where, f"a stopping rule, {example}", repr(rule))


def check_half_width(half_width: float, where: str = "half_width") -> None:
    """Raise InputError for a half-width that no interval has, or that all have from the start."""
    got, example = repr(half_width), 0.05
    if isinstance(half_width, Real):
        if 0 < half_width < WIDEST:
            return
        got = f"{half_width:g}"
        example = half_width / 100 if 1 <= half_width < 100 * WIDEST else example
    such = f"such as {example:g} for +-{100 * example:g} points"
    raise unexpected(where, f"a share above 0 and below {WIDEST:g}, {such}", got)


def limits_of(calls: int | None, cost: float | None, currency: str = USD) -> list[StoppingRule]:
    """Return the rules of a budget in calls and of a cap on cost; none for those not set."""
    rules: list[StoppingRule] = [] if calls is None else [MaxCalls(calls)]
    return rules if cost is None else [*rules, MaxCost(cost, currency)]


def first_end(rules: Iterable[StoppingRule], state: State) -> End | None:
    """Return the end by the first rule that is met, looking into those joined by "or".

    None if no rule is met.
    """
    for rule in rules:
        if isinstance(rule, FirstOf):
            if (end := first_end(rule.rules, state)) is not None:
                return end
        elif reason := rule.reached(state):
            return End(reason, rule.by if isinstance(rule, Combinable) else "")
    return None


@dataclass(frozen=True)
class FirstOf(Combinable):
    """Stop at the first rule that is met.

    Attributes:
        rules: The rules.
    """

    rules: tuple[StoppingRule, ...]

    def reached(self, state: State) -> str | None:
        end = first_end(self.rules, state)
        return None if end is None else end.reason

    def __str__(self) -> str:
        return " or ".join(map(str, self.rules))


@dataclass(frozen=True)
class AllOf(Combinable):
    """Stop once every rule is met.

    Attributes:
        rules: The rules.
    """

    rules: tuple[StoppingRule, ...]

    def reached(self, state: State) -> str | None:
        reasons = [rule.reached(state) for rule in self.rules]
        return None if None in reasons else " and ".join(r for r in reasons if r)

    def __str__(self) -> str:
        return " and ".join(map(str, self.rules))


def levels_of(rules: Iterable[StoppingRule]) -> list[tuple[Literal["mean", "max"], float]]:
    """Return ``over`` and ``tau`` of every UncertaintyBelow, also inside "or" and "and"."""
    levels: list[tuple[Literal["mean", "max"], float]] = []
    for rule in rules:
        if isinstance(rule, UncertaintyBelow):
            levels.append((rule.over, rule.tau))
        elif isinstance(rule, FirstOf | AllOf):
            levels += levels_of(rule.rules)
    return levels


def _positive(what: str, value: float) -> None:
    """Raise InputError for a limit that is not a positive, finite number."""
    if not 0 < value < math.inf:
        remedy = "; leave the limit out for none" if value > 0 else ""
        raise InputError(f"stop: expected a number of {what} above 0, got {value}{remedy}")
