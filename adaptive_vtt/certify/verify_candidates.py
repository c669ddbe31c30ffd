"""Recompute the candidates of every draw from the audit's key, and check the bets made on them.

Like ``verify``, this module shares no code with the engine. An interval is proved for candidates
that are a uniform subset of the unseen calls: whoever chose them by their answers could certify
any rate. So it checks that

- the candidates are all unseen calls where these are no more than the limit;
- else they are those that the key's random numbers pick from the unseen calls;
- every candidate asks a question whose truth is known and to which its relation applies;
- the sum of the candidates' predictions is the same by the journaled bases of both ends, and lies
  between 0 and the candidates' questions; the tilt follows from the number of these questions.

The journal does not hold the prediction of every candidate. Predictions may be any numbers that
were fixed before the answer, which the order of the chain proves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import JournalError
from ..journal.rows import DrawRow, PackedProposal
from ..types import Bools, Indices
from ..utils.random_streams import generator

AGREE = 1e-6
"""Largest difference between two derived sums, relative to the figures they are derived from."""
FADE = 0.9
"""Factor per draw by which the bound on corrections fades, unless a larger correction raises it."""
TINY = 1e-300
"""Least divisor, so that 0 / 0 stays 0."""
Block = tuple[int, int, int]
"""The questions of one variant, concept and truth."""


class Blocks:
    """A numbering of questions: blocks in a row, and ascending samples within a block.

    Args:
        truths: (r, C) truths by profile row.
        rows: (N,) the profile row of every sample.
        blocks: The blocks in order.
    """

    def __init__(self, truths: Indices, rows: Indices, blocks: Sequence[Block]) -> None:
        self._truths, self._rows, self._blocks = truths, rows, np.array(blocks).reshape(-1, 3)
        copies = np.bincount(rows, minlength=len(truths))
        counts = np.array([copies @ (truths == side) for side in (0, 1)], np.int64)
        self._ends = np.cumsum(counts[self._blocks[:, 2], self._blocks[:, 1]])
        self._samples: dict[tuple[int, int], Indices] = {}

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def nth(self, ranks: Indices) -> Indices:
        """Return sample, variant and concept of the questions of these ranks (n,), n x 3."""
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
        whole: Whether a call asks all questions about an image, or one.
        limit: The most questions among the candidates of a draw.
    """

    def __init__(
        self, truths: Indices, rows: Indices, applicable: Bools, whole: bool, limit: int
    ) -> None:
        self._known, self._rows = truths >= 0, rows
        self._applicable, self._whole = applicable, whole
        blocks = [
            (variant, concept, side)
            for concept in range(applicable.shape[1])
            for side in (0, 1)
            for variant in np.flatnonzero(applicable[:, concept]).tolist()
        ]
        self._all_blocks = Blocks(truths, rows, blocks)
        self._calls, self.limit = len(self._all_blocks), limit
        if whole:
            copies = np.bincount(rows, minlength=len(truths))
            asked = [copies @ (self._known & applies).any(axis=1) for applies in applicable]
            self.images = np.array(asked)
            """(V,): the calls about each variant."""
            self._calls = int(self.images.sum())
            small = len(self._all_blocks) <= limit
            self.limit = self._calls if small else max(1, limit // applicable.shape[1])
        self.blocks: list[Blocks] = []
        """The questions of every stratum, where a call asks one."""
        self.variants: list[Indices] = []
        """The variants of every stratum, where a call asks all questions about an image."""
        self._seen: set[int] = set()

    def check(
        self,
        draw: DrawRow,
        proposal: PackedProposal,
        key: str,
        stratum: int | None,
        left: int | None,
        replayed: bool,
    ) -> None:
        """Check that a proposal covers the draw's candidates, and count its call as drawn.

        Args:
            draw: The draw.
            proposal: Its proposal over all its candidates.
            key: The key that it follows from.
            stratum: Number of its stratum; None for a draw from all calls.
            left: Unseen calls of the stratum; None for a draw from all calls.
            replayed: Whether an earlier audit made it, whose limit is not known.

        Raises:
            JournalError: The proposal covers other calls.
        """
        calls, where = proposal.calls, f"verify: draw {draw.draw}: expected"
        left = self._calls - len(self._seen) if left is None else left
        most = len(calls) if replayed else self.limit
        repeated = self._seen.intersection(calls.tolist())
        if repeated or not self._askable(calls).all():
            raise JournalError(f"{where} candidates that can be asked and were not yet, got others")
        if len(calls) != min(left, most):
            raise JournalError(
                f"{where} {min(left, most)} candidates of {left} unseen calls, got {len(calls)}"
            )
        if left > most:
            rng = generator(key, "candidates", draw.draw)
            if not np.array_equal(np.sort(self._picked(rng, stratum, left, most)), calls):
                raise JournalError(
                    f"{where} the candidates that the key picks of {left} unseen calls, got others"
                )
        self._seen.add(draw.call)

    def _picked(
        self, rng: np.random.Generator, stratum: int | None, left: int, most: int
    ) -> Indices:
        """Return ``most`` of the ``left`` unseen calls, of a stratum or of all."""
        variants, concepts = self._applicable.shape
        if self._whole:
            kept = np.arange(variants) if stratum is None else self.variants[stratum]
            numbers, size = len(self._rows) * len(kept), int(self.images[kept].sum())
        else:
            blocks = self._all_blocks if stratum is None else self.blocks[stratum]
            numbers = size = len(blocks)

        def unseen_at(ranks: Indices) -> Indices:
            if self._whole:
                sample, variant = np.divmod(ranks, len(kept))
                calls = sample * variants + kept[variant]
                calls = calls[self._askable(calls)]
            else:
                sample, variant, concept = blocks.nth(ranks).T
                calls = (sample * variants + variant) * concepts + concept
            return np.asarray(calls[~np.isin(calls, seen)])

        # few seen: draw until enough unseen ones are met; else list the unseen ones
        seen = np.array([*self._seen])
        if 2 * left >= size:
            chosen: dict[int, None] = {}  # an ordered set
            while len(chosen) < most:
                chosen |= dict.fromkeys(unseen_at(rng.integers(numbers, size=most)).tolist())
            return np.array([*chosen][:most])
        unseen = unseen_at(np.arange(numbers))
        return unseen[np.sort(rng.choice(len(unseen), most, replace=False))]

    def _askable(self, calls: Indices) -> Bools:
        """Return which calls (n,) ask a question with a known truth."""
        variants, concepts = self._applicable.shape
        image = calls if self._whole else calls // concepts
        asked = self._known[self._rows[image // variants]] & self._applicable[image % variants]
        if self._whole:
            return np.asarray(asked.any(axis=1))
        return np.asarray(asked[np.arange(len(calls)), calls % concepts])


@dataclass(frozen=True)
class Stake:
    """One draw's bet on one target, as sizes that its journaled figures must agree with.

    Attributes:
        weight: Factor of the candidates' sum in the pseudo-outcome.
        other_base: Term that the other strata add to both bases; 0 without strata.
        other_tilt: Term that the other strata add to the tilt; 0 without strata.
        count: The target's questions among all candidates.
        drawn: The target's questions in the call drawn.
        probability: Probability of the draw.
        questions: The target's unseen questions where the candidates were taken from.
        ratio: The target's unseen calls there, per candidate that touches the target.
        reach: Bounds of corrections downwards, upwards and of the tilt.
    """

    weight: float
    other_base: float
    other_tilt: float
    count: int
    drawn: int
    probability: float
    questions: float
    ratio: float
    reach: tuple[float, float, float]

    def check(self, figures: dict[str, float], where: str) -> None:
        """Raise JournalError where the bases or the tilt follow from no predictions in [0, 1].

        Predictions are shrunk where the draw would pass a bound. The bound of the next draw shows
        by how much, so the sum of the predictions follows from either end.
        """
        shrinkage = []  # by how much predictions of the low and the high end, and the tilt, shrank
        for name, bound in zip(("down", "up", "tilt"), self.reach, strict=True):
            next_bound = figures[f"next_{name}"]
            if next_bound < FADE * bound * (1 - AGREE):
                raise JournalError(
                    f"{where}: expected a bound that fades by {FADE} from {bound}, got {next_bound}"
                )
            # the draw's own correction, where it is what set the next bound
            correction = next_bound if next_bound > FADE * bound else 0.0
            shrinkage.append(min(1.0, bound / max(correction, TINY)))
        low, high, lean = shrinkage
        share = self.ratio * self.count / self.questions
        lean = min(lean, 1 / max(share, TINY))
        sums = [(figures[f"{end}_base"] - self.other_base) / self.weight for end in ("low", "high")]
        call = [figures[f"{end}_predicted"] for end in ("low", "high")]
        size = abs(self.other_base) / self.weight + self.count + 1
        checks: list[tuple[str, list[float], int]] = [
            ("predictions of its candidates", sums, self.count),
            ("predictions of its call", call, self.drawn),
        ]
        for name, (lower, upper), most in checks:
            from_low, from_high = lower / max(low, TINY), most - (most - upper) / max(high, TINY)
            slack = AGREE * size / max(min(low, high), TINY)
            if abs(from_low - from_high) > slack or not -slack <= from_low <= most + slack:
                raise JournalError(
                    f"{where}: expected {name} that sum to 0 to {most}, got {from_low:g} by the "
                    f"lower end and {from_high:g} by the upper"
                )
        called = self.drawn / self.probability
        tilt = self.other_tilt + lean * self.weight * (self.count - called)
        slack = AGREE * (abs(self.other_tilt) + self.weight * called + size)
        if abs(figures["tilt"] - tilt) > slack:
            raise JournalError(f"{where}: tilt should be {tilt:g}, got {figures['tilt']:g}")
