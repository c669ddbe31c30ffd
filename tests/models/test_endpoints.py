"""Endpoints: limits, retries and money."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.audit import Audit
from adaptive_vtt.errors import InputError, ModelError, OrderError
from adaptive_vtt.journal.opening import begin_anew
from adaptive_vtt.models import Answer, Endpoint, Limits, Prices, Prompt, Retries, Unanswered, Usage
from adaptive_vtt.models.base import NotCharged
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.network.attempts import Reply, Trouble, of_status, retry_after
from adaptive_vtt.models.network.limits import Pace
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.utils.random_streams import generator

PROMPT = Prompt(np.full((6, 4, 3), 7, np.uint8), ("drusen", "cyst"), "eye-7", "rotation", 3)
YES = Reply((0.9, 0.2), Usage(100, 10))
BOUND = Usage(1000, 50)
PRICES = Prices(per_call=0.01, input=2.0, output=10.0, tokens=1000)
WORST = 0.01 + 2.0 + 0.5
"""What one attempt costs at most."""
USUAL = 0.01 + 0.2 + 0.1


class Scripted(Endpoint):
    """Ends its attempts as ``script`` says, then goes on answering."""

    def __init__(self, *script: Trouble | Reply | str, **options: Any) -> None:
        self.slept: list[float] = []
        options = {"prices": PRICES, "bound": BOUND, "sleep": self._note, **options}
        super().__init__(name="scripted", host="example.org", **options)
        self._script = list(script)

    async def _note(self, seconds: float) -> None:
        self.slept.append(seconds)

    def prepare(self, prompt: Prompt) -> Any:
        return None

    async def send(self, request: Any, prompt: Prompt) -> Reply:
        step = self._script.pop(0) if self._script else YES
        if isinstance(step, Trouble):
            raise step
        if isinstance(step, str):
            await asyncio.sleep(30)
        assert isinstance(step, Reply)
        return step


@contextmanager
def scripted(*script: Trouble | Reply | str, **options: Any) -> Iterator[Scripted]:
    endpoint = Scripted(*script, **options)
    try:
        yield endpoint
    finally:
        endpoint.close()


def ask(endpoint: Endpoint, prompt: Prompt = PROMPT) -> Answer | Unanswered:
    return checked(endpoint, [prompt])[0]


# -- attempts ------------------------------------------------------------------------------


def test_an_attempt_without_reply_in_time_may_have_been_billed() -> None:
    with scripted("hang", retries=Retries(timeout=0.05)) as endpoint:
        assert ask(endpoint) == Answer((0.9, 0.2), pytest.approx(USUAL + WORST))
        assert endpoint.statistics()["cost_unconfirmed"] == pytest.approx(WORST)


def test_an_answer_costs_what_the_server_counts_or_the_most_it_can() -> None:
    with scripted() as endpoint:
        assert ask(endpoint) == Answer((0.9, 0.2), pytest.approx(USUAL))
        counts = endpoint.statistics()
        assert (counts["calls"], counts["attempts"], counts["retries"]) == (1, 1, 0)
        assert (counts["input_tokens"], counts["output_tokens"]) == (100, 10)
        assert counts["cost"] == pytest.approx(USUAL)
        assert (counts["cost_unconfirmed"], counts["failures"]) == (0, {})
    with scripted(Reply((0.9, 0.2))) as endpoint:
        assert ask(endpoint).cost == pytest.approx(WORST)
    with scripted(Reply((0.9, 0.2)), prices=Prices(per_call=0.5)) as endpoint:
        assert ask(endpoint).cost == 0.5
        assert endpoint.statistics()["cost_unconfirmed"] == 0


@pytest.mark.parametrize("status", [408, 409, 429, 500, 529])
def test_a_call_that_never_succeeds_is_unanswered_after_the_retries(status: int) -> None:
    with scripted(*[of_status(status, {}, "")] * 3, retries=Retries(times=2)) as endpoint:
        free = status in (409, 429)
        cost = 0.0 if free else pytest.approx(3 * WORST)
        answer = ask(endpoint)
        assert answer == Unanswered(f"http {status}", cost)
        assert answer.unconfirmed == cost
        said = endpoint.statistics()
        assert (said["attempts"], said["retries"]) == (3, 2)
        assert ask(endpoint) == Answer((0.9, 0.2), pytest.approx(USUAL))


def test_no_call_costs_more_than_most_cost() -> None:
    rng = generator(0, "chaos")
    troubles = [Trouble("timeout", billed=True), of_status(429, {}, ""), YES, Reply((0.1, 0.1))]
    for _ in range(50):
        script = [troubles[i] for i in rng.integers(0, 4, 5)]
        with scripted(*script, retries=Retries(times=3)) as endpoint:
            answers = [ask(endpoint) for _ in range(3)]
            assert all(a.cost <= endpoint.most_cost for a in answers)
            assert endpoint.statistics()["cost"] == pytest.approx(sum(a.cost for a in answers))
    with scripted(*[troubles[0]] * 4, retries=Retries(times=3)) as endpoint:
        assert ask(endpoint) == Unanswered("timeout", pytest.approx(4 * WORST))
        assert endpoint.most_cost == pytest.approx(4 * WORST)


def test_more_tokens_than_the_bound_are_paid_counted_and_bound_from_then_on() -> None:
    with scripted(Reply((0.9, 0.2), Usage(3000, 10))) as endpoint:
        before = endpoint.most_cost
        assert ask(endpoint).cost == pytest.approx(0.01 + 6.0 + 0.1)
        assert endpoint.statistics()["over_bound"] == 1
        assert endpoint.most_cost > before


def test_waits_grow_are_random_and_the_same_again() -> None:
    patience = Retries(times=8, first_wait=1.0, longest_wait=16.0)
    waits = []
    for seed in (0, 0, 1):
        with scripted(*[of_status(503, {}, "")] * 9, retries=patience, seed=seed) as endpoint:
            ask(endpoint)
            waits.append(endpoint.slept)
            assert endpoint.statistics()["seconds_backing_off"] == pytest.approx(sum(waits[-1]))
    assert waits[0] == waits[1] != waits[2]
    most = [1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 16.0, 16.0]
    assert all(0 <= wait <= top for wait, top in zip(waits[0], most, strict=True))
    assert max(waits[0]) > 2.0


def test_a_retry_waits_as_long_as_the_server_asks() -> None:
    with scripted(of_status(429, {"retry-after": "17"}, "")) as endpoint:
        ask(endpoint)
        assert endpoint.slept == [17.0]


NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("2.5", 2.5),
        ("-3", 0.0),
        ("soon", None),
        ("nan", None),
        ("9" * 5000, None),
        ("Sun, 01 Mar 99999999999 12:00:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", None),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOON) == seconds


# -- what ends an audit --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (of_status(401, {}, "bad key"), r"http 401: the key is wrong or missing: bad key"),
        (of_status(403, {}, "no"), r"http 403: the key is not allowed"),
        (of_status(404, {}, "no m"), r"http 404: no such model or address: no m"),
        (of_status(400, {}, "no field x"), r"http 400: no field x"),
        (Trouble("unreachable", "refused"), r"unreachable: refused"),
        (of_status(429, {"retry-after": "9999"}, ""), r"asks to wait 9999 s \(http 429\), longer"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_no_call_can_escape_ends_the_audit_at_first(trouble: Trouble, message: str) -> None:
    with (
        scripted(trouble) as endpoint,
        pytest.raises(ModelError, match=rf"model 'scripted' at example.org.*{message}"),
    ):
        ask(endpoint)
    assert endpoint.statistics()["attempts"] == 1


@pytest.mark.parametrize(
    ("script", "charged"),
    [
        ([of_status(401, {}, "bad key")], False),
        ([Trouble("unreachable", "refused")], False),
        ([of_status(503, {}, ""), of_status(401, {}, "bad key")], True),
    ],
)
def test_a_call_that_was_refused_is_told_from_one_that_may_have_been_charged_for(
    script: list[Trouble], charged: bool
) -> None:
    with scripted(*script) as endpoint, pytest.raises(ModelError) as said:
        ask(endpoint)
    assert isinstance(said.value, NotCharged) != charged


def test_a_key_that_is_refused_takes_nothing_of_the_cap(tmp_path: Path) -> None:
    """Not in the audit that met it, nor in one that goes on with it, nor in one that begins in its
    folder."""
    space = QuestionSpace(tiny_dataset(12, 2), ["identity"])
    options: dict[str, Any] = {"seed": 0, "strategy": "random", "max_cost": 1.0}
    sent: dict[str, Any] = {"prices": Prices(per_call=0.1), "retries": Retries(times=0)}
    for _ in range(2):
        refused = [of_status(401, {}, "bad key")] * 9
        with (
            scripted(*refused, limits=Limits(in_flight=4), **sent) as wrong,
            Audit(space, wrong, journal=begin_anew(tmp_path / "j.db"), **options) as audit,
        ):
            with pytest.raises(ModelError, match="the key is wrong"):
                audit.run()
            assert audit.interrupted == 0
            assert audit.journal.draws()
    with (
        scripted(**sent) as right,
        Audit(space, right, journal=tmp_path / "j.db", **options) as audit,
    ):
        assert audit.interrupted == 0
        assert audit.run().calls == 10


def test_a_refused_request_after_answers_is_one_unanswered_call() -> None:
    with scripted(YES, of_status(400, {}, "odd image")) as endpoint:
        ask(endpoint)
        assert ask(endpoint) == Unanswered("http 400", 0.0)
        assert endpoint.statistics()["retries"] == 0


def test_a_server_that_is_down_ends_the_audit() -> None:
    patience = Retries(times=1, give_up_after=3)
    with scripted(YES, *[of_status(503, {}, "")] * 6, retries=patience) as endpoint:
        ask(endpoint)
        lost = Unanswered("http 503", pytest.approx(2 * WORST))
        assert [ask(endpoint), ask(endpoint)] == [lost] * 2
        with pytest.raises(ModelError, match=r"3 calls in a row had no reply, the last: http 503"):
            ask(endpoint)


@pytest.mark.parametrize(
    ("trouble", "likely", "all_of_them"),
    [
        (of_status(429, {}, ""), 0.0, WORST),
        (of_status(409, {}, ""), 0.0, WORST),
        (of_status(503, {}, ""), WORST, WORST),
        (of_status(408, {}, ""), WORST, WORST),
        (Trouble("unreachable"), 0.0, 0.0),
        (Trouble("timeout", billed=True), WORST, WORST),
        (Trouble("truncated", billed=True), WORST, WORST),
    ],
    ids=str,
)
def test_failed_attempts_cost_what_may_have_been_billed_or_what_is_said(
    trouble: Trouble, likely: float, all_of_them: float
) -> None:
    for which, cost in ((None, likely), ("likely", likely), ("all", all_of_them), ("none", 0.0)):
        given = {} if which is None else {"failed_attempts": which}
        with scripted(YES, trouble, **given) as endpoint:
            ask(endpoint)
            answer = ask(endpoint)
            assert answer == Answer((0.9, 0.2), pytest.approx(USUAL + cost))
            assert answer.unconfirmed == cost
            assert endpoint.statistics()["failures"] == {trouble.kind: 1}


def test_a_failed_attempt_whose_tokens_were_counted_costs_them() -> None:
    with scripted(Trouble("http 500", usage=Usage(100, 0))) as endpoint:
        answer = ask(endpoint)
        assert answer == Answer((0.9, 0.2), pytest.approx(USUAL + 0.01 + 0.2))


def test_calls_without_reply_count_only_in_a_row() -> None:
    down = of_status(503, {}, "")
    script = [YES, *[down, down, YES] * 10, *[down] * 3]
    with scripted(*script, retries=Retries(times=0, give_up_after=3)) as endpoint:
        said = [ask(endpoint) for _ in range(33)]
        assert sum(isinstance(one, Unanswered) for one in said) == 22
        with pytest.raises(ModelError, match="3 calls in a row had no reply"):
            ask(endpoint)


def test_a_bound_that_was_lifted_is_kept() -> None:
    more = Usage(3000, 10)
    with scripted(Reply((0.9, 0.2), more)) as endpoint:
        assert endpoint.bounds() == {}
        ask(endpoint)
        assert endpoint.bounds() == {"": (3000, 50)}
        with scripted() as later:
            later.keep_bounds(endpoint.bounds())
            assert later.most_cost == endpoint.most_cost > 6 * WORST


def test_what_a_subclass_raises_is_a_model_error_that_keeps_its_cause() -> None:
    class Broken(Scripted):
        def prepare(self, prompt: Prompt) -> Any:
            raise ZeroDivisionError("by\nzero")

    endpoint = Broken()
    with pytest.raises(ModelError, match=r"example.org: ZeroDivisionError: by zero") as caught:
        ask(endpoint)
    endpoint.close()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


# -- limits --------------------------------------------------------------------------------


class Time:
    """A clock that only sleep moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_no_minute_has_more_calls_than_allowed() -> None:
    clock = Time()
    pace = Pace(30, clock=clock, sleep=clock.sleep)

    async def starts() -> list[float]:
        times = []
        for pause in generator(0, "pauses").exponential(1.0, 300):
            await pace.turn()
            times.append(clock())
            clock.now += pause * (len(times) % 3 == 0)
        return times

    times = np.array(asyncio.run(starts()))
    assert max(np.sum((times >= t) & (times < t + 60 - 1e-6)) for t in times) == 30


def test_tokens_reserved_and_not_used_are_given_back() -> None:
    clock = Time()
    options: Any = {"limits": Limits(tokens_per_minute=1050), "clock": clock, "sleep": clock.sleep}
    with scripted(**options) as endpoint:
        for _ in range(11):
            ask(endpoint)
        # each call uses 110 of the 1,050 tokens it reserves: 10 x 110 tokens before the last
        assert clock() == pytest.approx(10 * 110 / 1050 * 60)
        assert endpoint.statistics()["seconds_pacing"] == pytest.approx(clock())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Limits(in_flight=0), "in_flight: expected a whole number of at least 1, got 0"),
        (lambda: Limits(calls_per_minute=-1), "calls_per_minute: expected .*, got -1"),
        (lambda: Retries(times=-1), "retries: expected a whole number of at least 0, got -1"),
        (lambda: Retries(timeout=0), "timeout: expected a number above 0, got 0"),
        (lambda: Prices(input=-1.0), "price_input: expected a number of at least 0, got -1.0"),
        (lambda: Prices(tokens=0), "price_tokens: expected a whole number of at least 1, got 0"),
    ],
)
def test_limits_and_prices_that_are_none_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("prices", "known"),
    [
        (Prices(), False),
        (Prices(per_call=0.0), True),
        (Prices(input=1, output=1), True),
        (Prices(input=1), False),
        (Prices(per_call=1, output=1), False),
        (PRICES, True),
    ],
)
def test_prices_are_known_where_they_can_price_a_call(prices: Prices, known: bool) -> None:
    with scripted(prices=prices) as endpoint:
        assert endpoint.prices_known == known


def test_closing_ends_calls_under_way_and_takes_no_more() -> None:
    before = set(threading.enumerate())
    endpoint = Scripted("hang")
    future = endpoint.submit(PROMPT)
    time.sleep(0.05)
    endpoint.close()
    endpoint.close()
    assert future.cancelled()
    with pytest.raises(OrderError, match="endpoint scripted: was closed"):
        endpoint.submit(PROMPT)
    assert set(threading.enumerate()) <= before


def test_a_disconnection_that_fails_leaves_no_thread() -> None:
    async def stuck() -> None:
        raise OSError("stuck")

    before = set(threading.enumerate())
    endpoint = Scripted()
    endpoint._background.at_the_end(stuck)
    ask(endpoint)
    with pytest.raises(OSError, match="stuck"):
        endpoint.close()
    assert set(threading.enumerate()) <= before


def test_a_reply_that_a_subclass_cannot_read_is_malformed() -> None:
    class Broken(Scripted):
        async def send(self, request: Any, prompt: Prompt) -> Reply:
            raise ZeroDivisionError("by zero")

    endpoint = Broken(retries=Retries(times=1))
    assert ask(endpoint) == Unanswered("malformed reply", pytest.approx(2 * WORST))
    endpoint.close()
