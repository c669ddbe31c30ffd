"""A member's lease: what its audit asks the broker before it draws, and tells it afterwards."""

import time
from collections.abc import Callable

import numpy as np

from ...engine.lease import Account
from .. import Audit
from .allocation import Outlook
from .broker import Broker, State, Terms

CALLS = 16
"""Calls of a lease, at least: how often it is asked whose turn it is."""
POLL = 0.05
"""Seconds between two looks at whether it is one's turn."""
TELL = 0.3
"""Seconds between two figures for the fleet's table, at least."""


class BrokerLease:
    """``engine.lease.Lease`` by a broker; ``follow`` names the audit that has it.

    ``sleep`` is for tests.
    """

    def __init__(
        self, broker: Broker, name: str, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._broker, self._name, self._sleep = broker, name, sleep
        caps = broker.caps()
        self._paid, self._counted = caps.max_cost is not None, caps.max_calls is not None
        self.money: float | None = 0.0 if self._paid else None
        self.calls: int | None = 0 if self._counted else None
        self.short = False
        self.over: str | None = None
        self._audit: Audit | None = None
        self._outlook: Outlook | None = None
        self._next = 0.0

    def follow(self, audit: Audit) -> None:
        """``audit`` has this lease."""
        self._audit, self._outlook = audit, Outlook(audit, paid=self._paid)

    def renew(self, account: Account) -> bool:
        gain, wanted = self._gain(account), max(CALLS, account.together)
        self._tell(account)
        while True:
            terms = self._broker.lease(self._name, account, wanted, gain)
            if terms.kind == "leased":
                self._take(terms)
                return True
            self._lower(account)
            if terms.kind == "over":
                self.over = terms.over
                return False
            self._sleep(POLL)

    def keep_up(self, account: Account) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + TELL
        self._tell(account)
        wanted = max(CALLS, account.together)
        if self._left(account) < wanted / 2:  # before calls on their way run out
            gain = self._gain(account)
            terms = self._broker.lease(self._name, account, wanted, gain, extend=True)
            if terms.kind == "leased":
                self._take(terms)

    def settle(self, account: Account) -> None:
        state: State = "stopped"
        if self.over:
            state = "short"
        elif self._audit is not None and self._audit.stopped is not None:
            state = "done"
        self._tell(account)
        self._broker.settle(self._name, account, state)
        self._lower(account)

    def _lower(self, account: Account) -> None:
        """To what the broker books where nothing is leased: others may have the rest."""
        if self._paid:
            self.money = account.committed
        if self._counted:
            self.calls = account.calls

    def _take(self, terms: Terms) -> None:
        self.short = terms.short
        if self._paid:
            self.money = terms.money
        if self._counted:
            self.calls = terms.calls

    def _left(self, account: Account) -> float:
        """Calls that the lease pays for beside those drawn."""
        left = float("inf")
        if self.money is not None and account.worst > 0:
            left = (self.money - account.committed) / account.worst - account.waiting
        return left if self.calls is None else min(left, self.calls - account.calls)

    def _gain(self, account: Account) -> float:
        return 0.0 if self._outlook is None else self._outlook.gain(account)

    def _tell(self, account: Account) -> None:
        """Figures for the fleet's table."""
        certifier = None if self._audit is None else self._audit.belief.certifier
        figures: dict[str, float] = {
            "calls": account.calls,
            "spent": account.spent,
            "committed": account.committed,
        }
        if certifier is not None:
            widths = np.where(certifier.settled, 0.0, certifier.sequences.half_width)
            figures |= {
                "certified": int(certifier.certified.sum()),
                "targets": len(certifier.targets),
                "widest": float(widths.max()),
            }
        if self._outlook is not None:
            figures |= self._outlook.more(account)
        self._broker.tell(self._name, figures=figures)
