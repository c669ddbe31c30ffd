"""Several audits under one cap: who may spend how much, and whose turn it is.

``broker`` keeps what every member may spend in one SQLite file, and reads what their journals say
was spent; ``leasing`` is what a member's audit asks before it draws, and what its next calls are
worth.
"""

from ...journal.files import FLEET
from .broker import Broker, Terms, check_alone, recount, wait_for_members
from .leasing import BrokerLease

__all__ = ["FLEET", "Broker", "BrokerLease", "Terms", "check_alone", "recount", "wait_for_members"]
