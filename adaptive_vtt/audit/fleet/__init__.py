"""Several audits under one cap: who may spend how much, and whose turn it is.

``broker`` keeps what every member may spend in one SQLite file, ``leasing`` is what a member's
audit asks before it draws, ``allocation`` says what a member's next calls are worth, and
``recounting`` reads what their journals say was spent.
"""

from .broker import FLEET, Broker, Terms, check_alone, recount, wait_for_members
from .leasing import BrokerLease

__all__ = ["FLEET", "Broker", "BrokerLease", "Terms", "check_alone", "recount", "wait_for_members"]
