"""A member's lease: what its audit asks the broker before it draws, and tells it afterwards.

The member goes first whose next money is worth the most: it brings open targets to their end.
With r_k the calls that open target k is expected to take yet and p the expected price of a call,

    gain = sum over open targets of 1 / (r_k p)

targets that would be certified per unit of money, were its calls to go on as they do. The member
of the largest gain goes first. A target's gain grows the nearer it is, so that a member that was
begun is mostly ended before another, dearer one is begun: where the money is short, few half-done
audits eat it.

r_k is the forecast of what an audit still takes (``certify.further``), and, while too little is
known for one, that made without asking (``certify.forecast``).

No certificate depends on any of this. A member's draws follow from its own key and answers alone,
whenever they are made, and its intervals hold at all moments at once, so also at the one at which
the money went to another.
"""

import time

import numpy as np

from ...certify import Certifier
from ...certify.forecast import forecasts
from ...certify.further import further, longest
from ...engine.budget import Account
from ...types import Floats
from .. import Audit
from .broker import Broker, State, Terms

ASSUMED = 0.2
"""The loss rate that first forecasts are made for."""
TINY = 1e-12
FIGURES = ("more_calls", "more_calls_most", "more_cost", "more_cost_most")


class Outlook:
    """What an audit's next money is worth; ``paid``: whether money is what is short, and not calls
    alone."""

    def __init__(self, audit: Audit, *, paid: bool) -> None:
        self._audit, self._paid = audit, paid
        certifier, self._likely = audit.belief.certifier, np.zeros(0)
        if certifier is not None:
            both = audit.certify.unanswered == "both"
            rows, _ = forecasts(certifier, audit.sampling.share(True), both, (ASSUMED,))
            self._likely = np.array([row.likely[ASSUMED] for row in rows], float)

    def gain(self, account: Account) -> float:
        """See the module; 0 for an audit that certifies nothing, or has nothing open."""
        certifier = self._audit.belief.certifier
        if certifier is None:
            return 0.0
        open_ = ~certifier.settled
        price = self._price(account) if self._paid else 1.0
        return float((1 / self.remaining(certifier)[open_]).sum()) / price

    def more(self, account: Account) -> dict[str, float]:
        """The calls and the money that it is expected to take yet, to certify all that is open."""
        certifier = self._audit.belief.certifier
        if certifier is None or certifier.settled.all():
            return dict.fromkeys(FIGURES, 0)
        calls = float(self.remaining(certifier)[~certifier.settled].max())
        found = longest(further(certifier, certifier.left))
        most = calls if found is None else max(found.most, calls)
        price = self._price(account)
        figures = {"more_calls": round(calls), "more_calls_most": round(most)}
        return {**figures, "more_cost": calls * price, "more_cost_most": most * price}

    def remaining(self, certifier: Certifier) -> Floats:
        """(K,): the calls that each target is expected to take yet, 1 at least."""
        likely = np.full(len(certifier.sizes), self._likely.max(initial=1.0))  # of slices, later
        likely[: len(self._likely)] = self._likely
        likely *= certifier.lacking
        found = further(certifier, certifier.left)
        told = [n if each is None else each.likely for each, n in zip(found, likely, strict=True)]
        return np.maximum(np.array(told, float), 1.0)

    def _price(self, account: Account) -> float:
        """Of a call, expected: the mean so far, with one call at its price without retries."""
        usual = account.worst / self._audit.model.most_attempts
        return max((account.spent + usual) / (account.calls + 1), TINY)


CALLS = 16
"""Calls of a lease, at least: how often it is asked whose turn it is."""
POLL = 0.05
"""Seconds between two looks at whether it is one's turn."""
TELL = 0.3
"""Seconds between two figures for the fleet's table, at least."""


class BrokerLease:
    """``engine.budget.Lease`` by a broker; ``follow`` names the audit that has it."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker, self._name = broker, name
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
            time.sleep(POLL)

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
