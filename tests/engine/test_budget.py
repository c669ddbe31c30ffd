"""What may be sent under a cap: the worst that all calls can cost, together with what was spent."""

from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt.engine.budget import Budget, Judged
from adaptive_vtt.engine.call_queue import Call
from adaptive_vtt.models.base import ModelDefaults
from adaptive_vtt.types import Prompt

PROMPT = Prompt(None, ("a",), "s0", "identity", 0)
few = st.integers(0, 6)
prices = st.floats(0.001, 3)
EDGE = 1e-6


class Priced(ModelDefaults):
    """A model whose calls cost at most ``most_cost``."""

    def __init__(self, most_cost: float) -> None:
        self.most_cost = most_cost


@given(
    cap=st.floats(0, 30),
    spent=st.floats(0, 10),
    price=prices,
    judge=prices,
    per_call=few,
    counts=st.tuples(few, few, few, few),
)
def test_no_more_is_sent_than_the_cap_pays_at_worst(
    cap: float,
    spent: float,
    price: float,
    judge: float,
    per_call: int,
    counts: tuple[int, int, int, int],
) -> None:
    under_way, lost, judging, waiting = counts
    judged = Judged(Priced(judge), per_call)
    judged.open = judging
    budget = Budget(Priced(price), cap, judged)
    budget.pay(spent)
    budget.lose(range(100, 100 + lost))
    calls = [Call(number, number, PROMPT) for number in range(waiting)]
    sent = budget.affordable(calls, under_way)
    worst = price + per_call * judge  # of one call, with what a judge may be asked about it
    committed = spent + under_way * worst + lost * price + judging * judge
    assert not sent or committed + len(sent) * worst <= cap + EDGE
    if len(sent) < waiting:  # no call is held back that the cap would pay
        assert committed + (len(sent) + 1) * worst > cap - EDGE
    more = budget.judgeable(under_way, 0)
    assert more is not None
    assert not more or spent + (lost + under_way) * price + more * judge <= cap + EDGE


def test_what_is_on_its_way_comes_first_in_whatever_order_calls_wait() -> None:
    """Versions of a source wait behind later draws, and before these once an audit goes on."""
    budget = Budget(Priced(1.0), 3.0)
    budget.submitted([5, 2])
    calls = [Call(number, number, PROMPT) for number in range(6)]
    assert [call.number for call in budget.affordable(calls, 0)] == [2, 5, 0]
    assert [call.number for call in budget.affordable(calls[:2], 0)] == [0]
    budget.send([calls[2], calls[0]])
    assert [call.number for call in budget.affordable(calls[3:], 2)] == [5]
