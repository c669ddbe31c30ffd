"""How the error rates of two models differ, in words, with one sign wherever people read it.

Journals, results and ``Verdict`` hold delta = R_A - R_B. Told is how much more or less often the
new model B errs, R_B - R_A, as rules of a gate ('versus:overall <= +0.01') have it.
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
"""Decisions in words; b: what model B is called."""
UNFIT = "worse", "fails"
"""Those after which nobody asks any more whether B may ship."""
WHOLE = "both models answered everything, so every difference is exact"
"""What is promised of differences where that is so, in place of a probability."""
LONGEST = 10


def names_of(facts: Facts) -> tuple[str, str]:
    """What the models are called; of two with one name with the versions that they were given, else
    by their files, and "A" and "B" where nothing tells them apart."""
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
    """Return what a model, or each of two, is called without the folders of its file: m.py:net."""
    names = (re.sub(r".*/(?=[^/]*\.py:)", "", name) for name in model.split(BETWEEN))
    return BETWEEN.join(names)


def brief(name: str) -> str:
    """What the new model is called where every row says it: a long name would fill the rows."""
    return name if len(name) <= LONGEST else "new"


def points(difference: float) -> str:
    """A difference in percentage points, with its sign: +2.6."""
    return f"{100 * difference:+.1f}".replace("-", "−").replace("+0.0", "0").replace("−0.0", "0")


def point_span(lower: float, upper: float) -> str:
    """An interval of differences in points, rounded outwards: −10.0 to +1.0; or that it is exact,
    as where everything was asked."""
    return EXACT if is_exact(lower, upper) else " to ".join(map(points, outward(lower, upper)))


def told(b: str, more: float, lower: float, upper: float) -> str:
    """That model ``b`` errs ``more`` often than the other, from ``lower`` to ``upper``, all in
    [-1, 1]: "new errs 4.4 points less (−10.0 to +1.0)"."""
    size = f"{100 * abs(more):.1f}"
    how = f"{size} points {'more' if more > 0 else 'less'}" if float(size) else "as often"
    return f"{b} errs {how} ({point_span(lower, upper)})"


def in_words(facts: Facts, delta: Difference) -> str:
    """The same of the models of a comparison, from R_A - R_B."""
    return told(brief(names_of(facts)[1]), -delta.estimate, -delta.upper, -delta.lower)
