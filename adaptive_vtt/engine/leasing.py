"""An audit and its lease: whether it may draw, and what it tells of itself (``engine.budget``)."""

from ..journal import Journal
from ..models.base import BatchModel, ConcurrentModel, ModelDefaults
from ..stopping import CENTS
from .audit_parts import Parts
from .budget import Account, Lease
from .endpoint import submitted
from .options import Sampling
from .repeat_probes import is_repeat_probe

FLIGHTS = 2
"""Leases are of so many calls, over those that a model takes at a time: it stays busy meanwhile."""


class Leasing:
    """What its lease lets an audit do; without one, everything.

    ``parts``, ``model``, ``sampling``, ``journal``: the audit's.
    """

    def __init__(
        self,
        lease: Lease | None,
        parts: Parts,
        model: ModelDefaults,
        sampling: Sampling,
        journal: Journal,
    ) -> None:
        self._lease, self._parts, self._model, self._journal = lease, parts, model, journal
        self._batch = sampling.batch
        if isinstance(model, BatchModel):
            self._batch = model.batch
        elif isinstance(model, ConcurrentModel):
            self._batch = 1

    def begin(self) -> None:
        """Leases what was drawn before, or waits for its judge: that is finished first."""
        if self._lease is not None and (len(self._parts.queue) or len(self._parts.judging)):
            self._lease.renew(self.account())

    def settle(self) -> None:
        """Gives back what will not be used."""
        if self._lease is not None:
            self._lease.settle(self.account())

    @property
    def over(self) -> str | None:
        """Why no more will be leased, where that keeps the audit from its next question."""
        over = None if self._lease is None else self._lease.over
        return over if over and self.used_up() else None

    def used_up(self) -> bool:
        """Whether what is drawn next, and all calls that wait, may take more than is leased.

        Draws that know the same (a batch) are not parted by a pause, as that would make another
        audit of it: the lease pays for all of them, unless it is the last there is.
        """
        lease, budget = self._lease, self._parts.budget
        if lease is None:
            return False
        draws = 1 if lease.short else self._batch
        money = budget.spent + budget.reserved(
            len(self._parts.queue) + draws * self._parts.source_queue.most
        )
        if lease.money is not None and money > lease.money + CENTS:
            return True
        return lease.calls is not None and self.calls + draws * self.question > lease.calls

    def pauses(self, drawn: int) -> bool:
        """Whether nothing may be drawn now, after ``drawn`` draws of the same ``ask``."""
        whole = self._lease is None or (drawn > 0 and self._batch > 1 and not self._lease.short)
        return not whole and self.used_up()

    def renewed(self) -> bool:
        """Whether more is leased now, where the lease was used up; waits for it."""
        return self._lease is not None and self.used_up() and self._lease.renew(self.account())

    def keep_up(self) -> None:
        """Tells the lease where the audit stands."""
        if self._lease is not None:
            self._lease.keep_up(self.account())

    def account(self) -> Account:
        """What the audit took so far, and what it may take next."""
        budget, queue = self._parts.budget, self._parts.queue
        batched = submitted(self._model, self._journal, queue.__contains__)
        sent = max(queue.under_way, len(batched))
        return Account(
            spent=budget.spent,
            committed=budget.spent + budget.reserved(sent),
            waiting=max(0, len(queue) - sent),
            question=self.question,
            together=max(self._flights, self._batch * self.question),
            worst=budget.worst,
            calls=self.calls,
            unwritten=sum(map(is_repeat_probe, queue.numbers)),
        )

    @property
    def calls(self) -> int:
        """Of the model, drawn."""
        return self._parts.budget.drawn + self._parts.source_queue.calls * self._models

    @property
    def question(self) -> int:
        """Calls of the model that the next question may take, at most."""
        return self._parts.source_queue.most * self._models

    @property
    def _flights(self) -> int:
        """Calls that keep the model busy; how many it takes at a time may change."""
        model = self._model
        return FLIGHTS * model.in_flight if isinstance(model, ConcurrentModel) else 1

    @property
    def _models(self) -> int:
        return self._parts.judge.space.oracle.models
