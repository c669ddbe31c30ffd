"""The first numbers: how often a model is wrong on original images, and including changes."""

from collections.abc import Sequence

import numpy as np

from ..certify.status import TargetStatus
from ..certify.targets import Target, selected_by
from ..journal.facts import Facts
from ..journal.rows import CallRow
from ..types import IDENTITY
from ..utils.figures import EXACT, estimate_percent, is_exact, percent, span
from .outcomes import unanswered
from .run import Run

ORIGINAL, CHANGED = "on your original images", "including image changes"

WIDE = 0.5
"""In an interval that is wider, an estimate in the middle would mislead."""
QUOTED = 80
"""Characters of a reason that are quoted."""


def opening(facts: Facts) -> tuple[int, int | None] | None:
    """Return the places of the two targets of the headline in the certificate.

    They are about original images, and about the same questions with all changes, too; the second
    is None if there is no such target.

    None if no target is about all original images, where there are no changes, and where two
    models are compared. None, too, where answers are compared with the one about the source image,
    which is then always right.
    """
    certificate = facts.certificate
    if certificate is None or certificate.versus is not None or facts.population is None:
        return None
    if facts.settings.oracle.needs_source:
        return None
    unchanged = [relation == IDENTITY for relation, _ in facts.space.variants]
    targets = selected_by(facts.population, certificate.ids[: certificate.registered])
    plain = next((k for k, t in enumerate(targets) if _is_of(t, unchanged)), None)
    if plain is None or all(unchanged):
        return None
    everywhere = [True] * len(unchanged)
    asked = np.sum(facts.space.cell_counts, axis=0) > 0  # of classes asked about alone none is 0
    sides = asked & targets[plain].sides
    alike = [(asked & target.sides == sides).all() for target in targets]
    whole = (k for k, t in enumerate(targets) if _is_of(t, everywhere) and alike[k])
    return plain, next(whole, None)


def _is_of(target: Target, variants: Sequence[bool]) -> bool:
    """Return whether a target is about these variants, of all samples and concepts."""
    everyone = target.rows is None and bool(target.concepts.all())
    return everyone and target.variants.tolist() == [*variants]


def sentence(run: Run) -> str | None:
    """Return the headline, such as "Misclassification rate on your original images: 5.1 to 13.2 %
    (best guess 8.9 %); including image changes: ...; 4.0 % of the questions went unanswered (most
    often: ...)".

    None: see ``opening``.
    """
    places = opening(run.facts)
    if places is None:
        return None
    plain_place, whole_place = places
    plain = run.statuses[plain_place]
    rate = plain.id.rate
    parts = [f"{rate[0].upper()}{rate[1:]} {ORIGINAL}: {_words(plain)}"]
    if whole_place is not None:
        parts.append(f"{CHANGED}: {_words(run.statuses[whole_place])}")
    if plain.baseline:
        answer, constant = plain.baseline.answer, percent(plain.baseline.rate)
        parts.append(f"always {answer!r} would have {constant}")
    parts += filter(None, [silent_share(run.calls)])
    return "; ".join(parts)


def silent_share(calls: Sequence[CallRow]) -> str:
    """Return which share of the questions went unanswered and mostly why; "" if none did."""
    asked, reasons = unanswered(calls)
    if not reasons:
        return ""
    often = " ".join(reasons.most_common(1)[0][0].split())
    share = percent(reasons.total() / asked)
    return f"{share} of the questions went unanswered (most often: {often[:QUOTED]})"


def _words(status: TargetStatus) -> str:
    """Return an interval and the best guess, 5.1 to 13.2 % (best guess 8.9 %), or "8.9 %, exact".

    No guess where the interval is wide.
    """
    estimate, lower, upper = status.estimate, status.lower, status.upper
    if is_exact(lower, upper):
        wrong = status.any_wrong
        labels = "" if wrong is None else f" (any label wrong in {percent(wrong)} of the images)"
        return f"{percent(estimate)}, {EXACT}{labels}"
    if upper - lower > WIDE:
        return f"hardly known yet ({span(lower, upper)})"
    return f"{span(lower, upper)} (best guess {estimate_percent(estimate, lower, upper)})"
