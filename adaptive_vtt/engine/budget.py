"""What an audit has spent, what it may have lost, and what it can still afford."""

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import InputError, JournalError
from ..journal.facts import LostFacts
from ..models.base import ModelDefaults
from ..models.checking import is_cost
from ..stopping import CENTS
from .call_queue import Call
from .lease import Lease


class Budget:
    """``spent`` is what answers cost, and never falls. ``lost`` counts calls that were sent,
    or may have been, and never came back: each may have been charged for at its worst price.
    ``drawn``: the calls of models that all draws take, those about source images apart.

    ``cap``: what spent and lost may come to, or None; ``lease``: what they may come to for now.
    """

    def __init__(self, model: ModelDefaults, cap: float | None, lease: Lease | None = None) -> None:
        self.cap = cap
        self._lease = lease
        self.spent = 0.0
        self.lost = 0
        self.drawn = 0
        self._model = model
        self._counted: set[int] = set()  # calls that wait and are among the lost already

    def pay(self, cost: float) -> None:
        """The cost of one answer; raises JournalError for one that is no sum of money."""
        if not is_cost(cost):
            raise JournalError(f"journal: expected a cost that is finite and 0 or more, got {cost}")
        self.spent += cost

    def reserved(self, calls: int) -> float:
        """What ``calls`` calls and those lost may cost at most."""
        return (calls + self.lost) * self.worst

    def affordable(self, calls: Sequence[Call], under_way: int) -> list[Call]:
        """As many of the calls as the cap allows beside those under way."""
        leased = None if self._lease is None else self._lease.money
        limits = [limit for limit in (self.cap, leased) if limit is not None]
        if not limits or self.worst <= 0:
            return list(calls)
        left = min(limits) + CENTS - self.spent - self.reserved(under_way)
        return list(calls[: max(0, int(left / self.worst))])

    def check_sent(self, calls: int) -> None:
        """Raises InputError for a cap below what was spent and what ``calls`` calls, submitted and
        not yet answered, may cost."""
        least = self.spent + self.reserved(calls)
        if self.cap is not None and calls and least > self.cap + CENTS:
            raise InputError(
                f"max_cost: expected at least {least:.10g}, as {self.spent:.10g} was spent and "
                f"{calls} calls are on their way in a batch; got {self.cap:.10g}"
            )

    def lose(self, numbers: Iterable[int]) -> None:
        """These calls wait for an answer that will not come; they are to be sent again."""
        new = set(numbers) - self._counted
        self.lost += len(new)
        self._counted |= new

    def send(self, calls: Sequence[Call]) -> bool:
        """These calls are sent now; whether any of them was lost before."""
        again = self._counted & {call.number for call in calls}
        self._counted -= again
        return bool(again)

    def facts(self) -> dict[str, Any]:
        """For the journal."""
        lost = {"interrupted": self.lost, "counted": sorted(self._counted)}
        return {"max_cost": self.cap, **lost}

    def recall(self, facts: LostFacts) -> None:
        """What the journal tells."""
        self.lost = facts.interrupted
        self._counted = set(facts.counted)

    @property
    def worst(self) -> float:
        """What one call may cost at most."""
        return float(self._model.most_cost or 0.0)  # may rise, if wrongly bounded
