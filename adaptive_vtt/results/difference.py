"""How the error rates of two models differ, in words, with one sign wherever people read it.

Journals, results and ``Verdict`` hold delta = R_A - R_B. People read how much more or less often
the new model B is wrong, R_B - R_A, as rules of a gate ('versus:overall <= +0.01') have it.
"""

import re

from ..certify.status import Difference
from ..journal.facts import Facts
from ..models.versions import BETWEEN, without_hashes
from ..utils.figures import EXACT, is_exact, outward

DECISIONS = {
    "better": "{b} errs less",
    "worse": "{b} errs more",
    "within": "no difference that matters",
    "holds": "the claim holds",
    "fails": "the claim fails",
    "open": "open",
}
"""Decisions in words; b: the name of model B."""
UNFIT = "worse", "fails"
"""Decisions after which B does not ship."""
WHOLE = "both models answered everything, so every difference is exact"
"""The guarantee of differences where that is so, in place of a probability."""
LONGEST = 10


def names_of(facts: Facts) -> tuple[str, str]:
    """Return the names of two models; where they share one, with the versions that they were given,
    else their files, and "A" and "B" where nothing distinguishes them."""
    model, paired = facts.settings.model, facts.certificate is not None and facts.certificate.paired
    a, _, b = model.partition(BETWEEN) if paired else ("recorded answers", "", model)
    if a != b:
        short = short_name(a), short_name(b)
        return (a, b) if short[0] == short[1] else short
    one, _, other = map(without_hashes, (facts.model_version or "").partition(BETWEEN))
    if one != other:
        return f"{a} {one}".strip(), f"{b} {other}".strip()
    return facts.files or ("A", "B")


def short_name(model: str) -> str:
    """Return the name of a model, or of two, without the folders of its file: m.py:net."""
    names = (re.sub(r".*/(?=[^/]*\.py:)", "", name) for name in model.split(BETWEEN))
    return BETWEEN.join(names)


def brief(name: str) -> str:
    """Return the name of the new model for every row of a table: a long one would fill the rows."""
    return name if len(name) <= LONGEST else "new"


def points(difference: float) -> str:
    """Return a difference in percentage points, with its sign: +2.6."""
    return f"{100 * difference:+.1f}".replace("-", "−").replace("+0.0", "0").replace("−0.0", "0")


def point_span(lower: float, upper: float) -> str:
    """Return an interval of differences in points, rounded outwards, −10.0 to +1.0; or "exact"."""
    return EXACT if is_exact(lower, upper) else " to ".join(map(points, outward(lower, upper)))


def wrong_more(b: str, more: float, lower: float, upper: float) -> str:
    """Return that model ``b`` is wrong ``more`` often than the other, from ``lower`` to ``upper``,
    all in [-1, 1]: "new errs 4.4 points less (−10.0 to +1.0)"."""
    size = f"{100 * abs(more):.1f}"
    how = f"{size} points {'more' if more > 0 else 'less'}" if float(size) else "as often"
    return f"{b} errs {how} ({point_span(lower, upper)})"


def in_words(facts: Facts, delta: Difference) -> str:
    """Return the same of the models of a comparison, from R_A - R_B."""
    return wrong_more(brief(names_of(facts)[1]), -delta.estimate, -delta.upper, -delta.lower)
