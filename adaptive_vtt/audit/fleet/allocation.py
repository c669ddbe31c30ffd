"""What a member's next money is worth: by how much it brings its open targets to their end.

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

from typing import Protocol

import numpy as np

from ...certify import Certifier
from ...certify.forecast import forecasts
from ...certify.further import further, longest
from ...engine.belief import Belief
from ...engine.lease import Account
from ...engine.options import Sampling
from ...engine.plan import Certify
from ...models.base import ModelDefaults
from ...types import Floats

ASSUMED = 0.2
"""The loss rate that first forecasts are made for."""
TINY = 1e-12
FIGURES = ("more_calls", "more_calls_most", "more_cost", "more_cost_most")


class Running(Protocol):
    """What is read of an audit."""

    certify: Certify
    sampling: Sampling
    model: ModelDefaults

    @property
    def belief(self) -> Belief:
        """What it has learnt so far; the certifier among it."""


class Outlook:
    """What an audit's next money is worth; ``paid``: whether money is what is short, and not calls
    alone."""

    def __init__(self, audit: Running, *, paid: bool) -> None:
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
