"""Many calls in flight, and money: nothing lost, nothing over the cap, the same certificate."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import Answer, PythonModel
from adaptive_vtt.models.base import NotCharged
from adaptive_vtt.oracles import Consistency, Correctness
from adaptive_vtt.strategies import Combined
from adaptive_vtt.testing import ScriptedModel, tiny_dataset


class Busy(ScriptedModel):
    """A scripted model that takes several calls at a time and answers the newest first."""

    def __init__(self, in_flight, price=lambda n: 1.0, fails_at=None, failure=ModelError):
        super().__init__()
        self.in_flight, self.price, self.fails_at = in_flight, price, fails_at
        self.failure, self.failed, self.most = failure, 0, 0
        self._waiting = []
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1)

    def submit(self, prompt):
        future = Future()
        with self._lock:
            self._waiting.append((prompt, future))
            self.most = max(self.most, len(self._waiting))
        self._pool.submit(self._answer_next)
        return future

    def _answer_next(self):
        with self._lock:
            prompt, future = self._waiting.pop()
        if self.fails_at is not None and len(self.asked) >= self.fails_at:
            self.failed += 1
            future.set_exception(self.failure("model 'busy': gone"))
            return
        answer = self._answer(prompt)
        future.set_result(Answer(answer.values, self.price(len(self.asked))))


def space(**options):
    return QuestionSpace(tiny_dataset(12, 2), ["identity", "rotation"], **options)


CERTIFIED = {"half_width": 0.01, "targets": ["overall", "relations"], "surrogate": False}
PLAIN = {"strategy": "random", "surrogate": False}
"""For tests to which it does not matter what is drawn."""


@pytest.mark.parametrize("in_flight", [1, 100])
def test_everything_is_asked_once_with_at_most_so_many_in_flight(in_flight):
    model = Busy(in_flight)
    result = Audit(space(), model, budget=30, **PLAIN).run()
    assert model.most <= in_flight
    assert len(model.asked) == len(set(model.asked)) == result.calls == 30
    assert result.waiting == 0


def test_until_the_first_answer_one_call_is_drawn(tmp_path):
    """So a process that is killed early may have lost one call, and keeps money for no more."""
    model = Busy(16, fails_at=0)
    with Audit(space(), model, journal=tmp_path / "journal.db", **PLAIN) as audit:
        with pytest.raises(ModelError):
            audit.run()
        assert (model.most, len(audit.journal.draws())) == (1, 1)
    with Audit(space(), Busy(16), journal=tmp_path / "journal.db", budget=30, **PLAIN) as again:
        assert again.run().calls == 30


def test_sources_come_first_with_many_in_flight_too():
    model = Busy(6)
    result = Audit(space(oracle=Consistency()), model, budget=30, **PLAIN).run()
    assert len(model.asked) == len(set(model.asked)) == result.calls <= 30
    for place, (name, relation, _, concepts) in enumerate(model.asked):
        if relation != "identity":
            assert model.asked.index((name, "identity", 0, concepts)) < place


@pytest.mark.parametrize(
    ("before", "after", "failure"), [(5, 5, ModelError), (2, 8, NotCharged), (8, 2, ModelError)]
)
def test_where_one_call_fails_the_others_are_kept_and_paid_once(tmp_path, before, after, failure):
    first, second = Busy(before, fails_at=9, failure=failure), Busy(after)
    options = {"budget": 20, "journal": tmp_path / "j.db", **CERTIFIED}
    with Audit(space(), first, **options) as audit, pytest.raises(ModelError, match="gone"):
        audit.run()
    with Audit(space(), second, **options) as audit:
        assert len(audit.journal.calls()) == len(first.asked) == 9
        lost = 0 if failure is NotCharged else first.failed
        assert audit.interrupted == lost <= len(audit.journal.draws()) - 9  # others were not sent
        result = audit.run()
        verify(audit.journal)
    assert not set(first.asked) & set(second.asked)
    assert (result.calls, result.reason) == (20, "20 calls were made")


class Slow(Busy):
    """Answers the oldest first."""

    def _answer_next(self):
        with self._lock:
            self._waiting.append(self._waiting.pop(0))
        super()._answer_next()


def test_what_is_drawn_follows_from_the_answers_and_not_from_when_they_came(tmp_path):
    options = {"budget": 10, **CERTIFIED, "half_width": 0.05, "surrogate": True}
    whole, other = (Audit(space(), kind(3), **options) for kind in (Busy, Slow))
    whole.run()
    other.run()
    options["journal"] = tmp_path / "j.db"
    cut = Audit(space(), Busy(3, fails_at=7), **options)
    with cut, pytest.raises(ModelError, match="gone"):
        cut.run()
    with Audit(space(), Slow(3), **options) as audit:
        audit.run()
        proposals = [[r.proposal for r in a.journal.draws()] for a in (whole, other, audit)]
        tables = [a.result().targets for a in (whole, other, audit)]
    assert proposals[0] == proposals[1] == proposals[2]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


# -- money ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("in_flight", "cap"), [(1, 7.3), (8, 1.0), (8, 20.0)])
def test_a_cap_on_cost_is_never_exceeded(in_flight, cap):
    model = Busy(in_flight, price=lambda n: (n * 0.37) % 1.0)  # at most 1 each, mostly less
    result = Audit(space(), model, max_cost=cap, **PLAIN).run()
    assert result.cost <= cap
    assert result.cost + 1 > cap  # and is used up as far as another call might have fitted
    assert "was spent, and" in result.reason


def test_calls_lost_in_an_interruption_count_against_the_cap(tmp_path):
    options = {"max_cost": 10, "journal": tmp_path / "j.db", **PLAIN}
    with Audit(space(), ScriptedModel(), **options) as audit:
        calls = audit.ask(4)  # may have been paid for, nobody knows
        audit.tell(calls[0], [0.5, 0.5])
    with Audit(space(), ScriptedModel(), **options) as audit:
        result = audit.run()
        assert audit.journal.facts()["interrupted"] == 3
    assert result.cost == 7  # 1 + 6; 3 more may have been charged


@pytest.mark.parametrize(
    ("model", "cap", "message"),
    [
        (PythonModel(lambda images: [], name="f"), 5, "the prices of model 'f' to be known"),
        (ScriptedModel(), -1, "a number above 0, got -1"),
        (ScriptedModel(), 0.5, "at least 1, .*'scripted'.* got 0.5"),
    ],
)
def test_a_cap_needs_prices(model, cap, message):
    with pytest.raises(InputError, match=f"max_cost: expected {message}"):
        Audit(space(), model, max_cost=cap)


def test_a_cap_holds_over_calls_that_never_come_back():
    model = Busy(4)
    audit = Audit(space(), model, max_cost=10, **PLAIN)
    for model.fails_at in (2, 4, 6, 8, 10, 12):
        try:
            audit.run()
        except ModelError:
            assert audit.cost + audit.interrupted <= 10
    assert audit.cost + audit.interrupted <= 10


# -- trouble while calls are in flight ---------------------------------------------------------


class Vague(Combined):
    """A strategy that is interrupted at its ``last`` draw."""

    last = 20

    def weights(self, candidates, belief):
        self.last -= 1
        if self.last < 0:
            raise KeyboardInterrupt
        return super().weights(candidates, belief)


@pytest.mark.slow
def test_answers_in_flight_are_kept_when_drawing_is_interrupted(tmp_path):
    first, second = Busy(6), Busy(6)
    options = {"budget": 40, "journal": tmp_path / "j.db", **CERTIFIED, "surrogate": True}
    audit = Audit(space(), first, strategy=Vague(), **options)
    with audit, pytest.raises(KeyboardInterrupt):
        audit.run()
    with Audit(space(), second, strategy=Vague(), **options) as audit:
        assert len(audit.journal.calls()) == len(first.asked)
        audit._loop.selector.strategy.last = 1000
        assert audit.run().calls == 40
    assert not set(first.asked) & set(second.asked)


def test_one_bad_answer_does_not_cost_the_others():
    class Once(Busy):
        def _answer(self, prompt):
            answer = super()._answer(prompt)
            return Answer((float("nan"), 0.5)) if len(self.asked) == 9 else answer

    model = Once(6)
    audit = Audit(space(), model, budget=20, **PLAIN)
    with pytest.raises(ModelError, match="expected P\\(yes\\) between 0 and 1, got nan"):
        audit.run()
    assert len(audit.journal.calls()) == len(model.asked) - 1
    assert audit.interrupted == 1
    assert audit.run().calls == 20  # continues, and asks that one again
    assert len(model.asked) == 21


def test_one_answer_that_cannot_be_judged_does_not_cost_the_others():
    class Moody(Correctness):
        count = 0

        def judge(self, *case):
            self.count += 1
            if self.count == 9:
                raise RuntimeError("the judge is out")
            return super().judge(*case)

    model = ScriptedModel()
    audit = Audit(space(oracle=Moody()), model, budget=20, batch=4, **PLAIN)
    with pytest.raises(InputError, match="raised RuntimeError: the judge is out"):
        audit.run()
    assert len(audit.journal.calls()) == len(model.asked)  # it is judged at the end of the run
    assert audit.run().calls == len(model.asked) == 20
