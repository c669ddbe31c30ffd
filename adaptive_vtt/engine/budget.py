"""What an audit has spent, what it may have lost, and what it can still afford."""

from collections.abc import Iterable, Sequence

from ..errors import InputError, JournalError
from ..journal.facts import LostFacts
from ..models.base import ModelDefaults
from ..models.checking import is_cost
from ..stopping import CENTS
from ..types import JsonObject
from ..utils.figures import USD
from .call_queue import Call


class Lost:
    """Calls that may have been charged for though no answer came: ``lost`` of them."""

    def __init__(self) -> None:
        self.lost = 0
        # those that wait and are among the lost already, or were never sent
        self.counted: set[int] = set()

    def lose(self, numbers: Iterable[int]) -> None:
        """These wait for an answer that will not come; they are to be sent again."""
        new = set(numbers) - self.counted
        self.lost += len(new)
        self.counted |= new

    def send(self, numbers: Iterable[int]) -> bool:
        """These are sent now; whether any of them was lost before."""
        again = self.counted & set(numbers)
        self.counted -= again
        return bool(again)


class Judged(Lost):
    """The calls of a judge ``model``: ``open`` of them wait or are on their way, and a call of the
    model under test may lead to ``per_call`` of them."""

    def __init__(self, model: ModelDefaults | None = None, per_call: int = 0) -> None:
        super().__init__()
        self._model, self.per_call, self.open = model, per_call, 0

    @property
    def most(self) -> float:
        """No call of the judge costs more."""
        return 0.0 if self._model is None else float(self._model.most_cost or 0.0)

    @property
    def is_there(self) -> bool:
        """Whether there is a judge."""
        return self._model is not None


class Budget:
    """``spent`` is what answers cost, and never falls. ``lost`` counts calls that were sent,
    or may have been, and never came back: each may have been charged for at its worst price.
    ``drawn``: the calls of models that all draws take, those about source images apart.

    ``cap``: what spent and lost may come to, or None.
    ``judged``: the judge's calls, of which every call of the model may lead to some, so that those
    are reserved with it. ``currency``: of all costs.
    """

    def __init__(
        self,
        model: ModelDefaults,
        cap: float | None,
        judged: Judged | None = None,
        currency: str = USD,
    ) -> None:
        self.cap, self.currency = cap, currency
        self.spent = 0.0
        self.drawn = 0
        self.judged = Judged() if judged is None else judged
        self._model, self._calls = model, Lost()
        self._submitted: set[int] = set()

    @property
    def lost(self) -> int:
        """How many calls of the model were sent, or may have been, and never came back."""
        return self._calls.lost

    def pay(self, cost: float) -> None:
        """The cost of one answer; raises JournalError for one that is no sum of money."""
        if not is_cost(cost):
            raise JournalError(f"journal: expected a cost that is finite and 0 or more, got {cost}")
        self.spent += cost

    def reserved(self, calls: int) -> float:
        """What ``calls`` calls, those lost, and what a judge is asked of them, cost at most."""
        return calls * self.worst + self.lost_cost + self.judged.open * self.judged.most

    def judgeable(self, under_way: int, sent: int) -> int | None:
        """Return how many more calls of the judge may be paid for, with ``under_way`` calls of the
        model and ``sent`` of the judge; None: any number."""
        if self.cap is None or self.judged.most <= 0:
            return None
        calls = under_way + len(self._submitted)
        left = self.cap + CENTS - self.spent - self.lost_cost - calls * self._most
        return max(0, int(left / self.judged.most) - sent)

    def affordable(self, calls: Sequence[Call], under_way: int) -> list[Call]:
        """Return as many of the calls as may be paid for with those under way: first what is on its
        way in a batch, from which no money can be kept."""
        if self.cap is None or self.worst <= 0:
            return list(calls)
        left = self.cap + CENTS - self.spent - self.reserved(under_way)
        most = max(0, int(left / self.worst) - len(self._submitted))
        sent = [call for call in calls if call.number in self._submitted]
        return sent + [call for call in calls if call.number not in self._submitted][:most]

    def submitted(self, numbers: Iterable[int]) -> None:
        """These calls wait, and are on their way in a batch. Raises InputError for a cap below what
        they, what was spent and what was lost may come to."""
        self._submitted = set(numbers)
        count = len(self._submitted)
        least = self.spent + self.lost_cost + count * self._most
        if self.cap is not None and count and least > self.cap + CENTS:
            raise InputError(
                f"max_cost: expected at least {least:.10g}, as {self.spent:.10g} was spent and "
                f"{count} calls are on their way in a batch; got {self.cap:.10g}"
            )

    def lose(self, numbers: Iterable[int]) -> None:
        """These calls wait for an answer that will not come; they are to be sent again."""
        self._calls.lose(numbers)

    def mark_unsent(self, numbers: Iterable[int]) -> None:
        """These calls wait and were not sent since they were last lost, if ever."""
        self._calls.counted |= set(numbers) - self._submitted

    def send(self, calls: Sequence[Call]) -> bool:
        """These calls are sent now; whether any of them was lost before."""
        numbers = {call.number for call in calls}
        self._submitted -= numbers
        return self._calls.send(numbers)

    def facts(self) -> JsonObject:
        """For the journal."""
        facts: JsonObject = {"max_cost": self.cap, "interrupted": self.lost}
        facts |= {"counted": sorted(self._calls.counted), "worst": self._most}
        facts |= {} if self.currency == USD else {"currency": self.currency}
        if self.judged.is_there:
            facts["judge_interrupted"] = self.judged.lost
            facts["judge_counted"] = sorted(self.judged.counted)
            facts["judge_worst"] = self.judged.most
        return facts

    def recall(self, facts: LostFacts) -> None:
        """Take the facts of the journal."""
        self._calls.lost, self._calls.counted = facts.interrupted, set(facts.counted)
        self.judged.lost = facts.judge_interrupted
        self.judged.counted = set(facts.judge_counted)

    @property
    def worst(self) -> float:
        """What one call may cost at most, with what a judge is asked of its answer."""
        return self._most + self.judged.per_call * self.judged.most

    @property
    def lost_cost(self) -> float:
        """What was lost may have cost so much."""
        return self.lost * self._most + self.judged.lost * self.judged.most

    @property
    def attempts(self) -> int:
        """How often a call may be sent, and billed, at most."""
        return self._model.most_attempts

    @property
    def _most(self) -> float:
        return float(self._model.most_cost or 0.0)  # may rise, if wrongly bounded
