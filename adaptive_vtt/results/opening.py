"""The first numbers that are told: how often a model errs on images as they are, and on all."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..certify.targets import Target, selected_by
from ..journal.facts import Facts
from ..journal.rows import CallRow
from ..types import IDENTITY
from ..utils.figures import POINT, Bar, beside, outward, percent, span
from .outcomes import unanswered

AS_THEY_ARE, WITH_CHANGES = "on your images as they are", "with the proposed changes among them"

WIDE = 0.5
"""Of an interval that is wider an estimate in the middle of it would mislead."""
READABLE = 0.1
"""An interval that is wider comes before its estimate."""
QUOTED = 80
"""So many characters of a reason are quoted."""


class Opening(NamedTuple):
    """Two targets by their places in the certificate: about images as they are, and about the same
    questions with all changes, too; None: these are no target."""

    plain: int
    whole: int | None


def opening(facts: Facts) -> Opening | None:
    """None where no target is about all images as they are and these are not all there are, where
    two models are compared, or where answers are compared with the one about the source image,
    which is then always right."""
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
    every = [True] * len(unchanged)
    there = np.sum(facts.space.cell_counts, axis=0) > 0  # of classes asked about alone none is 0
    sides = there & targets[plain].sides
    for whole, target in enumerate(targets):
        if _is_of(target, every) and (there & target.sides == sides).all():
            return Opening(plain, whole)
    return Opening(plain, None)


def _is_of(target: Target, variants: Sequence[bool]) -> bool:
    """Whether a target is about these variants, of all samples and concepts."""
    everyone = target.rows is None and bool(target.concepts.all())
    return everyone and target.variants.tolist() == [*variants]


def sentence(
    facts: Facts, rows: Sequence[Mapping[Any, Any]], calls: Sequence[CallRow] = ()
) -> str | None:
    """Misclassification rate on your images as they are: 8.9 % (5.1 to 13.2); with the proposed
    changes among them: ...; 4.0 % of the questions went unanswered (most often: ...).

    ``rows``: the targets of a result, in order. None: see ``opening``.
    """
    places = opening(facts)
    if places is None:
        return None
    plain = rows[places.plain]
    name = str(plain["rate"])
    parts = [f"{name[0].upper()}{name[1:]} {AS_THEY_ARE}: {_words(plain)}"]
    if places.whole is not None:
        parts.append(f"{WITH_CHANGES}: {_words(rows[places.whole])}")
    if plain.get("constant_answer"):
        parts.append(f"always {plain['constant_answer']!r} would have {percent(plain['constant'])}")
    parts += filter(None, [silent_share(calls)])
    return "; ".join(parts)


def silent_share(calls: Sequence[CallRow]) -> str:
    """Return which share of the questions went unanswered and mostly why; "" where none did."""
    asked, reasons = unanswered(calls)
    if not reasons:
        return ""
    often = " ".join(reasons.most_common(1)[0][0].split())
    share = percent(reasons.total() / asked)
    return f"{share} of the questions went unanswered (most often: {often[:QUOTED]})"


def _words(row: Mapping[Any, Any]) -> str:
    """In per cent, rounded outwards: 8.9 % (5.1 to 13.2); "8.9 %, exact" once all was asked; a
    range first where the estimate alone would mislead."""
    width = row["upper"] - row["lower"]
    if width <= POINT:
        return f"{Bar('', row['estimate'], np.nan, np.nan, done=True).words}, exact{_images(row)}"
    if width > WIDE:
        return f"hardly known yet ({span(row['lower'], row['upper'])})"
    if width > READABLE:
        low, high = outward(row["lower"], row["upper"])
        likely = beside(row["estimate"], row["lower"], row["upper"])
        return f"between {100 * low:.1f} and {100 * high:.1f} %, most likely {likely}"
    return Bar("", row["estimate"], row["lower"], row["upper"], done=False).words


def _images(row: Mapping[Any, Any]) -> str:
    """The share of images with any wrong label, where that is known; "" elsewhere."""
    share = row.get("any_wrong", np.nan)
    return "" if np.isnan(share) else f" (any label wrong in {percent(share)} of the images)"
