"""Candidates to weights to proposal to draw: the engine's choice, without any input or output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from ..certify import Bet, Certifier
from ..certify.status import TargetStatus
from ..certify.strata import DIGITS, Stratum, by_variant
from ..certify.targets import Target, fingerprint, unpack
from ..errors import AvttError, InputError, JournalError
from ..journal import Journal
from ..journal.facts import Facts, ReplayFacts
from ..journal.rows import DrawRow, MoveRow, Reasons, pack_proposal, unpack_proposal
from ..space import QuestionSpace
from ..strategies import Mixed, Reasoned, Strategy
from ..strategies.by_need import ByNeed
from ..types import Bools, CallMode, Candidates, Floats, Indices
from ..utils.other_code import defined_at
from ..utils.random_streams import generator
from .belief import Belief, Observation
from .candidates import CandidatePool
from .tensors import array


@dataclass(frozen=True)
class Proposal:
    """m calls (m,) and their probabilities (m,), which sum to one."""

    calls: Indices
    probabilities: Floats

    def draw(self, rng: np.random.Generator) -> int:
        """The place (0..m-1) of one call, by inverse transform."""
        ends = np.cumsum(self.probabilities)
        place = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
        # rounding may point past the end, or at a call of probability zero there
        place = min(place, len(ends) - 1)
        while self.probabilities[place] == 0:
            place -= 1
        return place

    def pack(self) -> bytes:
        """The proposal as bytes for the journal."""
        return pack_proposal(self.calls, self.probabilities)

    @classmethod
    def unpack(cls, packed: bytes) -> "Proposal":
        """The proposal that ``pack`` wrote; raises JournalError for what it cannot have written."""
        return cls(*unpack_proposal(packed))


def mix(
    calls: Indices, weights: Floats, exploration: float, even: Floats | None = None
) -> Proposal:
    """q = (1 - exploration) w / sum(w) + exploration * even, for m weights >= 0.

    ``even`` (m,) is a proposal of its own, uniform by default. Raises AvttError where a strategy
    returned something that is no set of weights.
    """
    if weights.shape != calls.shape:
        raise AvttError(f"strategy: expected {calls.shape} weights, got {weights.shape}")
    total = weights.sum()
    # a sum is finite only where every weight is
    if not (np.isfinite(total) and weights.min(initial=0.0) >= 0):
        raise AvttError("strategy: expected finite weights of at least 0, got others")
    if total <= 0:
        raise AvttError(
            f"strategy: expected a weight above 0 for some of {len(weights)} candidates, got none; "
            "return ones where all are alike"
        )
    spread = 1 / len(weights) if even is None else even
    return Proposal(calls, (1 - exploration) * weights / total + exploration * spread)


def shares_of(
    mixture: Mapping[str, Floats], mine: Bools, exploration: float, probability: float
) -> dict[str, float]:
    """The parts of a call's ``probability``, by reason, "even" last: each of the ``mixture`` of
    weights (n,) gives what its questions ``mine`` weigh, and the exploration the rest."""
    total = sum(float(part.sum()) for part in mixture.values())
    parts = {n: (1 - exploration) * float(part[mine].sum()) / total for n, part in mixture.items()}
    return parts | {"even": max(probability - sum(parts.values()), 0.0)}


class Replay:
    """The draws of an earlier audit, gone through again before an audit draws questions of its own.

    Where model A was audited before, B may be asked what A was asked, in A's order, so that of each
    pair only B is paid for. The proposal of such a draw is A's, as journaled: it was fixed by A's
    earlier answers and drawn by A's key, which knew nothing of B. So a draw is random given all
    that comes before it in either audit, and what is expected of the pair at draw t may follow from
    both models' losses on draws before t. From A's later losses it may not: those tell which
    questions are still to come. That A's audit ended when it did follows from its answers by then,
    so it may be gone on from.

    It fails where B knows the draws: a model mended with the failures of A's audit, and targets
    that were chosen by it, are right or wrong about these very questions and no others.

    ``journal`` is that of an audit with ``facts``, at ``where`` for errors.

    Proposals are read as they are needed, so the journal has to stay open. Raises InputError for
    draws whose proposals leave candidates out.
    """

    def __init__(self, journal: Journal, facts: Facts, where: str) -> None:
        if facts.settings.exploration <= 0:
            got = "exploration = 0, with which some are never drawn"
            raise InputError(_message(where, "proposals that give every candidate a chance", got))
        self._journal, self._where = journal, where
        self._subsets = facts.certificate and (facts.certificate.targets, facts.certificate.subsets)
        self.draws: Sequence[DrawRow] = journal.draws(proposals=False)
        self._settings = facts.settings
        self._stratified = any("stratum" in draw.why for draw in self.draws)
        self.strata: Indices | None = None
        """The strata of calls that A's draws chose among: see ``CallStrata``."""
        if self._stratified and facts.settings.answers == "all" and facts.population:
            masks = [unpack(target["variants"]) for target in facts.population["targets"]]
            self.strata = by_variant(np.array(masks))
        self.facts = ReplayFacts(key=facts.key, draws=len(self.draws), head=journal.head)

    def check(
        self, targets: Sequence[str], subsets: str, stratified: bool, candidates: int
    ) -> None:
        """Raises InputError where the draws chose among strata of questions by other targets than
        these, named and hashed (``certify.targets.fingerprint``), or among strata of calls with
        another number of ``candidates``; ``stratified``: whether these targets have strata."""
        if not self._stratified:
            return
        own = self.strata is None and self._subsets != (tuple(targets), subsets)
        if own or not stratified:
            mine = ", ".join(self._subsets[0]) if self._subsets else "none"
            got = f"{', '.join(targets)}; A's draws chose groups of questions by its targets"
            raise InputError(_message(self._where, f"the targets of that audit ({mine})", got))
        if self._settings.answers == "all" and self._settings.candidates != candidates:
            expected = f"candidates = {self._settings.candidates}, as in that audit"
            raise InputError(_message(self._where, expected, f"{candidates}"))

    def at(self, number: int) -> DrawRow | None:
        """The draw of this number, without its proposal; None where the audit draws by itself."""
        return self.draws[number] if number < len(self.draws) else None

    def proposal(self, number: int) -> Proposal:
        """The proposal of a draw. Raises JournalError where the draw is not of it."""
        proposal, draw = Proposal.unpack(self._journal.proposal(number)), self.draws[number]
        probability = proposal.probabilities[proposal.calls == draw.call]
        if len(probability) != 1 or probability[0] != draw.probability:
            raise JournalError(
                f"journal_a {self._where!r}: expected draw {number} to be drawn from its "
                f"proposal, got "
                "another proposal; the journal is damaged: restore a copy of it"
            )
        return proposal


def _message(where: str, expected: str, got: str) -> str:
    return f"journal_a {where!r}: replay: expected {expected}, got {got}; take use = 'condition'"


LEAST = 1e-3
"""An exploration below it stays as it is: baselines have next to none, and stay plain draws."""
MAX_AHEAD = 2**18
"""Questions of a space, at most, of which all losses are foreseen at once."""


@dataclass(frozen=True)
class Why:
    """Why a call was drawn: what its proposal was made of, for the journal and the report.

    ``candidates``: calls it was drawn among; ``eligible``: those of them with a chance.
    ``reasons``: what the strategy went by, by its own names. ``price``: what the call sends and is
    expected to cost (``Prices.reasons``). ``parts``: of its probability, by reason, where the
    strategy is made of several. ``stratum``: the one it was drawn from; None: all calls.
    ``in_flight``: c, where it changes with this draw (``draw_order.Blocks``).
    """

    candidates: int
    eligible: int
    reasons: Mapping[str, float | int] = field(default_factory=dict)
    price: Reasons = field(default_factory=Reasons)
    parts: Mapping[str, float] = field(default_factory=dict)
    stratum: Stratum | None = None
    in_flight: int | None = None

    def as_dict(self) -> Reasons:
        """As a journal has it, in this order."""
        reasons: dict[str, Any] = {**self.reasons}
        reasons |= {"candidates": self.candidates, "eligible": self.eligible}
        reasons |= {**self.price, **self.parts}
        reasons |= {} if self.stratum is None else self.stratum.row()
        reasons |= {} if self.in_flight is None else {"in_flight": self.in_flight}
        return cast("Reasons", reasons)


@dataclass(frozen=True)
class Draw:
    """One random choice: its number, the call drawn, the question in it that weighed most,
    the proposal, ``why``, and, where there are certificates, what the draw fixes
    for them."""

    number: int
    call: int
    question: int
    probability: float
    proposal: Proposal
    why: Why
    bet: Bet | None = None


class Selector:
    """Draws calls and learns from their outcomes. Everything follows from the seed, a number or
    an audit's key.

    ``belief`` may carry a certifier; then every draw is worth a move of its sequences, and
    ``exploration`` must be above 0. ``replay``: an earlier audit whose draws come first.
    ``exact``: everything is asked, so that nothing is bet and targets are ``counted``.
    """

    exact: bool = False
    batch: int = 1
    """Calls that are drawn at a time, at least."""

    def __init__(
        self,
        space: QuestionSpace,
        strategy: Strategy,
        *,
        seed: int | str = 0,
        exploration: float = 0.0,
        candidates: int = 4096,
        answers: CallMode = "one",
        belief: Belief | None = None,
        replay: Replay | None = None,
    ) -> None:
        self.space = space
        self.strategy = strategy
        self.seed = seed
        self.exploration = exploration
        self.belief = belief or Belief(space, seed=seed)
        # nothing but NumPy goes by losses alone: no torch is needed then
        plain = space.oracle.tells_losses and self.belief.losses is None
        plain = plain and isinstance(strategy, ByNeed)
        self.pool = CandidatePool(space, seed=seed, limit=candidates, answers=answers, plain=plain)
        if isinstance(strategy, ByNeed) and self.belief.certifier is not None:
            given = None if replay is None else replay.strata
            self.belief.certifier.stratify(self.pool.most, given)
        self.replay = replay
        if replay is not None and (certifier := self.belief.certifier) is not None:
            names = [target.name for target in certifier.targets]
            subsets, stratified = fingerprint(certifier.targets), certifier.strata is not None
            replay.check(names, subsets, stratified, candidates)
        self.draws = 0
        self._bets: dict[int, tuple[Bet, Indices]] = {}
        self._learned = 0

    @property
    def certifier(self) -> Certifier | None:
        return self.belief.certifier

    @property
    def targets(self) -> list[Target]:
        """What is certified, or counted."""
        return [] if self.certifier is None else self.certifier.targets

    def counted(self) -> list[TargetStatus]:
        """Where everything is asked, where each target stands."""
        return []

    def draw(self, together: int = 1) -> Draw | None:
        """The next call, or None when all have been seen. Does not take it out.

        ``together``: how many draws know what this one knows, itself included. Each has candidates
        and a proposal of its own; what is expected of the questions may be worked out for all of
        them.
        """
        if not len(self.pool):
            return None
        number = self.draws
        if together > 1 and self.space.size <= min(together * self.pool.limit, MAX_AHEAD):
            self.belief.look_ahead(self.pool.everything())
        if self.replay is not None and (earlier := self.replay.at(number)) is not None:
            return self._again(earlier, self.replay.proposal(number))
        exploration = self._exploration()
        stratum = self._stratum(number, exploration)
        candidates = self._candidates(number, stratum)
        self.belief.look_at(candidates)
        mixture = self._mixture(candidates)
        weights = np.add.reduce([*mixture.values()])
        calls, unit = array(candidates.call), array(candidates.unit)
        by_call = weights
        if len(calls) < len(weights):
            by_call = np.bincount(unit, weights, len(calls))
        proposal = mix(calls, by_call, exploration, self._even(candidates))
        place = proposal.draw(generator(self.seed, "draw", number))
        chosen = self._heaviest(np.flatnonzero(unit == place), weights, number)
        stratum = self._expecting(stratum)
        question = int(candidates.question[chosen])
        probability = float(proposal.probabilities[place])
        why = self._why(proposal, place, question, stratum)
        if isinstance(self.strategy, Reasoned):
            why = replace(why, reasons=self.strategy.reasons(candidates, self.belief, chosen))
        if isinstance(self.strategy, Mixed):
            parts = shares_of(mixture, unit == place, exploration, probability)
            why = replace(why, parts=parts)
        bet = self._bet(candidates, proposal, place, stratum)
        return Draw(number, int(calls[place]), question, probability, proposal, why, bet)

    def _mixture(self, candidates: Candidates) -> dict[str, Floats]:
        """The strategy's weights, as the sum of those that it is made of."""
        if isinstance(self.strategy, Mixed):
            parts: Mapping[str, Any] = self.strategy.mixture(candidates, self.belief)
        else:
            parts = {"chosen": self.strategy.weights(candidates, self.belief)}
        return {n: self._weights(part, len(candidates)) for n, part in parts.items()}

    def _weights(self, returned: Any, count: int) -> Floats:
        """The weights (count,) that a strategy returned; raises AvttError for anything else."""
        weights = array(returned)
        if weights.shape == (count,) and weights.dtype.kind in "biuf":
            bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
            if not len(bad):
                return weights.astype(np.float64, copy=False)
            got = f"{weights[bad[0]]} for candidate {bad[0]}"
            remedy = "give 0 to a candidate that is not to be drawn"
        else:
            remedy = "return a vector as long as candidates, such as np.ones(len(candidates))"
            got = type(returned).__name__
            got += f" of shape {weights.shape} and type {weights.dtype}" if weights.ndim else ""
        raise AvttError(
            f"strategy {type(self.strategy).__name__}: expected {count} finite weights of at least "
            f"0, one per candidate, got {got}{defined_at(self.strategy.weights)}; {remedy}"
        )

    def _again(self, earlier: DrawRow, proposal: Proposal) -> Draw:
        """The draw of an earlier audit, by its proposal, with what is expected of the questions
        now."""
        candidates = self.pool.of(proposal.calls)
        self.belief.look_at(candidates)
        place = int(np.searchsorted(proposal.calls, earlier.call))
        stratum = self._expecting(Stratum.of(earlier.why))
        why = self._why(proposal, place, earlier.question, stratum)
        bet, probability = self._bet(candidates, proposal, place, stratum), earlier.probability
        return Draw(earlier.draw, earlier.call, earlier.question, probability, proposal, why, bet)

    def _why(self, proposal: Proposal, place: int, question: int, stratum: Stratum | None) -> Why:
        """Of the call at ``place``, drawn for ``question``, without what the strategy says."""
        eligible = int(np.count_nonzero(proposal.probabilities))
        price = self.belief.price_of(place, question)
        return Why(len(proposal.calls), eligible, price=price, stratum=stratum)

    def row(self, draw: Draw, questions: Indices, learned: int, elapsed: float) -> DrawRow:
        """The draw for the journal; ``questions`` are those of its call."""
        sample, _, _ = self.space.parts(draw.question)
        moves: tuple[MoveRow, ...] = ()
        if self.certifier is not None and draw.bet is not None:
            moves = draw.bet.rows(questions, self.certifier.members(questions))
        return DrawRow(
            draw=draw.number,
            question=draw.question,
            call=draw.call,
            sample=self.space.dataset.sample_id(int(sample)),
            learned=learned,
            probability=draw.probability,
            proposal=draw.proposal.pack(),
            why=draw.why.as_dict(),
            elapsed=elapsed,
            moves=moves,
        )

    def take(self, questions: Indices, bet: Bet | None = None, why: Reasons | None = None) -> None:
        """Counts one draw, of which the journal says ``why``, and takes the questions its call
        answers out of the pool."""
        if self.belief.prices is not None and why is not None:
            self.belief.prices.take(why)
        if bet is not None:
            self._bets[self.draws] = (bet, questions)
        self.draws += 1
        self.pool.remove(questions)
        if self.certifier is not None and self.certifier.strata is not None:
            self.certifier.strata.remove(questions)

    def restore(self, questions: Indices, bet: Bet | None, why: Reasons) -> None:
        """Take a draw from the journal, with its reasons."""
        if bet is not None and self.certifier is not None:
            inside = self.certifier.members(questions)
            self.certifier.restore(bet, inside, Stratum.of(why))
        self.take(questions, bet, why)

    def learn(self, outcomes: Sequence[Observation], cost: float = 0.0) -> None:
        """Takes in the judged questions of the next draw, in draw order, and what it cost."""
        if self.belief.prices is not None:
            self.belief.prices.learn(cost)
        if self.certifier is not None:
            teach(self.certifier, *self._bets.pop(self._learned), outcomes)
        self._learned += 1
        self.belief.learn(outcomes)

    def open_uncertainty(self) -> Floats:
        """C x 2: relative uncertainty of each side, NaN where nothing is left to ask."""
        return np.where(self.pool.remaining > 0, self.belief.side_uncertainty(), np.nan)

    # -- certificates ------------------------------------------------------------------

    def _exploration(self) -> float:
        """The exploration; larger where adaptive draws turn out worse than uniform ones, unless
        draws are to be the strategy's alone."""
        if self.exploration < LEAST or self.certifier is None or self.certifier.settled.all():
            return self.exploration
        excess = float(np.clip(self.certifier.variance_ratio() - 1, 0, 1))
        return self.exploration + (1 - self.exploration) * excess

    def _even(self, candidates: Candidates) -> Floats | None:
        """Half uniform over all calls, half uniform over those of each open target."""
        if self.certifier is None:
            return None
        calls = len(candidates.call)
        count = self.certifier.counts(self.belief.inside, array(candidates.unit), calls)
        touched = count[~self.certifier.settled] > 0
        touched = touched[touched.any(axis=1)]
        if not len(touched):
            return None
        own = (touched / touched.sum(axis=1, keepdims=True)).mean(axis=0)
        return 0.5 / calls + 0.5 * own

    def _heaviest(self, mine: Indices, weights: Floats, number: int) -> int:
        """Which of a call's questions, at places ``mine``, the draw is about: that with
        the largest weight, by chance among equals. Draws do not follow from it."""
        best = mine[weights[mine] == weights[mine].max()]
        if len(best) == 1:
            return int(best[0])
        return int(generator(self.seed, "heaviest question", number).choice(best))

    def _stratum(self, number: int, exploration: float) -> Stratum | None:
        """The stratum of a draw, or None where it is drawn from all calls."""
        if self.certifier is None:
            return None
        prices, strata = self.belief.prices, self.certifier.strata
        known = 1.0 if prices is None or strata is None else prices.of_strata(strata)
        shares = self.certifier.shares(exploration, known)
        if shares is None:
            return None
        proposal = Proposal(np.arange(len(shares)), shares)
        return Stratum(proposal.draw(generator(self.seed, "stratum", number)), shares)

    def _candidates(self, number: int, stratum: Stratum | None) -> Candidates:
        if self.certifier is None or stratum is None:
            return self.pool.candidates(number)
        return self.pool.candidates(number, self.certifier.strata, stratum.place)

    def _expecting(self, stratum: Stratum | None) -> Stratum | None:
        """The stratum with what its candidates are expected to lose."""
        if stratum is None:
            return None
        inside = self.belief.inside
        count = inside.sum(axis=1)

        def mean(values: Floats) -> Floats | float:
            overall = float(values.mean())
            if self.pool.answers == "one":  # all questions of the stratum have the same targets
                return round(overall, DIGITS)
            own = np.where(count > 0, inside @ values / np.maximum(count, 1), overall)
            return np.asarray(np.round(own, DIGITS), np.float64)

        foreseen = mean(self.belief.expected()), mean(self.belief.variance())
        return replace(stratum, mean=foreseen[0], variance=foreseen[1])

    def _bet(
        self, candidates: Candidates, proposal: Proposal, place: int, stratum: Stratum | None
    ) -> Bet | None:
        if self.certifier is None:
            return None
        predictions = self.belief.predictions
        if stratum is not None:
            f: Floats | None = self.belief.expected()
        else:
            f = None if predictions is None else array(predictions)
        unit, inside = array(candidates.unit), self.belief.inside
        return self.certifier.bet(inside, unit, f, proposal.probabilities, place, stratum)


def teach(
    certifier: Certifier, bet: Bet, questions: Indices, outcomes: Sequence[Observation]
) -> None:
    """What the judged ``questions`` of a draw tell of the targets."""
    losses = {o.question: o for o in outcomes}
    judged = [losses[question] for question in questions.tolist()]
    least, most = np.array([o.least for o in judged]), np.array([o.most for o in judged])
    out = np.array([o.excluded for o in judged])
    certifier.learn(bet, certifier.members(questions), least, most, out)
