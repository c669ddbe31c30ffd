"""Ask and tell: in any sensible order they come to the same, and what is no answer is refused."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit import Call, Progress
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.cli.verify import check
from adaptive_vtt.errors import InputError, ModelError, OrderError
from adaptive_vtt.models import Answer
from adaptive_vtt.testing import ScriptedModel
from tests.helpers.audits import content, finished, same_targets


def test_answers_told_out_of_order_come_to_the_same(space: QuestionSpace) -> None:
    def play(order: Callable[[list[Call]], list[Call]]) -> Audit:
        audit, model = Audit(space, ScriptedModel(), budget=16, seed=4), ScriptedModel()
        while calls := audit.ask(4):
            for call in order(calls):
                audit.tell(call, model.ask([call.prompt])[0])
        return audit

    straight = play(lambda calls: calls)
    for order in (lambda c: c[::-1], lambda c: [c[2], c[0], *c[:0:-2]]):
        other = play(order)  # type: ignore[no-untyped-call]
        assert content(other.journal) == content(straight.journal)
        assert same_targets(other, straight)


def test_ask_and_tell_come_to_the_same_as_run(space: QuestionSpace) -> None:
    audit, model = Audit(space, ScriptedModel(), budget=9), ScriptedModel()
    while calls := audit.ask(2):
        for call in calls:
            answer = model.ask([call.prompt])[0]
            assert isinstance(answer, Answer)
            audit.tell(call.number, Answer(answer.values, cost=1.0))
    assert content(audit.journal) == content(finished(space, budget=9, batch=2).journal)


def test_what_is_saved_in_the_middle_is_what_the_journal_comes_to(
    space: QuestionSpace, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"half_width": 0.05, "surrogate": False, "seed": 1}
    with Audit(space, ScriptedModel(), journal=tmp_path / "journal.db", **options) as audit:
        for call in audit.ask(8)[:7]:
            audit.tell(call, [0.9, 0.1])
        audit.result().save(tmp_path)
        assert "effective_draws" in audit.result().targets
        assert check(tmp_path)[1] == []


def test_telling_what_does_not_wait_is_refused(space: QuestionSpace) -> None:
    audit = Audit(space, ScriptedModel())
    message = r"tell: call {} is not waiting for an answer"
    with pytest.raises(OrderError, match=message.format(3)):
        audit.tell(3, [0.5, 0.5])
    (call,) = audit.ask()
    audit.tell(call, [0.5, 0.5])
    with pytest.raises(OrderError, match=message.format(call.number)):
        audit.tell(call, [0.5, 0.5])
    with pytest.raises(OrderError, match=r"expected a call that ask\(\) returned, got 'first'"):
        audit.tell("first", [0.5, 0.5])  # type: ignore[arg-type]
    assert len(audit.journal.calls()) == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0.5], r"tell: expected 2 values \(one per concept\), got 1"),
        ([0.5, 1.5], r"tell: expected P\(yes\) between 0 and 1, got 1\.5 .* concept 'c1'"),
        ([0.5, float("nan")], r"tell: expected P\(yes\) between 0 and 1, got nan"),
        (["yes", "no"], r"tell: expected 2 numbers for call \d+, got \['yes', 'no'\]"),
        (None, r"tell: expected .*got"),
        (10**400, r"tell: expected 2 numbers for call \d+, got 1000"),
        ([10**5000, 0.5], r"tell: expected 2 numbers for call \d+, got a number of thousands of"),
        (Answer((10**400, 0.5)), r"tell: expected P\(yes\) between 0 and 1, got 1000"),
    ],
)
def test_told_what_is_no_answer_the_call_goes_on_waiting(
    space: QuestionSpace, answer: Any, message: str
) -> None:
    audit = Audit(space, ScriptedModel())
    (call,) = audit.ask()
    with pytest.raises(ModelError, match=message):
        audit.tell(call, answer)
    assert audit.journal.calls() == []
    audit.tell(call, [0.5, 0.5])
    assert len(audit.journal.calls()) == 1


@pytest.mark.parametrize("n", ["3", 2.5, None, -1])
def test_asked_for_what_is_no_number_of_calls_it_asks_nothing(space: QuestionSpace, n: Any) -> None:
    audit = Audit(space, ScriptedModel())
    with pytest.raises(InputError, match=r"ask: expected a whole number of calls, 0 or more, got"):
        audit.ask(n)
    assert audit.journal.draws() == []
    assert len(audit.ask(np.int64(2))) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("proxies", "message"),
    [
        ([0.5], r"proxies: expected a dict, .* got list; write proxies={'name': \.\.\.}"),
        ({"p": [[0.5]]}, r"proxy 'p': expected an array, .* got list; of numbers make an array"),
    ],
)
def test_a_list_is_no_proxy(space: QuestionSpace, proxies: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Audit(space, ScriptedModel(), half_width=0.1, targets=["overall"], proxies=proxies)


def test_any_thread_asks_and_tells(space: QuestionSpace, tmp_path: Path) -> None:
    options: dict[str, Any] = {"half_width": 0.1, "targets": ["overall"], "budget": 24, "seed": 1}
    with Audit(space, ScriptedModel(), journal=tmp_path / "journal.db", **options) as audit:

        def work() -> None:
            model = ScriptedModel()
            while calls := audit.ask(2):
                for call in calls:
                    audit.tell(call, model.ask([call.prompt])[0])
                assert audit.result().targets.lower[0] <= audit.statuses()[0].upper

        with ThreadPoolExecutor(4) as pool:
            for worker in [pool.submit(work) for _ in range(4)]:
                worker.result()
        assert audit.state().calls == 24
        verify(audit.journal)


def test_progress_is_told_after_every_batch(space: QuestionSpace) -> None:
    seen: list[Progress] = []
    Audit(space, ScriptedModel(), budget=10, batch=4).run(seen.append)
    assert [p.state.calls for p in seen] == [4, 8, 10]
    assert [p.cost for p in seen] == [4, 8, 10]
    assert all(p.concept in space.concepts and p.side in (0, 1) for p in seen)
