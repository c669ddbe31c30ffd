"""Strata anew, as ``strata`` defines them, from the truths and masks that the journal holds.

Code of its own, as in ``verify_draws``. What is checked of a draw that chose a stratum first:

- its shares are a proposal over the strata, and the stratum is what the key's random number picks;
- every call of the proposal belongs to it;
- the figures of every target follow from the shares, the unseen calls, and the means journaled
  with the draws before.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import JournalError
from ..journal.rows import DrawRow
from ..types import Bools, Floats
from ..utils.random_streams import generator

ROUNDED = 1e-6
"""Shares are journaled, and used, rounded to 9 decimals; their sum may be off by this."""
FIRST_MEAN = 0.5
Signature = tuple[bool, ...]


class StrataCheck:
    """What the past fixes of the strata of K targets.

    ``cells``: the signature (which targets hold them, n x K) and number of questions (n,) of
    every variant, concept and truth.
    """

    def __init__(self, cells: Bools, counts: Sequence[int]) -> None:
        sizes: Counter[Signature] = Counter()
        for signature, count in zip(cells.tolist(), counts, strict=True):
            if any(signature) and count:
                sizes[tuple(signature)] += count
        self.signatures = sorted(sizes)
        self.left = np.array([sizes[s] for s in self.signatures], float)
        self.means: dict[int, float] = {}

    def place(self, draw: DrawRow, key: str) -> int:
        """The draw's stratum; raises JournalError where it does not follow from key and shares."""
        shares = self._shares(draw)
        ends = np.cumsum(shares)
        point = generator(key, "stratum", draw.draw).random() * ends[-1]
        place = min(int((ends <= point).sum()), len(ends) - 1)
        if place != draw.why["stratum"]:
            raise JournalError(
                f"verify: draw {draw.draw} is of stratum {draw.why['stratum']}, but the key and "
                f"the shares come to stratum {place}"
            )
        return place

    def check_calls(self, draw: DrawRow, place: int, inside: Bools) -> None:
        """``inside`` m x K: which targets the calls of the proposal belong to."""
        if (inside != np.array(self.signatures[place])).any():
            raise JournalError(f"verify: the proposal of draw {draw.draw} leaves its stratum")

    def expected(self, draw: DrawRow, place: int, k: int, reach: Floats) -> dict[str, float] | None:
        """Figures of target ``k``, ``scale`` still to be divided by m and the probability; None
        where the target does not move. ``reach``: bounds down, up and of the tilt."""
        mine = [c for c, s in enumerate(self.signatures) if s[k] and self.left[c] > 0]
        shares, n = self._shares(draw)[mine], self.left[mine]
        if place not in mine or not (shares > 0).all():
            return None
        known = list(self.means.values())
        other = sum(known) / len(known) if known else FIRST_MEAN
        guess = n * np.array([self.means.get(c, other) for c in mine])
        rho = shares / shares.sum()
        down, up, tilt = reach
        return {
            "scale": self.left[place] / rho[mine.index(place)],
            "lo": float(guess.sum() - ((down * n + guess) / rho).max()),
            "hi": float(guess.sum() + ((n + up * n - guess) / rho).max()),
            "tilt_bound": float(((1 + tilt) * n / rho).max() - n.sum()),
        }

    def advance(self, draw: DrawRow, inside: npt.NDArray[np.bool_]) -> None:
        """Counts the draw, of a call that belongs to the targets ``inside`` (K,)."""
        signature = tuple(inside.tolist())
        if signature in self.signatures:
            self.left[self.signatures.index(signature)] -= 1
        if "stratum" in draw.why:
            self.means[draw.why["stratum"]] = float(draw.why.get("stratum_mean", np.nan))

    def _shares(self, draw: DrawRow) -> Floats:
        shares = np.array(draw.why.get("shares", []), float)
        right = shares.shape == self.left.shape and (shares >= 0).all()
        if not right or abs(float(shares.sum()) - 1) > ROUNDED:
            raise JournalError(
                f"verify: the shares of draw {draw.draw} are no proposal over its strata"
            )
        return shares
