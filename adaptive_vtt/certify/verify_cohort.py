"""The prior that was made of other models, anew from what is journaled of each of them."""

import math

from ..errors import JournalError
from ..journal.facts import Facts

MIN_MODELS = 3
WIDER, MIN_VARIANCE = 1.15, 1e-3
AGREE = 1e-9


def check_cohort(facts: Facts) -> None:
    """Raises JournalError where an audit of the cohort has this audit's key, so that predictions
    knew the draws to come, and where the prior is not what its members come to.

    How each member follows from the others was worked out of losses that the journal names by
    their digest alone, so that is not repeated here. No interval rests on it.
    """
    cohort = facts.cohort
    if cohort is None:
        return
    for model, key in zip(cohort.models, cohort.keys, strict=True):
        if key is not None and key == facts.key:
            raise JournalError(
                f"verify: cohort: {model!r}: expected an audit with a key of its own, got this "
                f"audit's, {key}"
            )
    count = len(cohort.members)
    if count < MIN_MODELS or count != len(cohort.models):
        raise JournalError(
            f"verify: cohort: expected what {MIN_MODELS} models or more follow the others by, "
            f"each of {len(cohort.models)} once, got {count}"
        )
    columns = [[member[place] for member in cohort.members] for place in range(3)]
    mean = [math.fsum(column) / count for column in columns[:2]] + [0.0]
    sizes = (count - 1, count - 1, count)
    spread = [
        math.fsum((value - centre) ** 2 for value in column) / size
        for column, centre, size in zip(columns, mean, sizes, strict=True)
    ]
    variance = [WIDER * each + MIN_VARIANCE for each in spread]
    for what, found, told in (("mean", mean, cohort.mean), ("variance", variance, cohort.variance)):
        if len(told) != len(found) or not all(map(_agree, found, told)):
            raise JournalError(
                f"verify: cohort: expected the prior's {what} {found}, as its members come to, "
                f"got {list(told)}"
            )


def _agree(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=AGREE, abs_tol=AGREE)
