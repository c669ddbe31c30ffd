"""What an audit says it believed: the questions asked and failed by then, counted anew.

What was predicted follows from a Gaussian process, and is sealed like every row, but not worked out
again: no interval depends on it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import JournalError
from ..journal import Journal
from ..journal.rows import CallRow, DrawRow

if TYPE_CHECKING:
    from ..journal.facts import Facts

WRONG = 0.5


def check_beliefs(
    journal: Journal, facts: "Facts", draws: Sequence[DrawRow], calls: Sequence[CallRow]
) -> None:
    """Raises JournalError naming the first row of "beliefs" whose counts are not those of the
    answers to the draws it had learnt from."""
    answered, drawn, learnt = {c.call: c for c in calls}, [d.call for d in draws], 0
    asked, failed = Counter[int](), Counter[int]()
    variants, concepts = len(facts.space.variants), len(facts.space.concepts)
    for row in journal.beliefs():
        for call in drawn[learnt : row.draws]:
            for answer in answered[call].answers if call in answered else ():
                if answer.loss is None or answer.excluded:
                    continue
                image, concept = divmod(answer.question, concepts)
                asked[concept * variants + image % variants] += 1
                failed[concept * variants + image % variants] += answer.loss >= WRONG
        missing = [call for call in drawn[learnt : row.draws] if call not in answered]
        if missing or row.draws > len(drawn):
            raise JournalError(
                f"verify: what was believed after {row.draws} draws: expected answers to all of "
                f"them, got {len(drawn)} draws and none to {len(missing)} of those since the "
                "belief before"
            )
        learnt = row.draws
        for name, counts in (("asked", asked), ("failed", failed)):
            found = [counts[cell] for cell in range(concepts * variants)]
            if row.figures.get(name) != found:
                raise JournalError(
                    f"verify: what was believed after {row.draws} draws: {name!r} is not what the "
                    f"answers come to, {sum(found)} questions in all"
                )
