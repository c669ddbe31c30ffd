"""The money of an audit: spent, possibly lost, and still allowed by the cap."""

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
    """Calls without an answer that may have been charged for.

    - ``lost``: their number; a call that is sent again and lost again counts twice.
    - ``counted``: waiting calls that are counted in ``lost``, or that were never sent.
    """

    def __init__(self) -> None:
        self.lost = 0
        self.counted: set[int] = set()

    def lose(self, numbers: Iterable[int]) -> None:
        """Count calls that will get no answer, and that wait to be sent again."""
        new = set(numbers) - self.counted
        self.lost += len(new)
        self.counted |= new

    def send(self, numbers: Iterable[int]) -> bool:
        """Note that calls are sent now. Return whether ``counted`` changed."""
        again = self.counted & set(numbers)
        self.counted -= again
        return bool(again)


class Judged(Lost):
    """The calls of a judge ``model``.

    - ``open``: the number of calls that wait or are on their way.
    - ``per_call``: the most calls of the judge after one call of the model under test.
    """

    def __init__(self, model: ModelDefaults | None = None, per_call: int = 0) -> None:
        super().__init__()
        self._model, self.per_call, self.open = model, per_call, 0

    @property
    def most(self) -> float:
        """The worst price of a call of the judge; 0 without a judge."""
        return 0.0 if self._model is None else float(self._model.most_cost or 0.0)

    @property
    def exists(self) -> bool:
        """True if there is a judge."""
        return self._model is not None


class Budget:
    """The money and the calls of an audit.

    Each call of the model may lead to calls of a judge, whose money is reserved with it.

    Args:
        model: The model under test.
        cap: The most that answers and lost calls may cost together; None: no cap.
        judged: The judge's calls; None: there is no judge.
        currency: Currency of all costs.

    Attributes:
        spent: Cost of all answers; it never falls.
        drawn: Number of calls of models that all draws take, without those about source images.
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
        """The number of calls of the model that may have been charged for without an answer."""
        return self._calls.lost

    def pay(self, cost: float) -> None:
        """Add the cost of one answer; raise JournalError if it is not finite or below 0."""
        if not is_cost(cost):
            raise JournalError(f"journal: expected a cost that is finite and 0 or more, got {cost}")
        self.spent += cost

    def reserved(self, calls: int) -> float:
        """Return the most that ``calls`` calls, lost calls and the judge's open calls may cost."""
        return calls * self.worst + self.lost_cost + self.judged.open * self.judged.most

    def judgeable(self, under_way: int, sent: int) -> int | None:
        """Return how many more calls of the judge the cap allows; None: any number.

        Args:
            under_way: Number of calls of the model that are being made.
            sent: Number of calls of the judge that are being made.
        """
        if self.cap is None or self.judged.most <= 0:
            return None
        calls = under_way + len(self._submitted)
        left = self.cap + CENTS - self.spent - self.lost_cost - calls * self._most
        return max(0, int(left / self.judged.most) - sent)

    def affordable(self, calls: Sequence[Call], under_way: int) -> list[Call]:
        """Return the calls that the cap allows, given ``under_way`` calls that are being made.

        Calls that were submitted in a batch come first: their money is spent in any case.
        """
        if self.cap is None or self.worst <= 0:
            return list(calls)
        left = self.cap + CENTS - self.spent - self.reserved(under_way)
        most = max(0, int(left / self.worst) - len(self._submitted))
        sent = [call for call in calls if call.number in self._submitted]
        return sent + [call for call in calls if call.number not in self._submitted][:most]

    def submitted(self, numbers: Iterable[int]) -> None:
        """Note which waiting calls are on their way in a batch.

        Raises:
            InputError: If they, spent and lost money may exceed the cap together.
        """
        self._submitted = set(numbers)
        count = len(self._submitted)
        least = self.spent + self.lost_cost + count * self._most
        if self.cap is not None and count and least > self.cap + CENTS:
            raise InputError(
                f"max_cost: expected at least {least:.10g}, as {self.spent:.10g} was spent and "
                f"{count} calls are on their way in a batch; got {self.cap:.10g}"
            )

    def lose(self, numbers: Iterable[int]) -> None:
        """Count calls that will get no answer, and that wait to be sent again."""
        self._calls.lose(numbers)

    def mark_unsent(self, numbers: Iterable[int]) -> None:
        """Note waiting calls that were not sent, or not since they were counted as lost."""
        self._calls.counted |= set(numbers) - self._submitted

    def send(self, calls: Sequence[Call]) -> bool:
        """Note that calls are sent now. Return whether the journal's facts changed."""
        numbers = {call.number for call in calls}
        self._submitted -= numbers
        return self._calls.send(numbers)

    def facts(self) -> JsonObject:
        """Return the facts about money for the journal (``LostFacts``)."""
        facts: JsonObject = {"max_cost": self.cap, "interrupted": self.lost}
        facts |= {"counted": sorted(self._calls.counted), "worst": self._most}
        facts |= {} if self.currency == USD else {"currency": self.currency}
        if self.judged.exists:
            facts["judge_interrupted"] = self.judged.lost
            facts["judge_counted"] = sorted(self.judged.counted)
            facts["judge_worst"] = self.judged.most
        return facts

    def recall(self, facts: LostFacts) -> None:
        """Take the facts of the journal that is resumed."""
        self._calls.lost, self._calls.counted = facts.interrupted, set(facts.counted)
        self.judged.lost = facts.judge_interrupted
        self.judged.counted = set(facts.judge_counted)

    @property
    def worst(self) -> float:
        """The worst price of a call, with the judge's calls that may follow."""
        return self._most + self.judged.per_call * self.judged.most

    @property
    def lost_cost(self) -> float:
        """The most that lost calls may have cost."""
        return self.lost * self._most + self.judged.lost * self.judged.most

    @property
    def attempts(self) -> int:
        """The most times that a call may be sent, and billed."""
        return self._model.most_attempts

    @property
    def _most(self) -> float:
        """Worst price of a call; it rises if a reply has more tokens than its bound."""
        return float(self._model.most_cost or 0.0)
