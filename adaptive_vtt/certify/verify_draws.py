"""Every draw anew: from the audit's key, the proposal, and what the journal says of the targets.

Code of its own, as in ``verify``: no space, no candidates, no engine. What is checked of draw t:

- the proposal sums to one and gives the call the probability that was journaled, of which the parts
  journaled with it are the sum;
- it is over all unseen calls, or over those that the key picks (``verify_candidates``);
- the call is what the key's random number picks from the proposal by inverse transform, and it was
  not drawn before;
- the questions that count for a target are those that its definition selects;
- ``active`` says whether a candidate touches the target, and scale * q = M / m;
- lo, hi, the bound of the tilt and the variance foreseen are what the past fixed;
- bases and tilt follow from some predictions in [0, 1];
- lo <= a+ and a- <= hi, with the losses that came back, and the tilt lies between minus its bound
  and the target's unseen questions.

Where a stratum was drawn first, as ``strata`` defines them, it is checked that

- its shares are a proposal over the strata, and the stratum is what the key's random number picks;
- every call of the proposal belongs to it;
- the figures of every target follow from the shares, the unseen calls, and the means journaled
  with the draws before.

Draws that a comparison took over from an earlier audit follow from that audit's key.

Of a large dataset the journal does not hold the truths; ``unchecked`` says so. Predictions are
taken as they were written, before the answer came.
"""

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import JournalError
from ..journal import FIGURES
from ..journal.rows import DrawRow, Link, MoveRow, PackedProposal, unpack_proposal
from ..types import Bools, Floats, Indices, JsonObject, Numbering
from ..utils.random_streams import generator
from .verify_candidates import Blocks, CandidateCheck, Stake

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts, Facts, SettingsFacts


Losses = Mapping[int, tuple[float, float]]

AGREE = 1e-7
"""Sums taken in another order differ by rounding; relative to their size, by no more than this."""
FIRST_REACH = 0.5
"""Bounds of the first draw, as a share of a target's questions."""
MAX_TABLE = 2**26
"""Membership of all calls is worked out once where that takes no more bytes than this."""
UNKNOWN = -1
PARTS: tuple[Literal["by_need", "curiosity", "even"], ...] = ("by_need", "curiosity", "even")
"""What a draw's probability is made of, as its reasons say."""


def unchecked(facts: "Facts") -> str | None:
    """What of the draws cannot be recomputed from a journal with these facts; None: nothing."""
    if facts.certificate is not None and not facts.population:
        return (
            "which questions count for which target, and which were candidates, cannot be "
            "recomputed: the dataset is too large for its truths to stand in the journal"
        )
    return None


def check_draws(
    facts: "Facts", draws: Iterable[DrawRow], answered: set[int], losses: Losses
) -> None:
    """Raises JournalError naming the first draw that is not what key, proposal and targets make it.

    ``draws``: with their proposals, in order; ``answered``: the calls with answers; ``losses``:
    question -> loss at least and at most.
    """
    targets: _Targets | None = None
    if facts.population and facts.certificate is not None:
        targets = _Targets(facts.population, facts.certificate, facts.settings)
    if facts.replay is not None and facts.replay.key == facts.key:
        raise JournalError("verify: the draws that came first have the key of those after them")
    drawn: set[int] = set()
    for draw in draws:
        proposal = unpack_proposal(draw.proposal)
        _check_proposal(draw, proposal)
        key = facts.key_of(draw.draw)
        _check_choice(key, draw, proposal, drawn)
        _check_parts(draw)
        drawn.add(draw.call)
        if targets is not None:
            replayed = key != facts.key
            known = losses if draw.call in answered else None
            targets.check(draw, proposal, key, known, replayed=replayed)


def check_known(links: Iterable[Link], draws: Sequence[DrawRow]) -> None:
    """Raises JournalError naming the first draw that knew answers which were not in the journal
    before it, or fewer than the draw before. ``links``: of the rows in the order of writing."""
    answered: set[int] = set()
    there = before = 0  # draws that are all answered; what the last draw knew
    for link in links:
        if link.kind == "call":
            answered.add(link.row)
        elif link.kind == "draw":
            while there < link.row and draws[there].call in answered:
                there += 1
            known = draws[link.row].learned
            if not before <= known <= there:
                raise JournalError(
                    f"verify: expected draw {link.row} to know {before} to {there} draws, which "
                    f"were all answered before it, got {known}"
                )
            before = known


def _check_proposal(draw: DrawRow, proposal: PackedProposal) -> None:
    if abs(float(proposal.probabilities.sum()) - 1) > AGREE or (proposal.probabilities < 0).any():
        raise JournalError(f"verify: the proposal of draw {draw.draw} does not sum to one")
    place = np.flatnonzero(proposal.calls == draw.call)
    if len(place) != 1 or abs(proposal.probabilities[place[0]] - draw.probability) > AGREE:
        raise JournalError(f"verify: draw {draw.draw} was not drawn from its proposal")


def _check_parts(draw: DrawRow) -> None:
    parts = [draw.why[name] for name in PARTS if name in draw.why]
    if parts and (min(parts) < 0 or abs(sum(parts) - draw.probability) > AGREE):
        raise JournalError(
            f"verify: draw {draw.draw}: expected parts of its probability {draw.probability:g}, "
            f"got {', '.join(f'{part:g}' for part in parts)}"
        )


def _check_choice(key: str, draw: DrawRow, proposal: PackedProposal, drawn: set[int]) -> None:
    ends = np.cumsum(proposal.probabilities)
    point = generator(key, "draw", draw.draw).random() * ends[-1]
    place = min(int((ends <= point).sum()), len(ends) - 1)
    if proposal.calls[place] != draw.call:
        raise JournalError(
            f"verify: draw {draw.draw} is call {draw.call}, but the key and the proposal come to "
            f"call "
            f"{proposal.calls[place]}"
        )
    if draw.call in drawn:
        raise JournalError(f"verify: draw {draw.draw} is a call that was drawn before")


def members_of(
    population: JsonObject, certificate: "CertificateFacts", calls: list[int]
) -> list[list[list[int]]]:
    """For every slice and each of ``calls``, the questions of the call that it selects."""
    targets = _Targets(population, certificate)
    selected: list[list[list[int]]] = [[] for _ in certificate.slices]
    for call in calls:
        questions = call * targets.per_call + np.arange(targets.per_call)
        inside = targets.inside(questions)[:, targets.registered :]
        for place, numbers in enumerate(selected):
            numbers.append(questions[inside[:, place]].tolist())
    return selected


class Membership:
    """Which questions, by number, belong to which of K targets, each given by its ``masks``."""

    def __init__(self, population: JsonObject, masks: Sequence[JsonObject]) -> None:
        self.truths, self.rows = _array(population["truths"]), _array(population["rows"])
        self.applicable = _array(population["applicable"])
        self.variants, self.concepts = self.applicable.shape
        self.numbering = Numbering(self.variants, self.concepts)
        self.masks = masks
        self.within = [self._within(masks) for masks in self.masks]
        self.wanted = [self._wanted(masks) for masks in self.masks]

    def size(self, k: int) -> int:
        """How many questions target ``k`` has."""
        per_concept = self._copies() @ self.wanted[k].astype(np.int64)
        return int(per_concept @ self.within[k].sum(axis=0))

    def inside(self, questions: Indices) -> Bools:
        """n x K: which targets each question belongs to."""
        sample, variant, concept = self.numbering.parts(questions)
        row, belongs = self.rows[sample], np.empty((len(questions), len(self.masks)), bool)
        for k, (wanted, within) in enumerate(zip(self.wanted, self.within, strict=True)):
            belongs[:, k] = wanted[row, concept] & within[variant, concept]
        return belongs

    def _wanted(self, masks: JsonObject) -> Bools:
        """Profile rows x concepts: truths and samples of the target."""
        sides, concepts = _array(masks["sides"]), _array(masks["concepts"])
        known = self.truths != UNKNOWN
        wanted = known & sides[np.where(known, self.truths, 0)] & concepts
        return wanted if masks["rows"] is None else wanted & _array(masks["rows"])[:, None]

    def _within(self, masks: JsonObject) -> Bools:
        """Variants x concepts: what applies, of the target's variants."""
        return np.asarray(self.applicable & _array(masks["variants"])[:, None])

    def _copies(self) -> Indices:
        return np.bincount(self.rows, minlength=len(self.truths))


class _Targets(Membership):
    """Membership, and what the past draws fix; arrays over targets are (K,)."""

    def __init__(
        self,
        population: JsonObject,
        certificate: "CertificateFacts",
        settings: "SettingsFacts | None" = None,
    ) -> None:
        masks = [*population["targets"], *(s.masks for s in certificate.slices)]
        super().__init__(population, masks)
        self.since = np.array(certificate.since)
        self.per_call = self.concepts if population["answers"] == "all" else 1
        self.sizes = np.array([self.size(k) for k in range(len(self.masks))], float)
        if self.sizes.tolist() != list(certificate.sizes):
            raise JournalError("verify: the targets' sizes are not what their definitions come to")
        self.calls = np.array([self._calls(k) for k in range(len(self.masks))], float)
        self.largest = np.array([self._largest(k) for k in range(len(self.masks))], float)
        self.unseen = self.sizes.copy()
        self.reach = np.full((3, len(self.masks)), FIRST_REACH)  # down, up, tilt
        self.registered = len(population["targets"])
        self.foreseen = self._foreseen_first()
        self.least = np.zeros(len(self.masks))
        self.total = len(self.rows) * self.variants * self.concepts // self.per_call
        small = 2 * self.total * len(self.masks) <= MAX_TABLE
        self._table = self._counts(np.arange(self.total)) if small else None
        self.strata: StrataCheck | None = None
        self.candidates: CandidateCheck | None = None
        if settings is not None:
            if settings.exploration <= 0:
                raise JournalError(
                    "verify: expected an exploration above 0, with which every candidate may be "
                    f"drawn, got {settings.exploration:g}"
                )
            arrays = self.truths, self.rows, self.applicable
            whole = population["answers"] == "all"
            self.candidates = CandidateCheck(*arrays, whole, settings.candidates)
            if not certificate.set_aside:
                if whole:
                    self.strata = self._call_strata(self.candidates, certificate.strata)
                else:
                    self.strata = self._question_strata(self.candidates)

    def check(
        self,
        draw: DrawRow,
        proposal: PackedProposal,
        key: str,
        losses: Losses | None,
        *,
        replayed: bool,
    ) -> None:
        """One draw, and, where its call was answered, what came back."""
        table = self._candidates(draw.draw, proposal.calls)
        questions = draw.call * self.per_call + np.arange(self.per_call)
        inside = self.inside(questions)
        touching = np.asarray((table > 0).sum(axis=0, dtype=np.int64))
        counts, mine = table.sum(axis=0, dtype=np.int64), inside.sum(axis=0)
        if len(draw.moves) != (self.since <= draw.draw).sum():
            raise JournalError(f"verify: draw {draw.draw} has not one move for every target")
        place, left = self._place(draw, key, proposal.calls, table > 0)
        if self.candidates is not None:
            self.candidates.check(draw, proposal, key, place, left, replayed)
        for k, move in enumerate(draw.moves):
            where = f"verify: draw {draw.draw}, target {k}"
            if list(move.members) != questions[inside[:, k]].tolist():
                raise JournalError(f"{where}: its questions are not those that the target selects")
            expected, room, calls = self._fixed(draw, place, k)
            some = touching[k] > 0 or place is not None  # else a stratum makes up for it
            if move.active != (some and expected is not None):
                raise JournalError(
                    f"{where}: {touching[k]} candidates touch it, against what it says"
                )
            self._check_figures(k, move, int(touching[k]), draw.probability, expected, where)
            if losses is not None and move.active:
                _check_bounds(move, losses, where)
            if move.active and expected is not None:
                figures = dict(zip(FIGURES, move.figures, strict=True))
                Stake(
                    weight=figures["scale"] * draw.probability,
                    rest=expected.get("rest", 0.0),
                    away=expected.get("away", 0.0),
                    count=int(counts[k]),
                    mine=int(mine[k]),
                    probability=draw.probability,
                    room=max(room, 1),
                    ratio=calls / max(touching[k], 1),
                    reach=tuple(self.reach[:, k]),
                ).check(figures, where)
        self._advance(draw, mine)

    def _candidates(self, number: int, calls: Indices) -> Indices:
        """m x K: how many questions of each target the candidates of a draw answer."""
        if (np.diff(calls, prepend=-1, append=self.total) <= 0).any():
            raise JournalError(
                f"verify: draw {number}: expected candidates in ascending order, from 0 to "
                f"{self.total - 1}, got others"
            )
        return self._counts(calls) if self._table is None else self._table[calls]

    def _place(
        self, draw: DrawRow, key: str, calls: Indices, inside: Bools
    ) -> tuple[int | None, int | None]:
        """The stratum that the draw chose first and the calls left there; None where it chose from
        all calls. ``inside`` m x K: which targets the ``calls`` of the proposal (m,) touch."""
        if "stratum" not in draw.why:
            return None, None
        if self.strata is None:
            raise JournalError(f"verify: draw {draw.draw} is of a stratum, but there are none")
        place = self.strata.place(draw, key)
        if not self.strata.holds(place, calls, inside).all():
            raise JournalError(f"verify: the proposal of draw {draw.draw} leaves its stratum")
        return place, int(self.strata.left[place])

    def _fixed(
        self, draw: DrawRow, place: int | None, k: int
    ) -> tuple[dict[str, float] | None, float, float]:
        """What the past fixes of target ``k``: figures, ``scale`` times m and the probability, None
        where the draw is of a stratum that does not move it; the questions that the candidates
        stand for, and the calls."""
        if place is not None and self.strata is not None:
            strata = self.strata
            expected = strata.expected(draw, place, k, self.reach[:, k])
            calls = strata.calls[k, place] / strata.chance[k, place]
            return expected, strata.questions[k, place], calls
        room = max(self.unseen[k], 1)
        down, up, tilt = self.reach[:, k]
        figures = {
            "scale": self.calls[k],
            "lo": -down * room,
            "hi": self.calls[k] * self.largest[k] + up * room,
            "tilt_bound": tilt * room,
        }
        return figures, room, self.calls[k]

    def _check_figures(
        self,
        k: int,
        move: MoveRow,
        touching: int,
        probability: float,
        expected: dict[str, float] | None,
        where: str,
    ) -> None:
        """What is fixed by the draws before and the number of candidates that touch the target;
        ``expected`` is None where the draw is of a stratum that does not move it."""
        figures = dict(zip(FIGURES, move.figures, strict=True))
        if not _close(figures["foreseen"], self.foreseen[k]):
            raise JournalError(f"{where}: foreseen should be {self.foreseen[k]:g}")
        if expected is None:
            return
        expected["scale"] /= max(touching, 1) * probability
        for name, value in expected.items():
            if name in figures and not _close(figures[name], value):
                raise JournalError(f"{where}: {name} should be {value:g}, got {figures[name]:g}")
        least, most = -figures["tilt_bound"], max(self.unseen[k], 1)
        slack = AGREE * max(-least, most)
        if not least - slack <= figures["tilt"] <= most + slack:
            raise JournalError(f"{where}: its tilt passes the bounds")

    def _advance(self, draw: DrawRow, count: Indices) -> None:
        figures = dict(zip(FIGURES, np.array([m.figures for m in draw.moves]).T, strict=True))
        self.unseen = self.unseen - count
        self.calls = self.calls - (count > 0)
        awake = len(draw.moves)  # slices that are discovered later stand behind
        self.reach = np.full_like(self.reach, FIRST_REACH)
        self.reach[:, :awake] = [figures[f"next_{name}"] for name in ("down", "up", "tilt")]
        self.foreseen = self._foreseen_first()
        self.foreseen[:awake] = figures["next_foreseen"]
        if self.strata is not None:
            self.strata.advance(draw, count)

    def _foreseen_first(self) -> Floats:
        """What a target's first bets foresee: fair coins, drawn uniformly from all calls left."""
        most = self.calls[: self.registered].max(initial=1.0)
        return np.asarray(0.25 * self.unseen * most)

    # -- what targets select -----------------------------------------------------------

    def _question_strata(self, candidates: CandidateCheck) -> "StrataCheck | None":
        """Strata of calls that answer one question: the cells of variant, concept and truth that
        the same targets select."""
        if any(masks["rows"] is not None for masks in self.masks):
            return None
        copies = self._copies()
        parts = [[_array(masks[name]) for masks in self.masks] for name in ("sides", "concepts")]
        cells: dict[Signature, list[tuple[int, int, int]]] = {}
        for block in np.ndindex(self.variants, self.concepts, 2):
            variant, concept, side = block
            signature = tuple(
                bool(s[side] and c[concept] and within[variant, concept])
                for s, c, within in zip(*parts, self.within, strict=True)
            )
            if any(signature) and copies @ (self.truths[:, concept] == side):
                cells.setdefault(signature, []).append((variant, concept, side))
        if not cells:
            return None
        signatures = sorted(cells)
        candidates.blocks = [Blocks(self.truths, self.rows, cells[s]) for s in signatures]
        left = np.array([len(blocks) for blocks in candidates.blocks], float)
        inside = np.array(signatures).T
        ones, limit = np.ones(inside.shape), candidates.limit
        return StrataCheck(inside, left, inside * left, inside * left, ones, limit)

    def _call_strata(
        self, candidates: CandidateCheck, given: Sequence[int]
    ) -> "StrataCheck | None":
        """Strata of calls that answer all questions about an image: ``given`` by variant, else the
        variants that the same targets select."""
        masks = np.array([_array(masks["variants"]) for masks in self.masks])
        copies = self._copies()
        columns = [tuple(column) for column in masks.T.tolist()]
        signatures = sorted({column for column in columns if any(column)})
        if not signatures:
            return None
        by_variant = np.array([signatures.index(s) if any(s) else -1 for s in columns])
        if given:
            by_variant, used = np.array(given), {*given} - {-1}
            if len(given) != self.variants or not used or used != {*range(max(given) + 1)}:
                raise JournalError(
                    f"verify: expected strata of {self.variants} variants, got {given}"
                )
        count = int(by_variant.max()) + 1
        inside = np.stack([masks[:, by_variant == c].any(axis=1) for c in range(count)], axis=1)
        figures = np.zeros((3, *inside.shape))  # questions, calls, the most of a call
        for k, (wanted, within) in enumerate(zip(self.wanted, self.within, strict=True)):
            for applies, c in zip(within, by_variant, strict=True):
                asked = (wanted & applies).sum(axis=1)
                if c >= 0 and asked.any():
                    figures[:2, k, c] += copies @ asked, copies @ (asked > 0)
                    figures[2, k, c] = max(figures[2, k, c], asked.max())
        candidates.variants = [np.flatnonzero(by_variant == c) for c in range(count)]
        left = np.array([candidates.images[own].sum() for own in candidates.variants], float)
        questions, calls, largest = figures
        limit = candidates.limit
        return StrataCheck(inside, left, questions, calls, largest, limit, by_variant)

    def _calls(self, k: int) -> int:
        """How many calls bring an answer to a question of the target."""
        if self.per_call == 1:
            return self.size(k)
        copies = self._copies()
        return sum(
            int(copies[(self.wanted[k] & applies).any(axis=1)].sum()) for applies in self.within[k]
        )

    def _largest(self, k: int) -> int:
        """The most questions of the target that one call answers."""
        if self.per_call == 1:
            return 1
        return max(int((self.wanted[k] & a).sum(axis=1).max()) for a in self.within[k])

    def _counts(self, calls: Indices) -> Indices:
        """n x K: how many questions of each target a call answers."""
        questions = calls[:, None] * self.per_call + np.arange(self.per_call)
        inside = self.inside(questions.ravel())
        return inside.reshape(len(calls), self.per_call, -1).sum(axis=1, dtype=np.uint16)


def _check_bounds(move: MoveRow, losses: Losses, where: str) -> None:
    """lo <= N a+ - S and N a- - S <= hi."""
    figures = dict(zip(FIGURES, move.figures, strict=True))
    least = sum(losses[q][0] for q in move.members)
    most = sum(losses[q][1] for q in move.members)
    low = figures["low_base"] + figures["scale"] * (least - figures["low_predicted"])
    high = figures["high_base"] + figures["scale"] * (most - figures["high_predicted"])
    slack = AGREE * max(abs(figures["lo"]), abs(figures["hi"]), 1.0)
    if low < figures["lo"] - slack or high > figures["hi"] + slack:
        raise JournalError(f"{where}: its pseudo-outcome passes the bounds that its bets went by")


def _array(packed: JsonObject) -> npt.NDArray[Any]:
    """An array as ``targets.pack`` wrote it; raises JournalError where it is damaged."""
    try:
        body = zlib.decompress(base64.b64decode(packed["bytes"]))
        return np.frombuffer(body, packed["kind"]).reshape(packed["shape"])
    except (ValueError, KeyError, TypeError, zlib.error):
        raise JournalError("verify: the targets' definitions in the journal are damaged") from None


def _close(stated: float, expected: float) -> bool:
    return abs(stated - expected) <= AGREE * max(abs(expected), 1.0)


# -- strata ---------------------------------------------------------------------------------------

ROUNDED = 1e-6
"""Shares are journaled, and used, rounded to 9 decimals; their sum may be off by this."""
FIRST_MEAN = 0.5
NEVER = 40
"""Touching candidates on average from which on it is certain, up to rounding, that there is one."""
Signature = tuple[bool, ...]


class StrataCheck:
    """What the past fixes of the C strata of K targets.

    ``inside`` (K x C): which targets select which strata; ``left`` (C,): calls not drawn;
    ``questions`` and ``calls`` (K x C): a target's questions among those, and the calls that
    answer any; ``largest`` (K x C): the most that one answers; ``limit``: the most candidates, in
    calls, of a draw; ``by_variant`` (V,): the stratum of each variant, where a call answers all
    questions about an image.
    """

    def __init__(
        self,
        inside: Bools,
        left: Floats,
        questions: Floats,
        calls: Floats,
        largest: Floats,
        limit: int,
        by_variant: Indices | None = None,
    ) -> None:
        self.inside, self.left, self.by_variant = inside, left, by_variant
        self.questions, self.calls, self.largest = questions, calls, largest
        self.limit = limit
        self.chance = np.stack([self._touched(c) for c in range(len(left))], axis=1)
        self.means: dict[int, Floats] = {}

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

    def _touched(self, place: int) -> Floats:
        """(K,): the chance that some candidate of a draw from the stratum touches each target."""
        left, calls = int(self.left[place]), self.calls[:, place]
        most = min(left, self.limit)
        chance = np.ones(len(calls))
        for k in np.flatnonzero((calls > 0) & (calls <= left - most)).tolist():
            if calls[k] * most < NEVER * left:
                others = left - calls[k] - np.arange(most)
                chance[k] -= float(np.exp(np.log(others / (left - np.arange(most))).sum()))
        return chance

    def holds(self, place: int, calls: Indices, inside: Bools) -> Bools:
        """Return whether a stratum holds each of ``calls`` (m,), which touch the targets ``inside``
        (m x K)."""
        if self.by_variant is None:
            return np.asarray((inside == self.inside[:, place]).all(axis=1))
        return np.asarray(self.by_variant[calls % len(self.by_variant)] == place)

    def expected(self, draw: DrawRow, place: int, k: int, reach: Floats) -> dict[str, float] | None:
        """Figures of target ``k``, ``scale`` still to be divided by m and the probability; None
        where the target does not move. ``reach``: bounds down, up and of the tilt."""
        mine = np.flatnonzero(self.questions[k] > 0).tolist()
        shares, n = self._shares(draw)[mine], self.questions[k, mine]
        if place not in mine or not (shares > 0).all():
            return None
        known = [mean[k] for mean in self.means.values()]
        other = sum(known) / len(known) if known else FIRST_MEAN
        guess = n * np.array([self.means[c][k] if c in self.means else other for c in mine])
        calls = self.calls[k] / self.chance[k]
        most = calls[mine] * self.largest[k, mine]
        rho = shares / shares.sum()
        down, up, tilt = reach
        return {
            "scale": calls[place] / rho[mine.index(place)],
            "lo": float(guess.sum() - ((down * n + guess) / rho).max()),
            "hi": float(guess.sum() + ((most + up * n - guess) / rho).max()),
            "tilt_bound": float(((1 + tilt) * n / rho).max() - n.sum()),
            "rest": float(guess.sum() - (guess / rho)[mine.index(place)]),
            "away": float(n.sum() - (n / rho)[mine.index(place)]),
        }

    def advance(self, draw: DrawRow, count: Indices) -> None:
        """Count the draw, of a call that answers ``count`` (K,) questions of each target."""
        call, inside = np.array([draw.call]), count[None] > 0
        for place in range(len(self.left)):
            if self.holds(place, call, inside)[0]:
                self.left[place] -= 1
                self.questions[:, place] -= count
                self.calls[:, place] -= count > 0
                self.chance[:, place] = self._touched(place)
        if "stratum" in draw.why:
            mean = np.asarray(draw.why.get("stratum_mean", np.nan), float)
            if mean.shape not in ((), count.shape):
                raise JournalError(f"verify: draw {draw.draw} has not one mean for every target")
            self.means[draw.why["stratum"]] = np.broadcast_to(mean, count.shape)

    def _shares(self, draw: DrawRow) -> Floats:
        shares = np.array(draw.why.get("shares", []), float)
        right = shares.shape == self.left.shape and (shares >= 0).all()
        if not right or abs(float(shares.sum()) - 1) > ROUNDED:
            raise JournalError(
                f"verify: the shares of draw {draw.draw} are no proposal over its strata"
            )
        return shares
