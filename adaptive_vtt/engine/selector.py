"""From candidates to weights to a proposal to a draw, without any input or output."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from ..certify import Bet, Certifier
from ..certify.status import TargetStatus
from ..certify.strata import DIGITS, Stratum
from ..certify.targets import Target, fingerprint
from ..errors import unexpected
from ..journal.rows import DrawRow, MoveRow, Reasons
from ..space import QuestionSpace
from ..strategies import Mixed, Reasoned, Strategy
from ..strategies.by_need import ByNeed
from ..types import Bools, CallMode, Candidates, Floats, Indices, JsonObject
from ..utils.other_code import naming
from ..utils.random_streams import generator
from .belief import Belief, Observation
from .candidates import CandidatePool
from .options import Certify
from .proposals import Proposal, Replay, mix, parts_of
from .tensors import array, per_candidate

LEAST = 1e-3
"""Exploration below this value is never raised: baselines have next to none, and are to draw as
their strategy says."""
MAX_AHEAD = 2**18
"""Most questions of a space whose losses are all predicted at once."""


@dataclass(frozen=True)
class Why:
    """The quantities that a call's proposal was made of, for the journal and the report.

    - ``candidates``: number of calls in the proposal; ``eligible``: those with a chance above 0.
    - ``reasons``: the strategy's quantities, by its own names.
    - ``price``: what the call sends and is expected to cost (``Prices.reasons``).
    - ``parts``: reason -> part of the probability, if the strategy mixes several.
    - ``stratum``: the stratum that it was drawn from; None: all calls.
    - ``in_flight``: calls in flight, if their number changes with this draw
      (``draw_order.Blocks``).
    """

    candidates: int
    eligible: int
    reasons: Mapping[str, float | int] = field(default_factory=dict)
    price: Reasons = field(default_factory=Reasons)
    parts: Mapping[str, float] = field(default_factory=dict)
    stratum: Stratum | None = None
    in_flight: int | None = None

    def as_dict(self) -> Reasons:
        """Return all of them as the journal has them, in its order."""
        reasons: dict[str, Any] = {**self.reasons}
        reasons |= {"candidates": self.candidates, "eligible": self.eligible}
        reasons |= {**self.price, **self.parts}
        reasons |= {} if self.stratum is None else self.stratum.row()
        reasons |= {} if self.in_flight is None else {"in_flight": self.in_flight}
        return cast("Reasons", reasons)


@dataclass(frozen=True)
class Draw:
    """One random choice.

    - ``number``: 0 for the first draw.
    - ``call``: the call drawn; ``question``: the question in it with the largest weight.
    - ``probability``: the call's probability in ``proposal``.
    - ``why``: the quantities that the proposal was made of.
    - ``bet``: what the draw fixes for the targets; None: nothing is certified.
    """

    number: int
    call: int
    question: int
    probability: float
    proposal: Proposal
    why: Why
    bet: Bet | None = None


class Selector:
    """Draws calls, and learns from their outcomes in the order of the draws.

    Args:
        space: All questions.
        strategy: Weighs the candidates of each draw.
        seed: A number or an audit's key; all random choices follow from it.
        exploration: Uniform share of the proposal, above 0 if ``belief`` has a certifier.
        candidates: Most questions that are considered per draw.
        answers: "one" where a call is one question, "all" where it is one image.
        belief: What was learnt so far, and the certifier if targets are certified.
        replay: An earlier audit whose draws come first.
    """

    exact: bool = False
    """True in a subclass that asks everything: it counts targets and bets nothing."""
    batch: int = 1
    """Fewest calls that are drawn together."""

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
        # Nobody needs tensors if losses are given, nothing predicts them, and NumPy weighs them.
        by_need = isinstance(strategy, ByNeed)
        plain = by_need and space.oracle.tells_losses and self.belief.losses is None
        self.pool = CandidatePool(space, seed=seed, limit=candidates, answers=answers, plain=plain)
        self.replay, certifier = replay, self.belief.certifier
        if by_need and certifier is not None:
            certifier.stratify(self.pool.most, None if replay is None else replay.strata)
        if replay is not None and certifier is not None:
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
        """The targets that are certified, or counted."""
        return [] if self.certifier is None else self.certifier.targets

    def counted(self) -> list[TargetStatus]:
        """Return the status of each target, in a subclass that asks everything."""
        return []

    def certificate(self, certify: Certify) -> JsonObject | None:
        """Return the fact "certificate" of a new journal; None where nothing is certified."""
        return certify.describe(self.certifier)

    def draw(self, together: int = 1) -> Draw | None:
        """Draw the next call, without removing it from the pool; None if all were drawn.

        Args:
            together: Number of draws, this one included, that are made with the same belief. Each
                has its own candidates and proposal, but all of them can share predictions.
        """
        if not len(self.pool):
            return None
        number = self.draws
        if together > 1 and self.space.size <= min(together * self.pool.limit, MAX_AHEAD):
            self.belief.look_ahead(self.pool.everything())
        if self.replay is not None and (earlier := self.replay.at(number)) is not None:
            return self._repeat(earlier, self.replay.proposal(number))
        exploration = self._exploration()
        stratum = self._stratum(number, exploration)
        if self.certifier is None or stratum is None:
            candidates = self.pool.candidates(number)
        else:
            candidates = self.pool.candidates(number, self.certifier.strata, stratum.place)
        self.belief.look_at(candidates)
        mixture = self._mixture(candidates)
        weights = np.sum([*mixture.values()], axis=0)
        calls, unit = array(candidates.call), array(candidates.unit)
        # a call's weight is the sum of those of its questions
        by_call: Any = np.bincount(unit, weights, len(calls)) if len(unit) > len(calls) else weights
        proposal = mix(calls, by_call, exploration, self._even(candidates))
        place = proposal.draw(generator(self.seed, "draw", number))
        chosen = self._heaviest(np.flatnonzero(unit == place), weights, number)
        stratum = self._with_predictions(stratum)
        question = int(candidates.question[chosen])
        probability = float(proposal.probabilities[place])
        why = self._why(proposal, place, question, stratum)
        if isinstance(self.strategy, Reasoned):
            with naming("strategy", self.strategy, "reasons"):
                reasons = {**self.strategy.reasons(candidates, self.belief, chosen)}
                json.dumps(reasons)  # as the journal will
            why = replace(why, reasons=reasons)
        if isinstance(self.strategy, Mixed):
            parts = parts_of(mixture, unit == place, exploration, probability)
            why = replace(why, parts=parts)
        bet = self._bet(candidates, proposal, place, stratum)
        return Draw(number, int(calls[place]), question, probability, proposal, why, bet)

    def _mixture(self, candidates: Candidates) -> dict[str, Floats]:
        """Return the parts that the strategy's weights are the sum of, by reason."""
        strategy, count = self.strategy, len(candidates)
        with naming("strategy", strategy, "mixture" if isinstance(strategy, Mixed) else "weights"):
            if isinstance(strategy, Mixed):
                parts: Mapping[str, Any] = {**strategy.mixture(candidates, self.belief)}
            else:
                parts = {"chosen": strategy.weights(candidates, self.belief)}
            mixture = {name: per_candidate(part, count, "weights") for name, part in parts.items()}
            if not any(part.any() for part in mixture.values()):
                raise unexpected("", "a weight above 0", "none", "return ones where all are alike")
        return mixture

    def _repeat(self, earlier: DrawRow, proposal: Proposal) -> Draw:
        """Return an earlier audit's draw from its proposal, with the predictions of now."""
        candidates = self.pool.of_calls(proposal.calls)
        self.belief.look_at(candidates)
        place = int(np.searchsorted(proposal.calls, earlier.call))
        stratum = self._with_predictions(Stratum.of(earlier.why))
        why = self._why(proposal, place, earlier.question, stratum)
        bet, probability = self._bet(candidates, proposal, place, stratum), earlier.probability
        return Draw(earlier.draw, earlier.call, earlier.question, probability, proposal, why, bet)

    def _why(self, proposal: Proposal, place: int, question: int, stratum: Stratum | None) -> Why:
        """Return why the call at ``place`` was drawn, without the strategy's reasons."""
        eligible = int(np.count_nonzero(proposal.probabilities))
        price = self.belief.price_of(place, question)
        return Why(len(proposal.calls), eligible, price=price, stratum=stratum)

    def row(self, draw: Draw, questions: Indices, learned: int, elapsed: float) -> DrawRow:
        """Return the journal's row of a draw.

        Args:
            draw: The draw.
            questions: (n,) questions of its call.
            learned: Number of draws that the belief had learnt from.
            elapsed: Seconds of audit.
        """
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
        """Count one draw with its journaled reasons, and remove its questions from the pool."""
        if self.belief.prices is not None and why is not None:
            self.belief.prices.take(why)
        if bet is not None:
            self._bets[self.draws] = (bet, questions)
        self.draws += 1
        self.pool.remove(questions)
        if self.certifier is not None and self.certifier.strata is not None:
            self.certifier.strata.remove(questions)

    def restore(self, questions: Indices, bet: Bet | None, why: Reasons) -> None:
        """Count a draw of the journal, with its bet and its reasons."""
        if bet is not None and self.certifier is not None:
            inside = self.certifier.members(questions)
            self.certifier.restore(bet, inside, Stratum.of(why))
        self.take(questions, bet, why)

    def learn(self, outcomes: Sequence[Observation], cost: float = 0.0) -> None:
        """Learn from the judged questions of the next draw, in draw order, and from its cost."""
        if self.belief.prices is not None:
            self.belief.prices.learn(cost)
        if self.certifier is not None:
            teach(self.certifier, *self._bets.pop(self._learned), outcomes)
        self._learned += 1
        self.belief.learn(outcomes)

    def unlearned(self, questions: Indices) -> Bools:
        """Return which (n,) of these questions are not learned from yet, drawn or not."""
        drawn = [number for _, drawn in self._bets.values() for number in drawn.tolist()]
        return self.pool.unseen(questions) | np.isin(questions, drawn)

    def open_uncertainty(self) -> Floats:
        """Return the relative uncertainty (C x 2) of each side; NaN if nothing is left to ask."""
        return np.where(self.pool.remaining > 0, self.belief.side_uncertainty(), np.nan)

    # -- certificates ------------------------------------------------------------------

    def _exploration(self) -> float:
        """Return the exploration, raised if adaptive draws turn out worse than uniform ones."""
        if self.exploration < LEAST or self.certifier is None or self.certifier.settled.all():
            return self.exploration
        excess = float(np.clip(self.certifier.variance_ratio() - 1, 0, 1))
        return self.exploration + (1 - self.exploration) * excess

    def _even(self, candidates: Candidates) -> Floats | None:
        """Return probabilities, half uniform over all calls, half over each open target's calls.

        The second half keeps the importance weights of rare targets bounded.
        """
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

    def _heaviest(self, places: Indices, weights: Floats, number: int) -> int:
        """Return which of a call's questions, at these places, the draw is about.

        It has the largest weight; chance decides among equals. Later draws do not depend on it.
        """
        best = places[weights[places] == weights[places].max()]
        if len(best) == 1:
            return int(best[0])
        return int(generator(self.seed, "heaviest question", number).choice(best))

    def _stratum(self, number: int, exploration: float) -> Stratum | None:
        """Draw the stratum of a draw; None if it is drawn from all calls."""
        if self.certifier is None:
            return None
        prices, strata = self.belief.prices, self.certifier.strata
        costs = 1.0 if prices is None or strata is None else prices.of_strata(strata)
        probabilities = self.certifier.stratum_proposal(exploration, costs)
        if probabilities is None:
            return None
        proposal = Proposal(np.arange(len(probabilities)), probabilities)
        place = proposal.draw(generator(self.seed, "stratum", number))
        return Stratum(place, probabilities)

    def _with_predictions(self, stratum: Stratum | None) -> Stratum | None:
        """Return the stratum with the predicted mean and variance of its candidates' losses."""
        if stratum is None:
            return None
        inside = self.belief.inside
        count = inside.sum(axis=1)

        def mean(values: Floats) -> Floats | float:
            overall = float(values.mean())
            if self.pool.answers == "one":  # all questions of the stratum have the same targets
                return round(overall, DIGITS)
            by_target = np.where(count > 0, inside @ values / np.maximum(count, 1), overall)
            return np.asarray(np.round(by_target, DIGITS), np.float64)

        expected, variance = self.belief.expected(), self.belief.variance()
        return replace(stratum, mean=mean(expected), variance=mean(variance))

    def _bet(
        self, candidates: Candidates, proposal: Proposal, place: int, stratum: Stratum | None
    ) -> Bet | None:
        if self.certifier is None:
            return None
        predictions = self.belief.predictions
        f: Floats | None = None if predictions is None else array(predictions)
        if stratum is not None:
            f = self.belief.expected()
        unit, inside = array(candidates.unit), self.belief.inside
        return self.certifier.bet(inside, unit, f, proposal.probabilities, place, stratum)


def teach(
    certifier: Certifier, bet: Bet, questions: Indices, outcomes: Sequence[Observation]
) -> None:
    """Let a certifier learn from a draw's bet and the outcomes of its ``questions`` (n,)."""
    by_question = {outcome.question: outcome for outcome in outcomes}
    judged = [by_question[question] for question in questions.tolist()]
    least, most = np.array([o.least for o in judged]), np.array([o.most for o in judged])
    excluded = np.array([o.excluded for o in judged])
    certifier.learn(bet, certifier.members(questions), least, most, excluded)
