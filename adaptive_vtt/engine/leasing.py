"""An audit and its lease: whether it may draw, and what it tells of itself (``budget.Lease``)."""

from ..models.base import BatchModel, ConcurrentModel, ModelDefaults
from ..stopping import CENTS, End
from .budget import Account, Lease
from .call_queue import is_repeat_probe
from .endpoint import submitted
from .loop import Hook, Loop

FLIGHTS = 2
"""Leases are of so many calls, over those that a model takes at a time: it stays busy meanwhile."""


class Leasing(Hook):
    """What its lease lets an audit of ``model`` do; ``batch``: calls that are asked at a time where
    the model does not say."""

    def __init__(self, lease: Lease, model: ModelDefaults, batch: int) -> None:
        self._lease, self._model, self._batch = lease, model, batch
        if isinstance(model, BatchModel):
            self._batch = model.batch
        elif isinstance(model, ConcurrentModel):
            self._batch = 1

    def begin(self, loop: Loop) -> None:
        """Leases what was drawn before, or is kept back: that is finished first."""
        if loop.open:
            self._lease.renew(self.account(loop))

    def settle(self, loop: Loop) -> None:
        """Gives back what will not be used."""
        self._lease.settle(self.account(loop))

    def renewed(self, loop: Loop) -> bool:
        """Whether more is leased now, where the lease was used up; waits for it."""
        return self.pauses(loop) and self._lease.renew(self.account(loop))

    def keep_up(self, loop: Loop) -> None:
        """Tells the lease where the audit stands."""
        self._lease.keep_up(self.account(loop))

    def before_draw(self, loop: Loop, drawn: int) -> bool:
        """Draws that know the same (a batch) are not parted by a pause, as that would make another
        audit of it, unless the lease is the last there is."""
        parted = drawn > 0 and self._batch > 1 and not self._lease.short
        return not parted and self.pauses(loop)

    def pauses(self, loop: Loop) -> bool:
        """Whether what is drawn next, all of a batch, and all calls that wait, may take more than
        is leased; of the last lease that there is, the next draw alone."""
        lease, draws = self._lease, 1 if self._lease.short else self._batch
        money = loop.budget.spent + loop.budget.reserved(len(loop.queue) + draws * loop.most)
        if lease.money is not None and money > lease.money + CENTS:
            return True
        return lease.calls is not None and loop.calls + draws * loop.question > lease.calls

    def ends(self, loop: Loop) -> End | None:
        """Why no more will be leased, where that keeps the audit from its next question."""
        over = self._lease.over
        return End(over, "lease") if over and self.pauses(loop) else None

    def account(self, loop: Loop) -> Account:
        return account_of(loop, self._model, self._batch)


def account_of(loop: Loop, model: ModelDefaults, batch: int) -> Account:
    """What an audit took so far, and what it may take next."""
    budget, queue = loop.budget, loop.queue
    batched = submitted(model, loop.journal, queue.__contains__)
    sent = max(queue.under_way, len(batched))
    flights = FLIGHTS * model.in_flight if isinstance(model, ConcurrentModel) else 1
    return Account(
        spent=budget.spent,
        committed=budget.spent + budget.reserved(sent),
        waiting=max(0, len(queue) - sent),
        question=loop.question,
        together=max(flights, batch * loop.question),
        worst=budget.worst,
        calls=loop.calls,
        unwritten=sum(map(is_repeat_probe, queue.numbers)),
    )
