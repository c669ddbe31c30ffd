"""Recompute every draw from the audit's key, its proposal and the targets in the journal.

Like ``verify``, this module shares no code with the engine, the space or its candidates. A call
touches a target if it asks a question of it. Of every draw, the module checks that

- the proposal sums to 1 and gives the call its journaled probability, which is the sum of the
  journaled parts;
- the proposal covers all unseen calls, or those that the key picks (``verify_candidates``);
- the call was not drawn before, and the key's random number picks it from the proposal by inverse
  transform;
- each target's definition selects the questions that count for it;
- ``active`` is true exactly if a candidate touches the target, and scale * q = M / m, where q is
  the call's probability, and M unseen calls and m candidates touch the target;
- lo, hi, the bound of the tilt and the expected variance follow from earlier draws;
- bases and tilt follow from some predictions in [0, 1];
- lo <= a+ and a- <= hi with the losses that came back, and the tilt is between minus its bound and
  the target's unseen questions.

If the draw chose a stratum first (``strata``), the module also checks that

- the shares are a proposal over the strata, and the key's random number picks the stratum;
- every call of the proposal belongs to the stratum;
- every target's figures follow from the shares, the unseen calls, and the means journaled with
  earlier draws.

Draws that a comparison took from an earlier audit follow from that audit's key.

The journal of a large dataset holds no truths, and ``unchecked`` states what cannot be checked
then. Predictions are not recomputed, as each was journaled before its answer came.
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
"""Question -> the least and the largest loss that its answer allows."""

AGREE = 1e-7
"""Largest relative difference between two sums that were taken in another order."""
FIRST_REACH = 0.5
"""Bound of the first draw's corrections, as a share of a target's questions."""
MAX_TABLE = 2**26
"""Maximum size in bytes of a table of all calls by all targets, which is computed once and kept."""
UNKNOWN = -1
"""Journaled truth of a concept whose label is missing."""
PARTS: tuple[Literal["by_need", "curiosity", "even"], ...] = ("by_need", "curiosity", "even")
"""Names of the parts of a draw's probability, in its reasons."""


def unchecked(facts: "Facts") -> str | None:
    """Return a sentence on what cannot be recomputed of an audit's draws, None if all can be."""
    if facts.certificate is not None and not facts.population:
        return (
            "which questions count for which target, and which were candidates, cannot be "
            "recomputed: the dataset is too large for the journal to hold its truths"
        )
    return None


def check_draws(
    facts: "Facts", draws: Iterable[DrawRow], answered: set[int], losses: Losses
) -> None:
    """Check each draw against the audit's key, its proposal and the targets.

    Args:
        facts: The journal's facts.
        draws: All draws with their proposals, in order.
        answered: Numbers of the calls with answers.
        losses: Question -> the least and the largest loss that its answer allows, in [0, 1].

    Raises:
        JournalError: A draw does not follow from them. The message names the first one.
    """
    targets: _Targets | None = None
    if facts.population and facts.certificate is not None:
        targets = _Targets(facts.population, facts.certificate, facts.settings)
    if facts.replay is not None and facts.replay.key == facts.key:
        raise JournalError("verify: the draws that came first have the key of those after them")
    drawn: set[int] = set()
    for draw in draws:
        proposal, key = unpack_proposal(draw.proposal), facts.key_of(draw.draw)
        _check_choice(key, draw, proposal, drawn)
        drawn.add(draw.call)
        if targets is not None:
            replayed = key != facts.key
            known = losses if draw.call in answered else None
            targets.check(draw, proposal, key, known, replayed=replayed)


def check_known(links: Iterable[Link], draws: Sequence[DrawRow]) -> None:
    """Check the number of draws that each draw had learned from.

    A draw learns from the draws up to the first without an answer in the journal by then, and from
    at least as many as the draw before it.

    Args:
        links: Links of all rows in the order of writing.
        draws: All draws in order.

    Raises:
        JournalError: A draw states another number. The message names the first one.
    """
    calls: set[int] = set()
    answered = before = 0  # draws up to the first without an answer; those known to the last draw
    for link in links:
        if link.kind == "call":
            calls.add(link.row)
        elif link.kind == "draw":
            while answered < link.row and draws[answered].call in calls:
                answered += 1
            known = draws[link.row].learned
            if not before <= known <= answered:
                raise JournalError(
                    f"verify: expected draw {link.row} to know {before} to {answered} draws, which "
                    f"were all answered before it, got {known}"
                )
            before = known


def _check_choice(key: str, draw: DrawRow, proposal: PackedProposal, drawn: set[int]) -> None:
    """Check a draw's probability and its parts, and that the key picks its call, a new one."""
    probabilities = proposal.probabilities
    if abs(float(probabilities.sum()) - 1) > AGREE or (probabilities < 0).any():
        raise JournalError(f"verify: the proposal of draw {draw.draw} does not sum to one")
    place = np.flatnonzero(proposal.calls == draw.call)
    if len(place) != 1 or abs(probabilities[place[0]] - draw.probability) > AGREE:
        raise JournalError(f"verify: draw {draw.draw} was not drawn from its proposal")
    picked = proposal.calls[_picked(key, "draw", draw.draw, probabilities)]
    if picked != draw.call:
        raise JournalError(
            f"verify: draw {draw.draw} is call {draw.call}, but the key and the proposal come to "
            f"call {picked}"
        )
    if draw.call in drawn:
        raise JournalError(f"verify: draw {draw.draw} is a call that was drawn before")
    parts = [draw.why[name] for name in PARTS if name in draw.why]
    if parts and (min(parts) < 0 or abs(sum(parts) - draw.probability) > AGREE):
        raise JournalError(
            f"verify: draw {draw.draw}: expected parts of its probability {draw.probability:g}, "
            f"got {', '.join(f'{part:g}' for part in parts)}"
        )


def _picked(key: str, purpose: str, number: int, probabilities: Floats) -> int:
    """Return the place that the key's random number picks by inverse transform."""
    ends = np.cumsum(probabilities)
    point = generator(key, purpose, number).random() * ends[-1]
    return min(int((ends <= point).sum()), len(ends) - 1)


def members_of(
    population: JsonObject, certificate: "CertificateFacts", calls: list[int]
) -> list[list[list[int]]]:
    """Return, for each slice and each of ``calls``, the questions that the slice selects."""
    targets = _Targets(population, certificate)
    selected: list[list[list[int]]] = [[] for _ in certificate.slices]
    for call in calls:
        questions = call * targets.per_call + np.arange(targets.per_call)
        inside = targets.inside(questions)[:, targets.registered :]
        for place, by_call in enumerate(selected):
            by_call.append(questions[inside[:, place]].tolist())
    return selected


class Membership:
    """Map from questions, by number, to the K targets that hold them.

    Args:
        population: The journal's population: truths by profile row, the row of every sample, and
            which variants apply to which concepts.
        masks: The journaled masks of each of the K targets.
    """

    def __init__(self, population: JsonObject, masks: Sequence[JsonObject]) -> None:
        self.truths, self.rows = _array(population["truths"]), _array(population["rows"])
        self.applicable = _array(population["applicable"])
        self.variants, self.concepts = self.applicable.shape
        self.numbering = Numbering(self.variants, self.concepts)
        self.masks = masks
        self.copies: Indices = np.bincount(self.rows, minlength=len(self.truths))
        """Samples of each profile row."""
        self.within: list[Bools] = []
        """By target, variants x concepts: which of its variants apply to which concepts."""
        self.wanted: list[Bools] = []
        """By target, profile rows x concepts: which samples and truths it is about."""
        known = self.truths != UNKNOWN
        for mask in masks:
            names = ("sides", "concepts", "variants")
            sides, concepts, variants = (_array(mask[name]) for name in names)
            self.within.append(self.applicable & variants[:, None])
            wanted = known & sides[np.where(known, self.truths, 0)] & concepts
            rows = mask["rows"]
            self.wanted.append(wanted if rows is None else wanted & _array(rows)[:, None])

    def size(self, k: int) -> int:
        """Return the number of questions of target ``k``."""
        per_concept = self.copies @ self.wanted[k].astype(np.int64)
        return int(per_concept @ self.within[k].sum(axis=0))

    def inside(self, questions: Indices) -> Bools:
        """Return which targets hold which questions, n x K."""
        sample, variant, concept = self.numbering.parts(questions)
        row, belongs = self.rows[sample], np.empty((len(questions), len(self.masks)), bool)
        for k, (wanted, within) in enumerate(zip(self.wanted, self.within, strict=True)):
            belongs[:, k] = wanted[row, concept] & within[variant, concept]
        return belongs


class _Targets(Membership):
    """The K targets of an audit, with the figures that past draws fix.

    ``check`` checks a draw against these figures, and brings them up to date.
    """

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
        counts = [self._count_calls(k) for k in range(len(self.masks))]
        # per target, the unseen calls that touch it, and the most questions that one of them asks
        self.calls, self.largest = np.array(counts, float).reshape(-1, 2).T
        self.unseen = self.sizes.copy()
        self.reach = np.full((3, len(self.masks)), FIRST_REACH)  # bounds down, up and of the tilt
        self.registered = len(population["targets"])
        self.foreseen = self._first_variance()
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
        """Check one draw and count it as drawn.

        Args:
            draw: The draw.
            proposal: Its proposal over all its candidates.
            key: The key that it follows from.
            losses: Losses of its questions, None if its call has no answer yet.
            replayed: Whether it is taken from an earlier audit, whose number of candidates is not
                known.
        """
        # candidates x targets, and per target: candidates that touch it, their questions, its own
        table = self._candidates(draw.draw, proposal.calls)
        questions = draw.call * self.per_call + np.arange(self.per_call)
        inside = self.inside(questions)
        touching = np.asarray((table > 0).sum(axis=0, dtype=np.int64))
        counts, drawn = table.sum(axis=0, dtype=np.int64), inside.sum(axis=0)
        if len(draw.moves) != (self.since <= draw.draw).sum():
            raise JournalError(f"verify: draw {draw.draw}: expected one move per target")
        stratum, left = self._stratum(draw, key, proposal.calls, table > 0)
        if self.candidates is not None:
            self.candidates.check(draw, proposal, key, stratum, left, replayed)
        for k, move in enumerate(draw.moves):
            where = f"verify: draw {draw.draw}, target {k}"
            if list(move.members) != questions[inside[:, k]].tolist():
                raise JournalError(f"{where}: its questions are not those that the target selects")
            expected, questions_left, calls = self._fixed(draw, stratum, k)
            # in a stratum, a target moves even if no candidate touches it (``chance``)
            may_move = touching[k] > 0 or stratum is not None
            if move.active != (may_move and expected is not None):
                raise JournalError(f"{where}: expected active={not move.active}, got {move.active}")
            self._check_figures(k, move, int(touching[k]), draw.probability, expected, where)
            if losses is not None and move.active:
                _check_bounds(move, losses, where)
            if move.active and expected is not None:
                figures = dict(zip(FIGURES, move.figures, strict=True))
                Stake(
                    weight=figures["scale"] * draw.probability,
                    other_base=expected.get("other_base", 0.0),
                    other_tilt=expected.get("other_tilt", 0.0),
                    count=int(counts[k]),
                    drawn=int(drawn[k]),
                    probability=draw.probability,
                    questions=max(questions_left, 1),
                    ratio=calls / max(touching[k], 1),
                    reach=tuple(self.reach[:, k]),
                ).check(figures, where)
        self._advance(draw, drawn)

    def _candidates(self, number: int, calls: Indices) -> Indices:
        """Return the numbers of questions that m candidates ask of each target, m x K."""
        if (np.diff(calls, prepend=-1, append=self.total) <= 0).any():
            raise JournalError(
                f"verify: draw {number}: expected candidates in ascending order, from 0 to "
                f"{self.total - 1}, got others"
            )
        return self._counts(calls) if self._table is None else self._table[calls]

    def _stratum(
        self, draw: DrawRow, key: str, calls: Indices, inside: Bools
    ) -> tuple[int | None, int | None]:
        """Return the draw's stratum and the calls left in it, None if it is from all calls.

        Args:
            draw: The draw.
            key: The key that it follows from.
            calls: The calls of its proposal, (m,).
            inside: Which targets they touch, (m, K).
        """
        if "stratum" not in draw.why:
            return None, None
        if self.strata is None:
            raise JournalError(f"verify: draw {draw.draw} is of a stratum, but there are none")
        stratum = self.strata.drawn(draw, key)
        if not self.strata.holds(stratum, calls, inside).all():
            raise JournalError(f"verify: the proposal of draw {draw.draw} leaves its stratum")
        return stratum, int(self.strata.left[stratum])

    def _fixed(
        self, draw: DrawRow, stratum: int | None, k: int
    ) -> tuple[dict[str, float] | None, float, float]:
        """Return the figures of target ``k`` that earlier draws fix, its questions and its calls.

        The figures are None if the draw's stratum does not move the target. ``scale`` still has to
        be divided by m and the probability. Questions and calls are the unseen ones among which the
        draw's candidates are.
        """
        if stratum is not None and self.strata is not None:
            strata = self.strata
            expected = strata.expected(draw, stratum, k, self.reach[:, k])
            calls = strata.calls[k, stratum] / strata.chance[k, stratum]
            return expected, strata.questions[k, stratum], calls
        unseen = max(self.unseen[k], 1)
        down, up, tilt = self.reach[:, k]
        figures = {
            "scale": self.calls[k],
            "lo": -down * unseen,
            "hi": self.calls[k] * self.largest[k] + up * unseen,
            "tilt_bound": tilt * unseen,
        }
        return figures, unseen, self.calls[k]

    def _check_figures(
        self,
        k: int,
        move: MoveRow,
        touching: int,
        probability: float,
        expected: dict[str, float] | None,
        where: str,
    ) -> None:
        """Check the figures that follow from earlier draws and from the candidates.

        Args:
            k: The target.
            move: The draw's figures of it.
            touching: Number of candidates that touch it.
            probability: The draw's probability.
            expected: Its figures by ``_fixed``, which get their final ``scale``.
            where: Beginning of an error's message.
        """
        figures = dict(zip(FIGURES, move.figures, strict=True))
        if expected is not None:
            expected["scale"] /= max(touching, 1) * probability
        for name, value in {"foreseen": self.foreseen[k], **(expected or {})}.items():
            stated = figures.get(name, value)
            if abs(stated - value) > AGREE * max(abs(value), 1.0):
                raise JournalError(f"{where}: {name} should be {value:g}, got {stated:g}")
        if expected is None:
            return
        least, most = -figures["tilt_bound"], max(self.unseen[k], 1)
        slack = AGREE * max(-least, most)
        if not least - slack <= figures["tilt"] <= most + slack:
            raise JournalError(f"{where}: its tilt passes the bounds")

    def _advance(self, draw: DrawRow, count: Indices) -> None:
        """Count a draw of ``count`` (K,) questions, and take over the bounds that it fixes."""
        figures = dict(zip(FIGURES, np.array([m.figures for m in draw.moves]).T, strict=True))
        self.unseen = self.unseen - count
        self.calls = self.calls - (count > 0)
        started = len(draw.moves)  # slices that were discovered later come last
        self.reach = np.full_like(self.reach, FIRST_REACH)
        self.reach[:, :started] = [figures[f"next_{name}"] for name in ("down", "up", "tilt")]
        self.foreseen = self._first_variance()
        self.foreseen[:started] = figures["next_foreseen"]
        if self.strata is not None:
            self.strata.advance(draw, count)

    def _first_variance(self) -> Floats:
        """Return the variance that first bets expect, that of fair coins and uniform draws."""
        most = self.calls[: self.registered].max(initial=1.0)
        return np.asarray(0.25 * self.unseen * most)

    # -- questions and calls of the targets --------------------------------------------

    def _question_strata(self, candidates: CandidateCheck) -> "StrataCheck | None":
        """Return the strata of calls that ask one question each, None if there are none.

        A stratum has all cells of variant, concept and truth that the same targets select.
        """
        if any(masks["rows"] is not None for masks in self.masks):
            return None
        parts = [[_array(masks[name]) for masks in self.masks] for name in ("sides", "concepts")]
        cells: dict[Signature, list[tuple[int, int, int]]] = {}
        for block in np.ndindex(self.variants, self.concepts, 2):
            variant, concept, side = block
            signature = tuple(
                bool(s[side] and c[concept] and within[variant, concept])
                for s, c, within in zip(*parts, self.within, strict=True)
            )
            if any(signature) and self.copies @ (self.truths[:, concept] == side):
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
        self, candidates: CandidateCheck, stated: Sequence[int]
    ) -> "StrataCheck | None":
        """Return the strata of calls that ask all questions about an image, None if there are none.

        Args:
            candidates: The check of candidates, which is set to these strata.
            stated: The stratum of each variant, (V,), by the certificate. If it is empty, a stratum
                has all variants that the same targets select.
        """
        masks = np.array([_array(masks["variants"]) for masks in self.masks])
        columns = [tuple(column) for column in masks.T.tolist()]
        signatures = sorted({column for column in columns if any(column)})
        if not signatures:
            return None
        by_variant = np.array([signatures.index(s) if any(s) else -1 for s in columns])
        if stated:
            by_variant, used = np.array(stated), {*stated} - {-1}
            if len(stated) != self.variants or not used or used != {*range(max(stated) + 1)}:
                raise JournalError(
                    f"verify: expected strata of {self.variants} variants, got {stated}"
                )
        count = int(by_variant.max()) + 1
        inside = np.stack([masks[:, by_variant == c].any(axis=1) for c in range(count)], axis=1)
        figures = np.zeros((3, *inside.shape))  # questions, calls, most questions of a call
        for k, (wanted, within) in enumerate(zip(self.wanted, self.within, strict=True)):
            for applies, c in zip(within, by_variant, strict=True):
                asked = (wanted & applies).sum(axis=1)
                if c >= 0 and asked.any():
                    figures[:2, k, c] += self.copies @ asked, self.copies @ (asked > 0)
                    figures[2, k, c] = max(figures[2, k, c], asked.max())
        candidates.variants = [np.flatnonzero(by_variant == c) for c in range(count)]
        left = np.array([candidates.images[own].sum() for own in candidates.variants], float)
        questions, calls, largest = figures
        limit = candidates.limit
        return StrataCheck(inside, left, questions, calls, largest, limit, by_variant)

    def _count_calls(self, k: int) -> tuple[int, int]:
        """Return the calls that touch target ``k``, and the most questions that one asks."""
        if self.per_call == 1:
            return self.size(k), 1
        calls = largest = 0
        for applies in self.within[k]:
            asked = (self.wanted[k] & applies).sum(axis=1)
            calls += int(self.copies @ (asked > 0))
            largest = max(largest, int(asked.max()))
        return calls, largest

    def _counts(self, calls: Indices) -> Indices:
        """Return the numbers of questions that n calls ask of each target, n x K."""
        questions = calls[:, None] * self.per_call + np.arange(self.per_call)
        inside = self.inside(questions.ravel())
        return inside.reshape(len(calls), self.per_call, -1).sum(axis=1, dtype=np.uint16)


def _check_bounds(move: MoveRow, losses: Losses, where: str) -> None:
    """Check that lo <= N a+ - S and N a- - S <= hi, for the pseudo-outcomes a+ and a-.

    N is the target's number of questions, and S the sum of the losses of earlier draws.
    """
    figures = dict(zip(FIGURES, move.figures, strict=True))
    least = sum(losses[q][0] for q in move.members)
    most = sum(losses[q][1] for q in move.members)
    low = figures["low_base"] + figures["scale"] * (least - figures["low_predicted"])
    high = figures["high_base"] + figures["scale"] * (most - figures["high_predicted"])
    slack = AGREE * max(abs(figures["lo"]), abs(figures["hi"]), 1.0)
    if low < figures["lo"] - slack or high > figures["hi"] + slack:
        raise JournalError(f"{where}: its pseudo-outcome passes the bounds that its bets followed")


def _array(packed: JsonObject) -> npt.NDArray[Any]:
    """Return the array that ``targets.pack`` wrote. Raise JournalError if it is damaged."""
    try:
        body = zlib.decompress(base64.b64decode(packed["bytes"]))
        return np.frombuffer(body, packed["kind"]).reshape(packed["shape"])
    except (ValueError, KeyError, TypeError, zlib.error):
        raise JournalError("verify: the targets' definitions in the journal are damaged") from None


# -- strata ---------------------------------------------------------------------------------------

ROUNDED = 1e-6
"""Largest error of the sum of shares, which are rounded to 9 decimals before use."""
FIRST_MEAN = 0.5
"""Mean loss that is expected in a stratum before the first draw."""
NEVER = 40
"""Mean number of touching candidates above which the chance of none, exp(-40), counts as 0."""
Signature = tuple[bool, ...]
"""One flag per target: whether it selects a cell or a variant."""


class StrataCheck:
    """The C strata of K targets, and the figures of a draw that they fix.

    Args:
        inside: Which targets select which strata, (K, C).
        left: Numbers of calls that were not drawn yet, (C,).
        questions: Numbers of unseen questions of each target, (K, C).
        calls: Numbers of unseen calls that ask any of them, (K, C).
        largest: Largest numbers of questions of a target that one call asks, (K, C).
        limit: Maximum number of candidates of a draw.
        by_variant: The stratum of each variant, (V,), if a call asks all questions about an image,
            else None.
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

    def drawn(self, draw: DrawRow, key: str) -> int:
        """Return the draw's stratum. Raise JournalError if key and shares pick another."""
        stratum = _picked(key, "stratum", draw.draw, self._shares(draw))
        if stratum != draw.why["stratum"]:
            raise JournalError(
                f"verify: draw {draw.draw} is of stratum {draw.why['stratum']}, but the key and "
                f"the shares come to stratum {stratum}"
            )
        return stratum

    def _touched(self, stratum: int) -> Floats:
        """Return the chance (K,) that some candidate of a draw touches each target."""
        left, calls = int(self.left[stratum]), self.calls[:, stratum]
        most = min(left, self.limit)
        chance = np.ones(len(calls))
        for k in np.flatnonzero((calls > 0) & (calls <= left - most)).tolist():
            if calls[k] * most < NEVER * left:
                others = left - calls[k] - np.arange(most)
                chance[k] -= float(np.exp(np.log(others / (left - np.arange(most))).sum()))
        return chance

    def holds(self, stratum: int, calls: Indices, inside: Bools) -> Bools:
        """Return which of m calls belong to a stratum.

        Args:
            stratum: The stratum.
            calls: The calls, (m,).
            inside: Which targets they touch, (m, K).
        """
        if self.by_variant is None:
            return np.asarray((inside == self.inside[:, stratum]).all(axis=1))
        return np.asarray(self.by_variant[calls % len(self.by_variant)] == stratum)

    def expected(
        self, draw: DrawRow, stratum: int, k: int, reach: Floats
    ) -> dict[str, float] | None:
        """Return the figures of target ``k``, None if the draw does not move it.

        The formulas are those of ``strata``. ``scale`` still has to be divided by m and the
        probability.

        Args:
            draw: The draw.
            stratum: Its stratum.
            k: The target.
            reach: The bounds of corrections down, up and of the tilt.
        """
        held = np.flatnonzero(self.questions[k] > 0).tolist()
        shares, n = self._shares(draw)[held], self.questions[k, held]
        if stratum not in held or not (shares > 0).all():
            return None
        known = [mean[k] for mean in self.means.values()]
        other = sum(known) / len(known) if known else FIRST_MEAN
        guess = n * np.array([self.means[c][k] if c in self.means else other for c in held])
        calls = self.calls[k] / self.chance[k]
        most = calls[held] * self.largest[k, held]
        rho = shares / shares.sum()
        down, up, tilt = reach
        return {
            "scale": calls[stratum] / rho[held.index(stratum)],
            "lo": float(guess.sum() - ((down * n + guess) / rho).max()),
            "hi": float(guess.sum() + ((most + up * n - guess) / rho).max()),
            "tilt_bound": float(((1 + tilt) * n / rho).max() - n.sum()),
            "other_base": float(guess.sum() - (guess / rho)[held.index(stratum)]),
            "other_tilt": float(n.sum() - (n / rho)[held.index(stratum)]),
        }

    def advance(self, draw: DrawRow, count: Indices) -> None:
        """Count the draw of a call that asks ``count`` (K,) questions of each target."""
        call, inside = np.array([draw.call]), count[None] > 0
        for stratum in range(len(self.left)):
            if self.holds(stratum, call, inside)[0]:
                self.left[stratum] -= 1
                self.questions[:, stratum] -= count
                self.calls[:, stratum] -= count > 0
                self.chance[:, stratum] = self._touched(stratum)
        if "stratum" in draw.why:
            mean = np.asarray(draw.why.get("stratum_mean", np.nan), float)
            if mean.shape not in ((), count.shape):
                raise JournalError(f"verify: draw {draw.draw} has not one mean for every target")
            self.means[draw.why["stratum"]] = np.broadcast_to(mean, count.shape)

    def _shares(self, draw: DrawRow) -> Floats:
        """Return the shares of the strata (C,) from which a draw chose one."""
        shares = np.array(draw.why.get("shares", []), float)
        right = shares.shape == self.left.shape and (shares >= 0).all()
        if not right or abs(float(shares.sum()) - 1) > ROUNDED:
            raise JournalError(
                f"verify: the shares of draw {draw.draw} are no proposal over its strata"
            )
        return shares
