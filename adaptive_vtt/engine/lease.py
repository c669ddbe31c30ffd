"""What an audit may spend for now, where several audits share money or calls.

An audit with a lease (``Limits.lease``) draws nothing that the lease might not pay for. Once that
is used up it pauses: it ends nothing, forgets nothing, and goes on with the same draws when the
lease is renewed. Who renews it, and when, is no business of the engine (``fleet``).
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Account:
    """What an audit took so far, and what it may take next.

    ``spent``: what its answers cost. ``committed``: that, and what calls lost and on their way may
    cost at most. ``waiting``: calls drawn and not on their way. ``question``: calls that the next
    question may take, at most. ``together``: calls that are best leased at once. ``worst``: what
    one call may cost, at most. ``calls``: of the model, drawn; ``unwritten``: of these, repeat
    probes that wait, of which the journal tells nothing yet.
    """

    spent: float
    committed: float
    waiting: int
    question: int
    together: int
    worst: float
    calls: int
    unwritten: int = 0

    @property
    def written(self) -> int:
        """Calls that the journal tells of."""
        return self.calls - self.unwritten


class Lease(Protocol):
    """What somebody else allows an audit for now."""

    money: float | None
    """What all that is spent, lost and on its way may come to; None: whatever it is."""
    calls: int | None
    """How many calls may be drawn, with those before; None: any number."""
    short: bool
    """Whether less was leased than was asked for, as no more is left."""
    over: str | None
    """Why no more will be leased; None while that is open."""

    def renew(self, account: Account) -> bool:
        """Waits until more is leased, which is on the disk by then; False, with ``over`` set, where
        no more will be."""

    def keep_up(self, account: Account) -> None:
        """Told after answers came; may lease more, if that takes no waiting."""

    def settle(self, account: Account) -> None:
        """Told when the audit's run ends, however it ends: what it will not use is free."""
