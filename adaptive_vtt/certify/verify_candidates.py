"""The candidates of every draw anew, from the audit's key, and what is bet by their predictions.

Code of its own, as in ``verify``. An interval is proved for candidates that are a uniform subset
of the unseen calls: whoever chose them by what the answers will be could certify any rate. So

- where the unseen calls are no more than the limit, the candidates are all of them;
- else they are those that the key's random numbers pick from the unseen calls;
- no draw picks a question that the truths in the journal do not let be asked;
- sums of predictions follow from what was journaled twice, for the lower and the upper end, and lie
  between 0 and the questions of the candidates; the tilt follows from those.

What predictors said of the candidates one by one is not in the journal. Predictions may be any
numbers that were fixed before the answer, which the order of the chain shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import JournalError
from ..journal.rows import DrawRow, PackedProposal
from ..types import Bools, Indices
from ..utils.random_streams import generator

AGREE = 1e-6
"""Sums are derived from larger figures; relative to those, they agree to this."""
FADE = 0.9
"""How the bound on a draw's correction fades, unless a larger correction raises it."""
TINY = 1e-300
Block = tuple[int, int, int]
"""The questions of one variant, concept and truth."""


class Blocks:
    """Questions by rank: blocks one after the other, ascending by sample within each."""

    def __init__(self, truths: Indices, rows: Indices, blocks: Sequence[Block]) -> None:
        self._truths, self._rows, self._blocks = truths, rows, np.array(blocks).reshape(-1, 3)
        copies = np.bincount(rows, minlength=len(truths))
        counts = np.array([copies @ (truths == side) for side in (0, 1)], np.int64)
        self._ends = np.cumsum(counts[self._blocks[:, 2], self._blocks[:, 1]])
        self._samples: dict[tuple[int, int], Indices] = {}

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def nth(self, ranks: Indices) -> Indices:
        """n x 3: sample, variant and concept of the questions of these ranks (n,)."""
        place = np.searchsorted(self._ends, ranks, side="right")
        within = ranks - np.concatenate([[0], self._ends])[place]
        variant, concept, side = self._blocks[place].T
        sample = np.empty_like(ranks)
        for kind in set(zip(concept.tolist(), side.tolist(), strict=True)):
            if kind not in self._samples:
                holds = self._truths[:, kind[0]] == kind[1]
                self._samples[kind] = np.flatnonzero(holds[self._rows])
            here = (concept == kind[0]) & (side == kind[1])
            sample[here] = self._samples[kind][within[here]]
        return np.column_stack([sample, variant, concept])


class CandidateCheck:
    """The calls that may still be drawn, and which of them are candidates.

    Args:
        truths: (r, C) truths by profile row, below 0 where unknown.
        rows: (N,) the profile row of every sample.
        applicable: (V, C) which variants a concept is asked about.
        whole: Whether a call answers all questions of an image, or one.
        limit: Questions that are looked at per draw.
    """

    def __init__(
        self, truths: Indices, rows: Indices, applicable: Bools, whole: bool, limit: int
    ) -> None:
        self._known, self._rows = truths >= 0, rows
        self._applicable, self._whole = applicable, whole
        every = [
            (variant, concept, side)
            for concept in range(applicable.shape[1])
            for side in (0, 1)
            for variant in np.flatnonzero(applicable[:, concept]).tolist()
        ]
        self._every = Blocks(truths, rows, every)
        self._calls, self.limit = len(self._every), limit
        if whole:
            self.images = self._images(truths)
            """(V,): the calls about each variant."""
            self._calls = int(self.images.sum())
            small = len(self._every) <= limit
            self.limit = self._calls if small else max(1, limit // applicable.shape[1])
        self.blocks: list[Blocks] = []
        """The questions of every stratum, where a call answers one."""
        self.variants: list[Indices] = []
        """The variants of every stratum, where a call answers all questions about an image."""
        self._seen: set[int] = set()

    def _images(self, truths: Indices) -> Indices:
        copies = np.bincount(self._rows, minlength=len(truths))
        return np.array([copies @ (self._known & a).any(axis=1) for a in self._applicable])

    def check(
        self,
        draw: DrawRow,
        proposal: PackedProposal,
        key: str,
        place: int | None,
        left: int | None,
        replayed: bool,
    ) -> None:
        """Raise JournalError where the proposal of a draw is over other calls than its candidates,
        and count its call as drawn.

        Args:
            draw: The draw.
            proposal: Its proposal, over all its candidates.
            key: The key that it follows from.
            place: The place of its stratum; None: it is of all calls.
            left: The calls left there; None: it is of all calls.
            replayed: Whether another audit made it, whose limit is not known.
        """
        calls, where = proposal.calls, f"verify: draw {draw.draw}: expected"
        left = self._calls - len(self._seen) if left is None else left
        most = len(calls) if replayed else self.limit
        again = self._seen.intersection(calls.tolist())
        if again or not self._askable(calls).all():
            raise JournalError(f"{where} candidates that can be asked and were not yet, got others")
        if len(calls) != min(left, most):
            raise JournalError(
                f"{where} {min(left, most)} candidates of {left} unseen calls, got {len(calls)}"
            )
        if left > most:
            rng = generator(key, "candidates", draw.draw)
            if not np.array_equal(np.sort(self._picked(rng, place, left, most)), calls):
                raise JournalError(
                    f"{where} the candidates that the key picks of {left} unseen calls, got others"
                )
        self._seen.add(draw.call)

    def _picked(self, rng: np.random.Generator, place: int | None, left: int, most: int) -> Indices:
        """``most`` of the ``left`` unseen calls, of a stratum or of all."""
        if self._whole:
            kept = np.arange(len(self._applicable)) if place is None else self.variants[place]
            numbers, size = len(self._rows) * len(kept), int(self.images[kept].sum())
        else:
            blocks = self._every if place is None else self.blocks[place]
            numbers = size = len(blocks)

        def named(ranks: Indices) -> Indices:
            if not self._whole:
                return self._numbered(blocks, ranks)
            sample, variant = np.divmod(ranks, len(kept))
            calls = sample * len(self._applicable) + kept[variant]
            return np.asarray(calls[self._askable(calls)])

        if 2 * left >= size:
            chosen: dict[int, None] = {}
            while len(chosen) < most:
                calls = named(rng.integers(numbers, size=most)).tolist()
                chosen |= dict.fromkeys(call for call in calls if call not in self._seen)
            return np.array([*chosen][:most])
        rest = named(np.arange(numbers))
        rest = rest[~np.isin(rest, np.array([*self._seen]))]
        return rest[np.sort(rng.choice(len(rest), most, replace=False))]

    def _numbered(self, blocks: Blocks, ranks: Indices) -> Indices:
        """The numbers of the questions of these ranks."""
        variants, concepts = self._applicable.shape
        sample, variant, concept = blocks.nth(ranks).T
        return (sample * variants + variant) * concepts + concept

    def _askable(self, calls: Indices) -> Bools:
        """(n,): which calls bring an answer."""
        variants, concepts = self._applicable.shape
        image = calls if self._whole else calls // concepts
        asked = self._known[self._rows[image // variants]] & self._applicable[image % variants]
        if self._whole:
            return np.asarray(asked.any(axis=1))
        return np.asarray(asked[np.arange(len(calls)), calls % concepts])


@dataclass(frozen=True)
class Stake:
    """What the candidates of a draw stand for, for one target.

    ``weight``: of a candidate's sum; ``rest``, ``away``: what other strata add to bases and tilt;
    ``count``: the target's questions among the candidates, ``mine`` those of the call drawn;
    ``probability``: of the draw; ``room``: the questions that the candidates stand for, and
    ``ratio`` the calls that a touching one stands for; ``reach``: bounds down, up and of the tilt.
    """

    weight: float
    rest: float
    away: float
    count: int
    mine: int
    probability: float
    room: float
    ratio: float
    reach: tuple[float, float, float]

    def check(self, figures: dict[str, float], where: str) -> None:
        """Raise JournalError where the bases or the tilt cannot follow from any predictions.

        Predictions are shrunk where the draw would pass a bound. By how much stands in the
        journal, in the bound of the next draw, so that their sum can be had from either end.
        """
        nexts = [figures[f"next_{name}"] for name in ("down", "up", "tilt")]
        seen = [n if n > FADE * r else 0.0 for n, r in zip(nexts, self.reach, strict=True)]
        if any(n < FADE * r * (1 - AGREE) for n, r in zip(nexts, self.reach, strict=True)):
            raise JournalError(f"{where}: expected bounds that fade by {FADE}, got {nexts}")
        low, high, lean = (
            min(1.0, r / max(s, TINY)) for r, s in zip(self.reach, seen, strict=True)
        )
        whole = self.ratio * self.count / self.room
        lean = min(lean, 1 / max(whole, TINY))
        sums = [(figures[f"{end}_base"] - self.rest) / self.weight for end in ("low", "high")]
        ours = [figures[f"{end}_predicted"] for end in ("low", "high")]
        size = abs(self.rest) / self.weight + self.count + 1
        sides: list[tuple[str, list[float], int]] = [
            ("predictions of its candidates", sums, self.count),
            ("predictions of its call", ours, self.mine),
        ]
        for name, (lower, upper), most in sides:
            from_low, from_high = lower / max(low, TINY), most - (most - upper) / max(high, TINY)
            slack = AGREE * size / max(min(low, high), TINY)
            if abs(from_low - from_high) > slack or not -slack <= from_low <= most + slack:
                raise JournalError(
                    f"{where}: expected {name} that sum to 0 to {most}, got {from_low:g} by the "
                    f"lower end and {from_high:g} by the upper"
                )
        tilt = self.away + lean * self.weight * (self.count - self.mine / self.probability)
        slack = AGREE * (abs(self.away) + self.weight * self.mine / self.probability + size)
        if abs(figures["tilt"] - tilt) > slack:
            raise JournalError(f"{where}: tilt should be {tilt:g}, got {figures['tilt']:g}")
