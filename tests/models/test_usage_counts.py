"""Token counts and costs from servers and models: nothing lowers what was spent."""

import json
import math
import tomllib
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit
from adaptive_vtt.engine.budget import Budget
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.models import Answer, Limits, Prices, PythonModel, Retries, Unanswered, Usage
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.network.prices import MAX_TOKENS, count_in, number_in, read_counts
from adaptive_vtt.results.cautions import cautions
from adaptive_vtt.results.run import Run
from tests.helpers.hostile import PLAIN, PROMPT, chat, http, space
from tests.helpers.loopback import serving
from tests.helpers.twins import slowly

PRICES = Prices(per_call=0.5, input=2.0, output=3.0, tokens=1)
INPUT, OUTPUT = 1000, 50
WORST = 0.5 + 2.0 * INPUT + 3.0 * OUTPUT
ONE = Limits(in_flight=1)


def counted_chat(url, **options):
    return chat(url, max_input_tokens=INPUT, max_tokens=OUTPUT, **options)


def counted_http(url, **options):
    counts = {"input_tokens": "usage.prompt_tokens", "output_tokens": "usage.completion_tokens"}
    bounds = {"most_input_tokens": INPUT, "most_output_tokens": OUTPUT}
    return http(url, response="choices.0.p", **counts, **bounds, **options)


MAKERS = pytest.mark.parametrize("make", [counted_chat, *slowly(counted_http)])


@contextmanager
def counting(make, usages, **options):
    """A model that answers Yes to everything; replies count ``usages``, one after the other."""

    def answer(*_):
        choice = {"message": {"content": "Yes"}, "p": 1.0}
        usage = usages.pop(0) if usages else None
        return 200, {}, json.dumps({"choices": [choice], "usage": usage}).encode()

    options = {"prices": PRICES, "retries": Retries(times=0), **options}
    with serving(answer) as url, closing(make(url, **options)) as endpoint:
        yield endpoint


some = st.sampled_from([-1, 0, MAX_TOKENS, MAX_TOKENS + 1, 10**400, 100.0, "7", "1,200", 10.5])
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
counts = plain | st.integers(0, 2 * INPUT) | st.lists(st.integers(), max_size=2) | some
either = {"prompt_tokens": counts, "completion_tokens": counts}
more = {"total_tokens": counts, "reasoning_tokens": counts}
usages = counts | st.fixed_dictionaries(either) | st.fixed_dictionaries({}, optional=either | more)


def known(usage, name):
    return count_in(usage.get(name)) if isinstance(usage, dict) else None


def least(usage, name, bound):
    """What is booked of a side: its count, or the bound where that is no whole number."""
    count = known(usage, name)
    whole = count is not None and count == number_in(usage[name])
    return count if whole else max(bound, count or 0)


def absurd(usage):
    """Whether counts are above all that is believed: they end the audit."""
    return read_counts(usage).largest > MAX_TOKENS


@MAKERS
def test_whatever_a_server_counts_a_cost_is_what_is_known_or_the_worst(make):
    next_, bound = [], [INPUT, OUTPUT]
    with counting(make, next_) as endpoint:

        @settings(deadline=None, max_examples=40, derandomize=True)
        @given(usage=usages)
        @example(usage={"prompt_tokens": 2 * INPUT, "completion_tokens": 1})
        @example(usage={"prompt_tokens": 0.5, "completion_tokens": 1})
        def check(usage):
            assume(not absurd(usage))
            next_[:] = [usage]
            (answer,) = checked(endpoint, [PROMPT])
            thought, total = known(usage, "reasoning_tokens"), known(usage, "total_tokens")
            answered = known(usage, "completion_tokens") or 0
            apart = answered + (thought or 0) if (thought or 0) > answered else 0
            names = ("prompt_tokens", "completion_tokens")
            taken = [least(usage, name, b) for name, b in zip(names, bound, strict=True)]
            taken[1] = max(taken[1], apart)
            taken[1] += max(0, (total or 0) - sum(taken))  # answered tokens cost more
            assert isinstance(answer, Answer)
            assert answer.cost == pytest.approx(0.5 + 2.0 * taken[0] + 3.0 * taken[1])
            bound[:] = [max(t, b) for t, b in zip(taken, bound, strict=True)]

        check()
        assert endpoint.most_cost == pytest.approx(0.5 + 2.0 * bound[0] + 3.0 * bound[1])
        assert bound > [INPUT, OUTPUT]


SHAPES = tomllib.loads(Path(__file__).with_name("usage.toml").read_text(encoding="utf-8"))


def test_shapes_of_usage_are_booked_at_the_most_that_they_can_mean():
    with counting(counted_chat, []) as endpoint:
        booked = {name: endpoint.counted(shape["usage"]) for name, shape in SHAPES.items()}
    assert booked == {name: Usage(*shape["booked"]) for name, shape in SHAPES.items()}


def test_the_largest_of_several_counts_of_cached_tokens_is_booked():
    usage = {"input_tokens": 10, "cached": 500, "steps": [{"cached": 0}], "output_tokens": 1}
    assert read_counts(usage, ["cached"]).sent == 510


@pytest.mark.parametrize("make", [counted_chat, counted_http])
def test_a_cap_holds_where_thinking_is_counted_apart(make):
    usage, (sent, answered) = SHAPES["thinking apart"].values()
    real = 0.5 + 2.0 * sent + 3.0 * answered
    requests = [usage] * 40
    with counting(make, requests, limits=ONE) as endpoint:
        with Audit(space(), endpoint, **PLAIN, max_cost=3.5 * real) as audit:
            result = audit.run()
        billed = real * (40 - len(requests))
        assert result.cost == pytest.approx(billed)
        assert billed <= 3.5 * real


@contextmanager
def served(models, **options):
    """A chat model whose replies name these models."""

    def answer(*_):
        choices = [{"message": {"content": "Yes"}}]
        return 200, {}, json.dumps({"model": next(models), "choices": choices}).encode()

    with serving(answer) as url, closing(chat(url, **options)) as endpoint:
        yield endpoint


def test_a_server_that_changes_its_model_is_a_caution():
    journal, shown = MemoryJournal(), []
    models = iter(["m-1"] * 2 + ["m-2"] * 20)
    for budget in (2, 6):
        with (
            served(models, limits=ONE, name="m") as endpoint,
            Audit(space(), endpoint, **PLAIN, seed=1, budget=budget, journal=journal) as audit,
        ):
            audit.run()
        shown.append([c for c in cautions(Run.of(journal)) if "different values" in c])
    assert shown[0] == []
    assert "2 different values as their model ('m-1' in 2, 'm-2' in 4)" in shown[1][0]


def test_a_server_that_names_another_model_in_every_reply_is_counted_twenty_times():
    with served(f"m-{number}" for number in range(100)) as endpoint:
        checked(endpoint, [PROMPT] * 25)
        names = endpoint.statistics()["served"]
        assert (list(names), [*names["model"].values()]) == (["model"], [1] * 20)


@MAKERS
@settings(deadline=None, max_examples=4, derandomize=True)
@given(drawn=st.lists(usages, min_size=20, max_size=20))
def test_whatever_a_server_counts_the_cap_holds(make, drawn):
    bounds = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT}
    within = [
        u
        for u in drawn
        if not absurd(u) and all((known(u, n) or 0) <= m for n, m in bounds.items())
    ]
    cap, spent = 4.5 * WORST, [0.0]
    with counting(make, within, limits=Limits(in_flight=3)) as endpoint:
        with Audit(space(), endpoint, **PLAIN, max_cost=cap) as audit:
            audit.run(lambda step: spent.append(step.cost))
            assert all(call.cost >= 0.5 for call in audit.journal.calls())
        assert spent == sorted(spent)
        assert math.isfinite(audit.cost)
        assert audit.cost <= cap


@MAKERS
def test_a_count_that_nobody_can_believe_ends_the_audit(make):
    count = MAX_TOKENS + 1
    lies = [{"prompt_tokens": count, "completion_tokens": 1}] * 20
    with (
        counting(make, lies, limits=ONE) as endpoint,
        Audit(space(), endpoint, **PLAIN, max_cost=4.5 * WORST) as audit,
    ):
        with pytest.raises(ModelError, match="counts over 10,000,000 tokens for one call, so that"):
            audit.run()
        assert audit.interrupted == 1
    with counting(make, [{"prompt_tokens": count}], prices=Prices(per_call=1.0)) as endpoint:
        assert checked(endpoint, [PROMPT]) == [Answer((1.0,), 1.0)]


def test_a_count_above_the_bound_is_billed_and_known_to_a_resumed_audit(tmp_path):
    counts = [{"prompt_tokens": 3 * INPUT, "completion_tokens": 1}] * 20
    cap = 2.9 * (0.5 + 6.0 * INPUT + 3.0 * OUTPUT)
    options = {**PLAIN, "max_cost": cap, "seed": 3, "journal": tmp_path / "journal.db"}
    for budget in (1, 2, None):  # a third, at the price that is known, would pass the cap
        with (
            counting(counted_chat, counts, limits=ONE, name="m") as endpoint,
            Audit(space(), endpoint, budget=budget, **options) as audit,
        ):
            result = audit.run()
            assert audit.journal.facts()["endpoint"]["over_bound"] == 1
    assert (result.calls, result.cost) == (2, pytest.approx(2 * (0.5 + 6.0 * INPUT + 3.0)))
    assert str(result.reason).startswith("$12,007.00 of $17,836.45 was spent")


# -- defence in depth ------------------------------------------------------------------------


class Generous(PythonModel):
    """Answers Yes, at a cost of its own."""

    most_cost = 1.0

    def __init__(self, cost, unanswered=False):
        super().__init__(lambda images: np.ones((len(images), 2)), name="generous")
        self.answer = Unanswered("no", cost) if unanswered else Answer((1.0, 1.0), cost)

    def ask(self, prompts):
        return [self.answer for _ in prompts]


@pytest.mark.parametrize(
    ("cost", "unanswered"),
    [(-1e-9, False), (float("nan"), True), (float("inf"), False), ("1", True), (None, False)],
)
def test_a_cost_that_is_no_money_is_a_model_error(cost, unanswered):
    expected = "expected a cost that is finite and 0 or more"
    model = Generous(cost, unanswered)
    message = rf"'generous'.* {expected}, got .* for sample"
    audit = Audit(space(), model, **PLAIN, max_cost=5.0)
    with audit, pytest.raises(ModelError, match=message):
        audit.run()
    assert audit.cost == 0
    assert audit.interrupted == 1  # may have been charged for
    with Audit(space(), Generous(0.5), strategy="random") as audit:
        call = audit.ask()[0]
        with pytest.raises(ModelError, match=f"tell: {expected}"):
            audit.tell(call, model.answer)


@pytest.mark.parametrize("cost", [-75.0, float("nan"), float("inf")])
def test_a_budget_takes_no_sum_that_is_no_money(cost):
    budget = Budget(Generous(1.0), 10.0)
    budget.pay(2.0)
    with pytest.raises(JournalError, match="expected a cost that is finite and 0 or more"):
        budget.pay(cost)
    assert budget.spent == 2.0
    model = Generous(1.0)
    model.most_cost = cost
    with pytest.raises(InputError, match="expected a most_cost that is finite and 0 or more"):
        Audit(space(), model, max_cost=5.0)


@pytest.mark.parametrize("count", [-1, 1.5, True, MAX_TOKENS + 1])
def test_a_usage_is_of_whole_numbers(count):
    with pytest.raises(InputError, match="input tokens: expected a whole number from 0"):
        Usage(count)
