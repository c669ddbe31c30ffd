"""A census: every question asked once, for exact rates where asking costs next to nothing."""

from typing import TYPE_CHECKING

from ...utils.importing import lazily

if TYPE_CHECKING:
    from .asking import Census
    from .everything import MAX_CALLS, all_answers, all_losses, calls_of, means, members, unanswered
    from .figures import CensusResult

__getattr__, __dir__ = lazily(__name__)
__all__ = [
    "MAX_CALLS",
    "Census",
    "CensusResult",
    "all_answers",
    "all_losses",
    "calls_of",
    "means",
    "members",
    "unanswered",
]
