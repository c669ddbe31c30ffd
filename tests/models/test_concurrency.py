"""Many calls in flight, and money: nothing lost, nothing over the cap, the same certificate."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import Answer, Prompt, PythonModel, Unanswered
from adaptive_vtt.models.base import NotCharged
from adaptive_vtt.oracles import Consistency, Correctness
from adaptive_vtt.strategies import Combined
from adaptive_vtt.testing import ScriptedModel, tiny_dataset


class Busy(ScriptedModel):
    """A scripted model that takes several calls at a time and answers the newest first."""

    def __init__(self, in_flight: int, price: Callable[[int], float] = lambda n: 1.0) -> None:
        super().__init__()
        self.in_flight = in_flight
        self.price = price
        self.most = 0
        self.fails_at: int | None = None
        self.failure: type[ModelError] = ModelError
        self.failed = 0
        self._waiting: list[tuple[Prompt, Future[Any]]] = []
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1)

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((prompt, future))
            self.most = max(self.most, len(self._waiting))
        self._pool.submit(self._answer_newest)
        return future

    def _answer_newest(self) -> None:
        with self._lock:
            prompt, future = self._waiting.pop()
        if self.fails_at is not None and len(self.asked) >= self.fails_at:
            self.failed += 1
            future.set_exception(self.failure("model 'busy': gone"))
            return
        answer = self._answer(prompt)
        assert isinstance(answer, Answer)
        future.set_result(Answer(answer.values, self.price(len(self.asked))))


def space(**options: Any) -> QuestionSpace:
    return QuestionSpace(tiny_dataset(12, 2), ["identity", "rotation"], **options)


CERTIFIED: dict[str, Any] = {"half_width": 0.01, "targets": ["overall", "relations"]}
PLAIN: dict[str, Any] = {"strategy": "random", "surrogate": False}
"""What is drawn matters to most of these tests not at all."""


@pytest.mark.parametrize("in_flight", [1, 100])
def test_everything_is_asked_once_with_at_most_so_many_in_flight(in_flight: int) -> None:
    model = Busy(in_flight)
    result = Audit(space(), model, budget=30, **PLAIN).run()
    assert model.most <= in_flight
    assert len(model.asked) == len(set(model.asked)) == result.calls == 30
    assert result.waiting == 0


def test_sources_come_first_with_many_in_flight_too() -> None:
    model = Busy(6)
    result = Audit(space(oracle=Consistency()), model, budget=30, **PLAIN).run()
    assert len(model.asked) == len(set(model.asked)) == result.calls <= 30
    for name, relation, severity, concepts in model.asked:
        if relation != "identity":
            source = (name, "identity", 0, concepts)
            assert model.asked.index(source) < model.asked.index(
                (name, relation, severity, concepts)
            )


@pytest.mark.parametrize("failure", [ModelError, NotCharged])
def test_where_one_call_fails_the_others_are_kept_and_paid_once(
    tmp_path: Path, failure: type[ModelError]
) -> None:
    first = Busy(5)
    first.fails_at, first.failure = 9, failure
    options = {"budget": 20, **CERTIFIED, "surrogate": False}
    with (
        Audit(space(), first, journal=tmp_path / "j.db", **options) as audit,
        pytest.raises(ModelError, match="gone"),
    ):
        audit.run()
    with Audit(space(), Busy(5), journal=tmp_path / "j.db", **options) as audit:
        answered = {c.call for c in audit.journal.calls()}
        assert len(answered) == len(first.asked) == 9
        second = audit.model
        assert isinstance(second, Busy)
        lost = 0 if failure is NotCharged else first.failed
        assert audit.interrupted == lost < len(audit.journal.draws()) - 9  # others were never sent
        result = audit.run()
        verify(audit.journal)
    assert not set(first.asked) & set(second.asked)
    assert result.calls == 20


def test_what_is_drawn_follows_from_the_answers_and_not_from_when_they_came(
    tmp_path: Path,
) -> None:
    in_flight, options = 3, {"budget": 18, **CERTIFIED, "half_width": 0.05}

    class Slow(Busy):
        """Answers the oldest first."""

        def _answer_newest(self) -> None:
            with self._lock:
                self._waiting.append(self._waiting.pop(0))
            super()._answer_newest()

    whole = Audit(space(), Busy(in_flight), **options)
    whole.run()
    other = Audit(space(), Slow(in_flight), **options)
    other.run()
    cut = Busy(in_flight)
    cut.fails_at = 13
    with (
        Audit(space(), cut, journal=tmp_path / "j.db", **options) as audit,
        pytest.raises(ModelError, match="gone"),
    ):
        audit.run()
    with Audit(space(), Slow(in_flight), journal=tmp_path / "j.db", **options) as audit:
        audit.run()
        proposals = [[r.proposal for r in a.journal.draws()] for a in (whole, other, audit)]
        tables = [a.result().targets for a in (whole, other, audit)]
    assert proposals[0] == proposals[1] == proposals[2]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


# -- money ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("in_flight", "cap"), [(1, 7.3), (8, 1.0), (8, 20.0)])
def test_a_cap_on_cost_is_never_exceeded(in_flight: int, cap: float) -> None:
    model = Busy(in_flight, price=lambda n: (n * 0.37) % 1.0)  # at most 1 each, mostly less
    result = Audit(space(), model, max_cost=cap, **PLAIN).run()
    assert result.cost <= cap
    assert result.cost + 1 > cap  # and is used up as far as another call might have fitted
    assert result.reason is not None
    assert "was spent, and" in result.reason


def test_calls_lost_in_an_interruption_count_against_the_cap(tmp_path: Path) -> None:
    options = {"max_cost": 10, "journal": tmp_path / "j.db", **PLAIN}
    with Audit(space(), ScriptedModel(), **options) as audit:
        calls = audit.ask(4)  # may have been paid for, nobody knows
        audit.tell(calls[0], [0.5, 0.5])
    with Audit(space(), ScriptedModel(), **options) as audit:
        result = audit.run()
        assert audit.journal.facts()["interrupted"] == 3
    assert result.cost == 7  # 1 + 6; 3 more may have been charged


def test_a_cap_needs_prices() -> None:
    with pytest.raises(InputError, match=r"max_cost: expected the prices of model 'f' to be known"):
        Audit(space(), PythonModel(lambda images: [], name="f"), max_cost=5)
    with pytest.raises(InputError, match="max_cost: expected a number above 0, got -1"):
        Audit(space(), ScriptedModel(), max_cost=-1)
    with pytest.raises(InputError, match=r"max_cost: expected at least 1, .*'scripted'.* got 0.5"):
        Audit(space(), ScriptedModel(), max_cost=0.5)


# -- trouble while calls are on their way ---------------------------------------------------------


class Vague(Combined):
    """A strategy that is interrupted at its ``last`` draw."""

    last = 20

    def weights(self, candidates: Any, belief: Any) -> Any:
        self.last -= 1
        if self.last < 0:
            raise KeyboardInterrupt
        return super().weights(candidates, belief)


@pytest.mark.slow
def test_answers_on_their_way_are_kept_when_drawing_is_interrupted(tmp_path: Path) -> None:
    first = Busy(6)
    options = {"budget": 40, **CERTIFIED}
    with (
        Audit(space(), first, strategy=Vague(), journal=tmp_path / "j.db", **options) as audit,
        pytest.raises(KeyboardInterrupt),
    ):
        audit.run()
    second = Busy(6)
    with Audit(space(), second, strategy=Vague(), journal=tmp_path / "j.db", **options) as audit:
        assert len(audit.journal.calls()) == len(first.asked)
        assert isinstance(audit._loop.selector.strategy, Vague)
        audit._loop.selector.strategy.last = 1000
        assert audit.run().calls == 40
    assert not set(first.asked) & set(second.asked)


def test_one_bad_answer_does_not_cost_the_others(tmp_path: Path) -> None:
    class Once(Busy):
        def _answer(self, prompt: Prompt) -> Any:
            said = super()._answer(prompt)
            return Answer((float("nan"), 0.5)) if len(self.asked) == 9 else said

    model = Once(6)
    with Audit(space(), model, budget=20, journal=tmp_path / "j.db", **PLAIN) as audit:
        with pytest.raises(ModelError, match="expected P\\(yes\\) between 0 and 1, got nan"):
            audit.run()
        assert len(audit.journal.calls()) == len(model.asked) - 1
        assert audit.interrupted == 1
        assert audit.run().calls == 20  # goes on, and asks that one again
    assert len(model.asked) == 21


def test_one_answer_that_cannot_be_judged_does_not_cost_the_others() -> None:
    class Moody(Correctness):
        count = 0

        def judge(self, *case: Any) -> Any:
            self.count += 1
            if self.count == 9:
                raise RuntimeError("the judge is out")
            return super().judge(*case)

    model = ScriptedModel()
    audit = Audit(space(oracle=Moody()), model, budget=20, batch=4, **PLAIN)
    with pytest.raises(RuntimeError, match="the judge is out"):
        audit.run()
    assert len(audit.journal.calls()) == len(model.asked) - 1
    assert audit.run().calls == 20
    assert len(model.asked) == 21


def test_a_cap_holds_over_calls_that_never_come_back() -> None:
    model = Busy(4)
    audit = Audit(space(), model, max_cost=10, **PLAIN)
    for fails_at in (2, 4, 6, 8, 10, 12):
        model.fails_at = fails_at
        try:
            audit.run()
        except ModelError:
            assert audit.cost + audit.interrupted <= 10
    assert audit.cost + audit.interrupted <= 10


@pytest.mark.parametrize(("before", "after"), [(2, 8), (8, 2)])
def test_calls_in_flight_may_change_from_one_run_to_the_next(
    tmp_path: Path, before: int, after: int
) -> None:
    first = Busy(before)
    first.fails_at = 9
    options = {"budget": 20, "journal": tmp_path / "j.db", **CERTIFIED, "surrogate": False}
    with Audit(space(), first, **options) as audit, pytest.raises(ModelError):
        audit.run()
    with Audit(space(), Busy(after), **options) as audit:
        result = audit.run()
        verify(audit.journal)
    assert (result.calls, result.reason) == (20, "20 calls were made")
