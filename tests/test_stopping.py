"""When an audit ends: each rule alone, together, and in an audit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.status import TargetStatus
from adaptive_vtt.errors import InputError
from adaptive_vtt.families import Overall
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.stopping import (
    Combinable,
    Compared,
    MaxCalls,
    MaxCost,
    MaxQuestions,
    State,
    StoppingRule,
    UncertaintyBelow,
    WallClock,
    first_end,
)
from adaptive_vtt.testing import ScriptedModel


def state(
    calls: int = 0, questions: int = 0, elapsed: float = 0.0, uncertainty: Any = ((1.0, 1.0),)
) -> State:
    return State(calls, questions, elapsed, np.array(uncertainty, dtype=float))


NONE_LEFT = [[np.nan, np.nan], [np.nan, np.nan]]
# mean of what is left 3/8, most uncertain 5/8: exact in binary
PARTLY = [[0.125, 0.625], [np.nan, 0.375]]


@pytest.mark.parametrize(
    ("rule", "before", "after", "reason"),
    [
        (MaxCalls(5), state(calls=4), state(calls=5), "5 calls were made"),
        (MaxCalls(5), state(questions=9), state(calls=6), "6 calls were made, 5 allowed"),
        (MaxQuestions(5), state(calls=9), state(questions=5), "5 questions were answered"),
        (WallClock(2.5), state(elapsed=2.4), state(elapsed=2.5), "2.5 seconds have passed"),
        (
            UncertaintyBelow(0.375),
            state(uncertainty=[[0.125, 0.625], [np.nan, 0.376]]),
            state(uncertainty=PARTLY),
            "the mean uncertainty is 0.375 of its prior, at most 0.375",
        ),
        (
            UncertaintyBelow(0.625, over="max"),
            state(uncertainty=[[0.125, 0.626], [np.nan, 0.375]]),
            state(uncertainty=PARTLY),
            "the max uncertainty is 0.625 of its prior, at most 0.625",
        ),
    ],
    ids=str,
)
def test_each_rule_is_met_at_its_limit_and_not_before(
    rule: StoppingRule, before: State, after: State, reason: str
) -> None:
    assert rule.reached(before) is None
    assert rule.reached(after) == reason


def test_state_summarises_the_sides_that_are_left() -> None:
    partly, none = state(uncertainty=PARTLY), state(uncertainty=NONE_LEFT)
    assert (partly.mean, partly.widest, partly.exhausted) == (0.375, 0.625, False)
    assert (none.mean, none.widest, none.exhausted) == (0, 0, True)


def test_either_rule_ends_at_the_first_and_both_at_the_last() -> None:
    either, both = MaxCalls(5) | MaxQuestions(8), MaxCalls(5) & MaxQuestions(8)
    assert [either.reached(state(*n)) for n in ((4, 7), (5, 7), (4, 8), (5, 8))] == [
        None,
        "5 calls were made",
        "8 questions were answered",
        "5 calls were made",
    ]
    assert both.reached(state(5, 7)) is both.reached(state(4, 8)) is None
    assert both.reached(state(5, 8)) == "5 calls were made and 8 questions were answered"
    nested = both | UncertaintyBelow(0.1)
    assert str(nested) == "5 calls and 8 questions or mean uncertainty at most 0.1 of its prior"
    assert nested.reached(state(5, 7)) is None
    assert nested.reached(state(5, 8)) == both.reached(state(5, 8))


class Named(Combinable):
    by = "gate"

    def reached(self, state: State) -> str | None:
        return "named" if state.calls >= 2 else None


def test_an_end_tells_by_which_rule_it_came_however_rules_are_joined() -> None:
    rules = [MaxCalls(9), MaxCalls(3) | (MaxQuestions(9) | Named())]
    assert first_end(rules, state(calls=1)) is None
    assert first_end(rules, state(calls=2)) == ("named", "gate")
    assert first_end([MaxCalls(2), *rules], state(calls=2)) == ("2 calls were made", "")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MaxCalls(0), r"stop: expected a number of calls above 0, got 0"),
        (lambda: MaxQuestions(0), r"number of questions above 0, got 0"),
        (lambda: WallClock(0), r"number of seconds above 0, got 0"),
        (lambda: UncertaintyBelow(0), r"stop: expected an uncertainty in \(0, 1\], got 0"),
        (lambda: UncertaintyBelow(1.1), r"stop: expected an uncertainty in \(0, 1\], got 1\.1"),
        (lambda: UncertaintyBelow(0.5, over="maxx"), r"unknown aggregate 'maxx'; did you mean"),
    ],
)
def test_parameters_out_of_range_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


# -- in an audit ---------------------------------------------------------------------------


def test_audit_ends_at_the_rule_or_the_budget_whichever_is_first(space: QuestionSpace) -> None:
    for rule, budget, reason in (
        (MaxQuestions(7), 30, "7 questions were answered"),
        (MaxQuestions(70), 5, "5 calls were made"),
    ):
        audit = Audit(space, ScriptedModel(), stop=rule, budget=budget)
        result = audit.run()
        assert result.reason == audit.stopped == reason
        assert audit.rules == [str(rule), f"{budget} calls"]
    # 2 concepts per call: the 7th question comes with the 4th call
    assert Audit(space, ScriptedModel(), stop=MaxQuestions(7)).run().calls == 4


def test_audit_ends_once_it_is_certain_enough(space: QuestionSpace) -> None:
    audit = Audit(space, ScriptedModel(), stop=UncertaintyBelow(0.6))
    levels: list[float] = []
    audit.run(lambda progress: levels.append(progress.state.mean))
    assert levels[-1] <= 0.6 < min(levels[:-1])
    assert str(audit.stopped).startswith("the mean uncertainty is 0.")


def test_time_passed_is_counted_without_interruptions(space: QuestionSpace) -> None:
    now = 100.0

    class Slow(ScriptedModel):
        def ask(self, prompts: Any) -> Any:
            nonlocal now
            now += 1.0
            return super().ask(prompts)

    def audit(budget: int) -> Audit:
        return Audit(
            space, Slow(), stop=WallClock(5), budget=budget, journal=journal, clock=lambda: now
        )

    journal = MemoryJournal()
    assert audit(budget=3).run().calls == 3
    now += 1000  # nobody was at work
    result = audit(budget=50).run()
    assert (result.calls, result.reason) == (5, "5 seconds have passed")


@pytest.mark.parametrize(
    ("beside", "reason"),
    [
        ({}, "and the next call may cost $3.00"),
        ({"next_calls": 2}, "and the next question may cost $3.00"),
        ({"attempts": 4}, "and the next call may cost $3.00 in up to 4 attempts"),
        ({"lost": 1.0}, "$1.00 for lost calls is held back, and the next call may cost $2.00"),
        ({"waiting": 1.0}, "$1.00 for open calls is held back, and the next call may cost $2.00"),
        (
            {"lost": 1.0, "waiting": 1.5},
            "$1.00 for lost calls and $1.50 for open calls is held back, and the next call may "
            "cost $0.50",
        ),
    ],
)
def test_a_cap_names_what_money_is_held_back_for(beside: dict[str, Any], reason: str) -> None:
    now = replace(state(), cost=8.0, reserved=3.0, **beside)
    assert MaxCost(10.0).reached(now) == f"$8.00 of $10.00 was spent, {reason}"


def test_an_abandoned_target_does_not_keep_a_comparison_going():
    """No decision will ever come of it, so that all was asked, or all the budget spent."""
    better = TargetStatus(id=Overall(), estimate=0.4, lower=0.3, upper=0.45, decision="better")
    open_ = replace(better, decision="open")

    def reason(*targets: TargetStatus) -> str | None:
        return Compared(0.0).reached(replace(state(), targets=targets))

    told = "2 of 3 targets are decided, and the other is invalidated"
    assert reason(better, replace(open_, invalidated=True, abandoned=True), better) == told
    assert reason(better, replace(open_, invalidated=True), better) is None
    assert reason(better, replace(open_, abandoned=True), better) == told
    assert reason(open_, replace(better, abandoned=True), open_) is None
