"""A judge's calls and their money at odd moments."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from adaptive_vtt.certify.verify import verify
from adaptive_vtt.engine.budget import Budget, Judged
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.oracles.judge_models import JudgeModel
from adaptive_vtt.types import Prompt
from tests.helpers.judged import LOOKS, MODEL_PRICE, Reader, Voluble, audit


class Later(Reader):
    """Answers when it is told to."""

    in_flight, adapts = 4, False

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[Future[Any], Prompt]] = []

    def submit(self, prompt: Prompt) -> "Future[Any]":
        self.sent.append((Future(), prompt))
        return self.sent[-1][0]

    def answer(self, place: int) -> None:
        future, prompt = self.sent[place]
        future.set_result(self.ask([prompt])[0])


class Same(Voluble):
    """Says the same of everything, in words that no rule reads."""

    def reply(self, sample: str) -> str:
        return "I cannot say, but it looks like a crater."


def received(judge: Any, model: Any = None, **options: Any) -> Any:
    """An audit that heard 40 answers at once."""
    made = audit(JudgeModel(judge), model or Voluble(), max_cost=400.0, batch=40, **options)
    calls = made.ask(40)
    made.tell_all([(call.number, made.model.ask([call.prompt])[0]) for call in calls])
    return made


def test_killed_as_it_keeps_failures_their_worst_price_is_not_forgotten() -> None:
    def fails(text: str) -> str:
        raise RuntimeError("500")

    journal = MemoryJournal()
    made, write = received(Reader(fails), journal=journal), journal.add

    def killed(rows: Any) -> None:
        if rows and not rows[0].received:
            raise KeyboardInterrupt
        write(rows)

    journal.add = killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        made.ask(1)
    journal.add = write  # type: ignore[method-assign]
    sent = len(journal.judging())
    again = audit(JudgeModel(Reader()), Voluble(), journal=journal, max_cost=400.0, batch=40)
    assert again._loop.budget.judged.lost >= sent > 10


def test_an_error_beside_an_answer_does_not_end_the_audit_later() -> None:
    judge = Later()
    made = received(judge)
    judge.sent[0][0].set_exception(ModelError("HTTP 400"))
    judge.answer(1)
    judging = made._made.judging
    judging.keep(judging.replies(wait_for=False), made.journal, 0.0)
    assert judging.replies(wait_for=False) == []
    before = len(judge.sent)
    judging.send(made.journal)
    assert [prompt.asks for _, prompt in judge.sent[before:]] == [judge.sent[0][1].asks]


def test_money_kept_for_a_judge_that_has_not_spoken_does_not_end_the_audit() -> None:
    class Wordy(Voluble):
        """Describes all that it sees."""

        in_flight, adapts = 4, False

        def reply(self, sample: str) -> str:
            return f"I see {LOOKS[self.choice(sample)]} ({sample})."

        def submit(self, prompt: Prompt) -> "Future[Any]":
            done: Future[Any] = Future()
            done.set_result(self.ask([prompt])[0])
            return done

    class Dear(Reader):
        """May cost twelve times what it does, and takes its time."""

        in_flight, adapts, most_cost = 4, False, 3.0

        def submit(self, prompt: Prompt) -> "Future[Any]":
            return pool.submit(lambda: (time.sleep(0.01), self.ask([prompt])[0])[1])

    with ThreadPoolExecutor(1) as pool:
        made = audit(JudgeModel(Dear()), Wordy(), max_cost=16.0, half_width=0.01)
        result = made.run()
    assert "was spent" in str(result.reason)
    assert result.cost + MODEL_PRICE > 16.0 - MODEL_PRICE - Dear.most_cost
    verify(made.journal)


def test_a_reply_that_is_known_takes_no_money_and_needs_none() -> None:
    judge = Later()
    made = received(judge, Same())
    judging, budget = made._made.judging, made._loop.budget
    assert len(judge.sent) == 1
    assert budget.judged.open == 40  # a judge that fails is asked again, so that each may cost
    judge.answer(0)
    judging.keep(judging.replies(wait_for=False), made.journal, 0.0)
    assert budget.judged.open == 0
    assert budget.reserved(0) == 0
    judging.lose()
    assert budget.judged.lost == 0  # nothing of them was sent, or is to be
    spent = budget.spent
    budget.pay(budget.cap - spent)
    assert judging.send(made.journal) == 39
    replies = judging.replies()
    assert len(replies) == 39
    judging.keep(replies, made.journal, 0.0)
    assert len(judging.complete(0.0)) == 40
    assert budget.spent == budget.cap
    assert len(judge.sent) == 1


def test_the_same_words_are_asked_once_also_when_they_come_together() -> None:
    asked = []
    for batch in (1, 20):
        judge = Reader()
        audit(JudgeModel(judge), Same(), batch=batch, budget=20).run()
        asked.append(len(judge.asked))
    assert asked == [1, 1]


def test_a_batch_on_its_way_is_waited_for_though_a_judge_may_have_been_paid_for_nothing() -> None:
    budget = Budget(Voluble(), 10.0, Judged(Reader(), per_call=1))
    budget.pay(2.0)
    budget.judged.open = 16
    budget.judged.lose(range(16))  # killed while the judge read what an earlier batch said
    budget.submitted(range(4))
    calls: list[Any] = [SimpleNamespace(number=n) for n in range(6)]
    assert budget.judgeable(0, 0) == 0  # 2 spent, 16 / 4 lost, 4 on their way
    assert budget.affordable(calls, 0) == calls[:4]
    budget.send(calls[:4])
    assert budget.affordable(calls[4:], 4) == []
    assert budget.judgeable(4, 0) == 0
    with pytest.raises(InputError, match=r"max_cost: expected at least 11, as 2 was spent and 5 "):
        budget.submitted(range(5))


def test_what_is_on_its_way_comes_first_in_whatever_order_calls_wait() -> None:
    """Versions of a source wait behind later draws, and before these once an audit goes on."""
    budget = Budget(Voluble(), 3.0)
    budget.submitted([5, 2])
    calls: list[Any] = [SimpleNamespace(number=n) for n in range(6)]
    three = [calls[n].number for n in (2, 5, 0)]
    assert [call.number for call in budget.affordable(calls, 0)] == three
    assert [call.number for call in budget.affordable(calls[:2], 0)] == three[2:]
    budget.send(calls[:3])
    assert [call.number for call in budget.affordable(calls[3:], 2)] == three[1:2]
