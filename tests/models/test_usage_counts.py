"""Token counts and costs as servers and models tell them: nothing lowers what was spent."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit
from adaptive_vtt.engine.budget import Budget
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.models import (
    Answer,
    Endpoint,
    Limits,
    Prices,
    PythonModel,
    Retries,
    Unanswered,
    Usage,
)
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.network.prices import MAX_TOKENS
from tests.helpers.hostile import PLAIN, PROMPT, chat, http, space
from tests.helpers.loopback import serving

PRICES = Prices(per_call=0.5, input=2.0, output=3.0, tokens=1)
INPUT, OUTPUT = 1000, 50
WORST = 0.5 + 2.0 * INPUT + 3.0 * OUTPUT


def counted_chat(url: str, **options: Any) -> Endpoint:
    return chat(url, max_input_tokens=INPUT, max_tokens=OUTPUT, **options)


def counted_http(url: str, **options: Any) -> Endpoint:
    counts = {"input_tokens": "usage.prompt_tokens", "output_tokens": "usage.completion_tokens"}
    bounds = {"most_input_tokens": INPUT, "most_output_tokens": OUTPUT}
    return http(url, response="choices.0.p", **counts, **bounds, **options)


MAKERS = pytest.mark.parametrize("make", [counted_chat, counted_http], ids=["openai", "http"])
Make = Callable[..., Endpoint]


@contextmanager
def counting(make: Make, usages: list[Any], **options: Any) -> Iterator[Endpoint]:
    """A model that answers Yes to everything; replies count ``usages``, one after the other."""

    def answer(*_: Any) -> Any:
        choice = {"message": {"content": "Yes"}, "p": 1.0}
        usage = usages.pop(0) if usages else None
        return 200, {}, json.dumps({"choices": [choice], "usage": usage}).encode()

    with serving(answer) as url:
        chosen: dict[str, Any] = {"prices": PRICES, "retries": Retries(times=0), **options}
        endpoint = make(url, **chosen)
        try:
            yield endpoint
        finally:
            endpoint.close()


counts = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.integers(0, 2 * INPUT),
    st.lists(st.integers(), max_size=2),
    st.sampled_from([-1, 0, MAX_TOKENS, MAX_TOKENS + 1, 10**400, 100.0, "7", -1_000_000]),
)
either = {"prompt_tokens": counts, "completion_tokens": counts}
usages = st.one_of(
    counts, st.fixed_dictionaries(either), st.fixed_dictionaries({}, optional=either)
)


def known(usage: Any, name: str) -> int | None:
    count = usage.get(name) if isinstance(usage, dict) else None
    sound = type(count) is int and 0 <= count <= MAX_TOKENS
    return count if sound else None


def absurd(usage: Any) -> bool:
    """Whether a count is above all that is believed: it ends the audit."""
    told = usage.values() if isinstance(usage, dict) else ()
    return any(type(count) is int and count > MAX_TOKENS for count in told)


@MAKERS
def test_whatever_a_server_counts_a_cost_is_what_is_known_or_the_worst(make: Make) -> None:
    next_: list[Any] = []
    bound = [INPUT, OUTPUT]

    with counting(make, next_) as endpoint:

        @settings(deadline=None, max_examples=50, derandomize=True)
        @given(usage=usages)
        def check(usage: Any) -> None:
            assume(not absurd(usage))
            next_[:] = [usage]
            (answer,) = checked(endpoint, [PROMPT])
            told = [known(usage, "prompt_tokens"), known(usage, "completion_tokens")]
            taken = [b if t is None else t for t, b in zip(told, bound, strict=True)]
            assert isinstance(answer, Answer)
            assert answer.cost == pytest.approx(0.5 + 2.0 * taken[0] + 3.0 * taken[1])
            bound[:] = [max(t, b) for t, b in zip(taken, bound, strict=True)]

        check()
        assert endpoint.most_cost == pytest.approx(0.5 + 2.0 * bound[0] + 3.0 * bound[1])
        assert bound > [INPUT, OUTPUT]


@MAKERS
@settings(deadline=None, max_examples=4, derandomize=True)
@given(found=st.lists(usages, min_size=20, max_size=20))
def test_whatever_a_server_counts_the_cap_holds(make: Make, found: list[Any]) -> None:
    within = [
        u
        for u in found
        if (known(u, "prompt_tokens") or 0) <= INPUT
        and (known(u, "completion_tokens") or 0) <= OUTPUT
        and not absurd(u)
    ]
    cap = 4.5 * WORST
    with counting(make, within, limits=Limits(in_flight=3)) as endpoint:
        spent = [0.0]
        with Audit(space(), endpoint, **PLAIN, max_cost=cap) as audit:
            audit.run(lambda step: spent.append(step.cost))
            assert all(call.cost >= 0.5 for call in audit.journal.calls())
        assert spent == sorted(spent)
        assert math.isfinite(audit.cost)
        assert audit.cost <= cap


@MAKERS
@pytest.mark.parametrize("count", [MAX_TOKENS + 1, 10**400])
def test_a_count_that_nobody_can_believe_ends_the_audit(make: Make, count: int) -> None:
    lies = [{"prompt_tokens": count, "completion_tokens": 1}] * 20
    with (
        counting(make, lies, limits=Limits(in_flight=1)) as endpoint,
        Audit(space(), endpoint, **PLAIN, max_cost=4.5 * WORST) as audit,
    ):
        with pytest.raises(ModelError, match="counts over 10,000,000 tokens for one call, so that"):
            audit.run()
        assert audit.interrupted == 1
    with counting(make, [{"prompt_tokens": count}], prices=Prices(per_call=1.0)) as endpoint:
        assert checked(endpoint, [PROMPT]) == [Answer((1.0,), 1.0)]


def test_a_count_above_the_bound_is_billed_and_known_to_an_audit_that_goes_on(
    tmp_path: Path,
) -> None:
    more = [{"prompt_tokens": 3 * INPUT, "completion_tokens": 1}] * 20
    cap = 2.9 * (0.5 + 6.0 * INPUT + 3.0 * OUTPUT)
    known: dict[str, Any] = {**PLAIN, "max_cost": cap, "seed": 3}
    known["journal"] = tmp_path / "journal.db"
    for budget in (1, 2, None):  # a third, at the price that is known, would pass the cap
        with (
            counting(counted_chat, more, limits=Limits(in_flight=1), name="m") as endpoint,
            Audit(space(), endpoint, budget=budget, **known) as audit,
        ):
            result = audit.run()
            assert audit.journal.facts()["endpoint"]["over_bound"] == 1
    assert (result.calls, result.cost) == (2, pytest.approx(2 * (0.5 + 6.0 * INPUT + 3.0)))
    assert str(result.reason).startswith("$12,007.00 of $17,836.45 was spent")


# -- defence in depth ------------------------------------------------------------------------


class Generous(PythonModel):
    """Says Yes, at a cost of its own."""

    most_cost = 1.0
    in_words = False

    def __init__(self, cost: Any, *, unanswered: bool = False) -> None:
        super().__init__(lambda images: np.ones((len(images), 2)), name="generous")
        self._cost, self._unanswered = cost, unanswered

    def ask(self, prompts: Any) -> Any:
        if self._unanswered:
            return [Unanswered("no", self._cost) for _ in prompts]
        return [Answer((1.0,) * len(p.concepts), self._cost) for p in prompts]


@pytest.mark.parametrize(
    ("cost", "unanswered"),
    [(-1e-9, False), (float("nan"), True), (float("inf"), False), ("1", True), (None, False)],
)
def test_a_cost_that_is_no_money_is_a_model_error(cost: Any, unanswered: bool) -> None:
    message = r"'generous'.* expected a cost that is finite and 0 or more, got .* for sample"
    model = Generous(cost, unanswered=unanswered)
    with (
        Audit(space(), model, **PLAIN, max_cost=5.0) as audit,
        pytest.raises(ModelError, match=message),
    ):
        audit.run()
    assert audit.cost == 0
    assert audit.interrupted == 1  # may have been charged for
    told = Unanswered("no", cost) if unanswered else Answer((1.0, 1.0), cost)
    with Audit(space(), Generous(0.5), strategy="random") as audit:
        call = audit.ask()[0]
        with pytest.raises(ModelError, match="tell: expected a cost that is finite and 0 or more"):
            audit.tell(call, told)


@pytest.mark.parametrize("cost", [-75.0, float("nan"), float("inf")])
def test_a_budget_pays_nothing_that_is_no_money(cost: float) -> None:
    budget = Budget(Generous(1.0), 10.0)
    budget.pay(2.0)
    with pytest.raises(JournalError, match="expected a cost that is finite and 0 or more"):
        budget.pay(cost)
    assert budget.spent == 2.0


@pytest.mark.parametrize("most", [-1.0, float("nan"), float("inf")])
def test_a_worst_price_that_is_no_money_is_refused(most: float) -> None:
    model = Generous(1.0)
    model.most_cost = most
    with pytest.raises(InputError, match="expected a most_cost that is finite and 0 or more"):
        Audit(space(), model, max_cost=5.0)


@pytest.mark.parametrize("count", [-1, 1.5, True, MAX_TOKENS + 1])
def test_a_usage_is_of_whole_numbers(count: Any) -> None:
    with pytest.raises(InputError, match="input tokens: expected a whole number from 0"):
        Usage(count)


def test_prices_are_finite() -> None:
    with pytest.raises(InputError, match=r"price_input: expected a finite number .*, got inf"):
        Prices(input=math.inf)
