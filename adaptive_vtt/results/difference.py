"""Differences of two models' error rates in words, with one sign in all that people read.

Journals, results and ``Verdict`` hold delta = R_A - R_B. People read how much more or less often
the new model B is wrong, R_B - R_A, which rules of a gate limit ('versus:overall <= +0.01').
"""

import re

from ..certify.status import Difference
from ..journal.facts import Facts
from ..models.versions import BETWEEN, without_hashes
from ..utils.figures import EXACT, is_exact, outward

DECISIONS = {
    "better": "{b} is wrong less often",
    "worse": "{b} is wrong more often",
    "within": "no difference that matters",
    "holds": "the claim holds",
    "fails": "the claim fails",
    "open": "open",
}
"""Decisions in words; b: the name of model B."""
UNFIT = "worse", "fails"
"""Decisions after which B does not ship."""
WHOLE = "both models answered everything, so every difference is exact"
"""The guarantee of differences that are exact, in place of a probability."""
LONGEST = 10


def names_of(facts: Facts) -> tuple[str, str]:
    """Return two different names of the models of a comparison.

    Models of one name are called by name and version, else by their files, else "A" and "B".
    """
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


def in_brackets(difference: float, lower: float, upper: float) -> str:
    """Return a difference in points with its interval, −4.4 (−10.0 to +1.0)."""
    return f"{points(difference)} ({point_span(lower, upper)})"


def extent(lower: float, upper: float) -> str:
    """Return an interval in words: between 10.0 points less and 1.0 more; or "exact"."""
    if is_exact(lower, upper):
        return EXACT
    low, high = (round(100 * end, 1) for end in outward(lower, upper))
    if low < 0 < high:
        return f"between {-low:.1f} points less and {high:.1f} more"
    near, far = sorted((abs(low), abs(high)))
    return f"between {near:.1f} and {far:.1f} points {'more' if high > 0 else 'less'}"


def wrong(b: str, more: float) -> str:
    """Return an estimated difference in words: "new is wrong 4.4 points less often"."""
    size = f"{100 * abs(more):.1f}"
    how = f"{size} points {'more' if more > 0 else 'less'} often" if float(size) else "as often"
    return f"{b} is wrong {how}"


def wrong_more(b: str, more: float, lower: float, upper: float) -> str:
    """Return the text of ``wrong`` and, in brackets, that of ``extent``.

    Args:
        b: Name of the new model.
        more: How much more often it is wrong than the old one, in [-1, 1].
        lower: Lower end of the interval of that.
        upper: Upper end.
    """
    return f"{wrong(b, more)} ({extent(lower, upper)})"


def in_words(facts: Facts, delta: Difference) -> str:
    """Return the difference ``delta`` = R_A - R_B of a comparison in words; see ``wrong_more``."""
    return wrong_more(brief(names_of(facts)[1]), -delta.estimate, -delta.upper, -delta.lower)
