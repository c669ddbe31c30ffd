"""The belief: everything that an audit has learnt, for strategies to read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..certify import Certifier
from ..errors import InputError, brief, unexpected
from ..journal.rows import AnswerRow, Reasons
from ..oracles.labels import margin
from ..space import QuestionSpace
from ..surrogates import BINS, Form, History, Posterior
from ..types import Bools, Candidates, Floats, Indices, PairedLoss
from ..utils.other_code import naming
from ..utils.random_streams import generator
from .candidates import columns
from .prices import Prices
from .tensors import array, candidates_of, joined, per_candidate, tensor

if TYPE_CHECKING:
    from ..surrogates import AnswerGP, Losses, LossSurrogate, QuestionModel
    from ..surrogates.question_gp import Questions
    from .tensors import Tensor

REFERENCE = 2_000
"""Most samples over which predictability is counted."""

FAILURE = 0.5
"""A loss of at least this much is a failure."""


@dataclass(frozen=True)
class Observation:
    """One judged question.

    - ``question``: its number; ``truth``: 0 or 1; ``loss``: the oracle's, in [0, 1].
    - ``answer``: P(yes), or the oracle's score; None: unanswered.
    - ``coordinate``: a = (P(yes) + truth) / 2, where the answer GPs learn it; None: unanswered.
    - ``low``, ``high``: bounds of the loss, if unanswered questions count both ways; None: ``loss``
      itself.
    - ``details``: further results of the oracle, as JSON.
    - ``margin``: how far the answer was on the right side (``oracles.labels.margin``).
    - ``excluded``: True if the answer showed that the question does not count. Its loss is 0, and
      nothing is learnt from it.
    """

    question: int
    truth: int
    loss: float
    answer: float | None = None
    coordinate: float | None = None
    low: float | None = None
    high: float | None = None
    details: Mapping[str, Any] | None = None
    margin: float | None = None
    excluded: bool = False

    @classmethod
    def of(cls, row: AnswerRow, both: bool) -> Self:
        """Return a journaled answer; with ``both``, an unanswered question counts both ways."""
        counts_both_ways = both and row.answer is None and not row.excluded
        low, high = (0.0, 1.0) if counts_both_ways else (None, None)
        truth = row.truth or 0
        return cls(
            row.question,
            truth,
            row.loss or 0.0,
            answer=row.answer,
            coordinate=row.coordinate,
            low=low,
            high=high,
            details=row.details,
            margin=margin(truth, row.coordinate, row.details),
            excluded=row.excluded,
        )

    @property
    def least(self) -> float:
        return self.loss if self.low is None else self.low

    @property
    def most(self) -> float:
        return self.loss if self.high is None else self.high


class Belief:
    """Answer GPs, predictability and, in audits that certify, predicted losses and targets.

    C concepts have V variants and two sides each: truth 0 and truth 1.

    Args:
        space: All questions.
        seed: The audit's key; it decides over which samples predictability is counted.
        device: Where surrogates compute, as PyTorch names it.
        losses: Surrogate that predicts losses, mostly a QuestionGP; None: nothing predicts them.
        certifier: The targets' certifier; None: nothing is certified.
        form: How AnswerGP measures uncertainty.
        history: Which answers Predictability counts.
        prices: Expected costs of calls; None: all cost the same.

    Attributes:
        received: C x 2 x V x 51, number of answers by concept, side, variant and bin of the
            coordinate within the side's half.
        tally: C x 2 x V x 2, number of judged questions and sum of their losses.
        asked: Sample -> number of its judged questions, in the order of the first.
        failed: (sample, concept) of each failure.
        sources: Sources that were asked about; shared with the audit.
        hard: Number of answers while all of them are 0 or 1; 0 once another came.
        inside: K x n, True where a candidate question of the draw belongs to a target.
        predictions: (n,) predicted losses of the draw's candidate questions; None: not predicted.
    """

    _answers: "AnswerGP | None" = None

    def __init__(
        self,
        space: QuestionSpace,
        *,
        seed: int | str,
        device: str = "cpu",
        losses: "LossSurrogate | None" = None,
        certifier: Certifier | None = None,
        form: Form = "std",
        history: History = "truth",
        prices: Prices | None = None,
    ) -> None:
        self.space = space
        self.prices = prices
        if not space.oracle.tells_losses:
            from ..surrogates import AnswerGP, Predictability  # imports PyTorch

            self._answers = AnswerGP(len(space.concepts), form=form, device=device)
            reference = space.dataset.reference(REFERENCE, generator(seed, "reference"))
            self.predictability = Predictability(*reference, history=history)
        self.losses = losses
        self.certifier = certifier
        self._bins = BINS - 1
        shape = (len(space.concepts), 2, len(space.variants), self._bins // 2 + 1)
        self.received = np.zeros(shape, dtype=np.float32)
        self.tally = np.zeros((*shape[:3], 2))
        self.hard, self._soft = 0, False
        self._form = form
        self.sources: set[int] = set()
        self.asked: dict[int, int] = {}
        self.failed: set[tuple[int, int]] = set()
        self.inside: Bools = np.zeros((0, 0), dtype=bool)
        self.predictions: Tensor | None = None
        self._variance: Tensor | None = None  # (n,), of the predictions
        self._needs: Floats | None = None  # K x n
        self._ahead: tuple[Indices, Posterior] | None = None  # of questions, ascending
        self._uncertainty: Tensor | None = None
        self._sent: Floats | None = None  # m x 2, pixels and characters of the candidate calls
        self._price: Floats | float = 1.0  # (m,), of these calls; 1: all cost the same

    def look_at(self, candidates: Candidates) -> None:
        """Compute ``inside``, ``predictions`` and prices for the candidates of a draw."""
        self._needs = None
        if self.prices is not None:
            unit = array(candidates.unit)
            first = np.searchsorted(unit, np.arange(len(candidates.call)))
            samples, concepts = array(candidates.sample)[first], array(candidates.concept)[first]
            self._sent = self.prices.sent(samples, concepts)
            price = self.prices.expected(self._sent)
            self._price = price if np.ptp(price) > 0 else 1.0
        if self.certifier is not None:
            self.inside = self.certifier.members(array(candidates.question))
        if self.losses is not None:
            if self._ahead is None:
                posterior = posterior_of(self.losses, candidates)
                mean, variance = posterior.mean, posterior.variance
            else:
                questions, ahead = self._ahead
                places = tensor(np.searchsorted(questions, array(candidates.question)))
                mean, variance = ahead.mean[places], ahead.variance[places]
            self.predictions, self._variance = mean, variance

    def look_ahead(self, slices: Iterable[Candidates]) -> None:
        """Predict these questions, in ascending order, once for all draws until more is learnt."""
        if self._ahead is not None or self.losses is None:
            return
        parts = [(s.question, posterior_of(self.losses, s)) for s in slices]
        questions = joined([question for question, _ in parts])
        means = joined([posterior.mean for _, posterior in parts])
        variances = joined([posterior.variance for _, posterior in parts])
        self._ahead = array(questions), Posterior(means, variances)

    def predict(self, candidates: "Questions") -> Floats:
        """Return the losses (n,) that are predicted now for these questions.

        Raises:
            InputError: If nothing predicts losses.
        """
        if self.losses is None:
            raise InputError("belief: expected a surrogate that predicts losses, got none")
        return array(posterior_of(self.losses, candidates).mean)

    def model(self) -> "QuestionModel":
        """Return the question GP as a BoTorch model; its points are numbers of questions.

        BoTorch gives points as a tensor ... x q x 1.

        Raises:
            InputError: If the question GP does not predict losses.
        """
        from ..surrogates import QuestionGP, QuestionModel

        if not isinstance(self.losses, QuestionGP):
            raise InputError(
                "belief: expected the question GP, which BoTorch can use, got "
                f"{type(self.losses).__name__}; give half_width, and no other surrogate"
            )
        return QuestionModel(self.losses, self._questions)

    def _questions(self, numbers: "Tensor") -> Candidates:
        """Return questions by number (n,), each as a separate call."""
        table = columns(self.space, array(numbers))
        return candidates_of((*table, np.arange(len(numbers)), array(numbers)))

    @property
    def certifying(self) -> Certifier:
        """The certifier; raises InputError in an audit that certifies nothing."""
        if self.certifier is None:
            raise InputError("belief: expected an audit with half_width or at_most, got neither")
        return self.certifier

    def needs(self, candidates: Candidates) -> Floats:
        """Return each candidate call's worth (m,) to the targets that are still open."""
        unit, calls = array(candidates.unit), len(candidates.call)
        return self.certifying.needs(self.inside, unit, calls, self.variance(), self._price)

    def needs_by_target(self, candidates: Candidates) -> Floats:
        """Return what each candidate question adds to its call's need, by open target (K x n).

        It is computed once per draw, for the candidates of ``look_at``.
        """
        if self._needs is None:
            unit, calls = array(candidates.unit), len(candidates.call)
            needs = self.certifying.needs_by_target
            self._needs = needs(self.inside, unit, calls, self.variance(), self._price)
        return self._needs

    def costs(self, candidates: Candidates) -> Floats:
        """Return the cost (m,) of each candidate call.

        The unit is a call of all models. A call counts one more if its source was not asked about.
        If prices differ, the number is multiplied by the expected price.
        """
        return np.asarray(self._calls(candidates) * self._price)

    def price_of(self, place: int, question: int) -> Reasons:
        """Return the expected price of a drawn call, for the journal; empty without prices.

        Args:
            place: Place of the call among the candidate calls.
            question: Question that it was drawn for.
        """
        if self.prices is None or self._sent is None:
            return Reasons()
        oracle = self.space.oracle
        asked = oracle.models_asked(np.array([question]))
        return self.prices.reasons(self._sent[place], float(asked[0] / oracle.models))

    def _calls(self, candidates: Candidates) -> Floats:
        """Return how many calls (m,) each candidate call takes, in calls of all models."""
        oracle, calls = self.space.oracle, np.empty(len(candidates.call))
        asked = oracle.models_asked(array(candidates.question))
        calls[array(candidates.unit)] = asked / oracle.models
        if not oracle.needs_source:
            return calls
        first = np.searchsorted(array(candidates.unit), np.arange(len(calls)))
        source = array(candidates.sample)[first]
        if np.array_equal(array(candidates.call), array(candidates.question)):
            # Each call is one question, so every concept has a source.
            source = source * len(self.space.asked) + array(candidates.concept)
        known = np.fromiter(self.sources, np.int64, len(self.sources))
        fresh = ~np.isin(source, known)
        return np.asarray(calls + fresh)

    def expected(self) -> Floats:
        """Return the best prediction (n,) of each candidate's loss.

        Without a surrogate it is the mean of the candidate's targets, 1/2 if it has none.
        """
        if self.predictions is not None:
            return array(self.predictions)
        count = self.inside.sum(axis=0)
        mean = self.certifying.sequences.centre @ (self.inside / np.maximum(count, 1))
        return np.where(count > 0, mean, 0.5)

    def variance(self) -> Floats:
        """Return the variance (n,) of each candidate's loss f: the surrogate's, else f (1 - f)."""
        if self._variance is not None:
            return array(self._variance)
        f = self.expected()
        return np.asarray(f * (1 - f))

    def learn(self, outcomes: Sequence[Observation]) -> None:
        """Learn from judged questions, in order. The answer GPs ignore unanswered ones."""
        self._ahead = None
        counting = [o for o in outcomes if not o.excluded]
        if self.losses is not None and counting:
            with naming("surrogate", self.losses, "observe"):
                self.losses.observe(self._losses(counting))
        numbering, half = self.space.numbering, self._bins // 2
        concepts, coordinates = [], []
        for outcome in outcomes:
            sample, variant, concept = numbering.parts(outcome.question)
            self.asked[sample] = self.asked.get(sample, 0) + 1
            if not outcome.excluded:
                self.tally[concept, outcome.truth, variant] += (1, outcome.loss)
                if outcome.loss >= FAILURE:
                    self.failed.add((sample, concept))
            answer, coordinate = outcome.answer, outcome.coordinate
            if answer is None or coordinate is None:
                continue
            self._soft |= answer not in (0, 1)
            self.hard = 0 if self._soft else self.hard + 1
            image = numbering.image_of(outcome.question)
            place = round(coordinate * self._bins) - outcome.truth * half
            self.received[concept, outcome.truth, variant, min(max(place, 0), half)] += 1
            self.predictability.observe(image, sample, concept, outcome.truth, answer)
            concepts.append(concept)
            coordinates.append(coordinate)
        if concepts:
            from ..surrogates import AnswerPoints

            self._uncertainty = None
            about, at = tensor(np.array(concepts)), tensor(np.array(coordinates, float))
            self.answers.observe(AnswerPoints(about, at))

    @property
    def answers(self) -> "AnswerGP":
        """The answer GPs; raises InputError if the model returns losses instead of answers."""
        if self._answers is None:
            raise InputError(
                "belief: expected answers of a model to learn from, got losses alone; take a "
                "strategy that uses losses, such as 'certify' or 'random'"
            )
        return self._answers

    def uncertainty(self) -> "Tensor":
        """Return u- and u+ of every concept (C x 2, on the CPU), as shares of their prior value."""
        if self._uncertainty is None:  # draws made together read it a few times each
            self._uncertainty = (self.answers.uncertainty() / self.answers.prior_uncertainty).cpu()
        return self._uncertainty

    def side_uncertainty(self) -> Floats:
        """Return ``uncertainty`` as an array; 1, its prior value, if the model returns losses."""
        if self._answers is None:
            return np.ones((len(self.space.concepts), 2))
        return array(self.uncertainty())

    @property
    def lowest(self) -> float:
        """Lowest uncertainty that can be reached while all answers are 0 or 1; 0 otherwise."""
        if not self.hard:
            return 0.0
        from ..surrogates import lowest_with_hard_answers

        return lowest_with_hard_answers(self._form)

    def _losses(self, outcomes: Sequence[Observation]) -> "Losses":
        """Return outcomes as the surrogate learns them, with the two losses of each difference."""
        from ..surrogates import Losses

        numbers = np.array([o.question for o in outcomes])
        truth = tensor(np.array([o.truth for o in outcomes]))
        sample, variant, concept = (tensor(p) for p in self.space.parts(numbers))

        def losses(observations: Iterable[Observation | PairedLoss]) -> "Losses":
            pairs = [(o.loss, o.margin) for o in observations]
            values, margins = map(tensor, np.array(pairs, np.float64).T)  # None becomes NaN
            return Losses(sample, variant, concept, truth, values, margins)

        halves = zip(*(self.space.oracle.paired_losses(o.details) for o in outcomes), strict=True)
        return replace(losses(outcomes), halves=tuple(map(losses, halves)) or None)


def posterior_of(surrogate: "LossSurrogate", candidates: "Questions") -> Posterior:
    """Return the mean and the variance of each candidate's loss by a surrogate.

    Raises:
        InputError: The surrogate raises an error, or returns something else.
    """
    with naming("surrogate", surrogate, "posterior"):
        posterior, count = surrogate.posterior(candidates), len(candidates.sample)
        if not (hasattr(posterior, "mean") and hasattr(posterior, "variance")):
            raise unexpected("", "surrogates.Posterior(mean, variance)", brief(posterior))
        means = per_candidate(posterior.mean, count, "means", 1.0)  # the range of bets
        variances = per_candidate(posterior.variance, count, "variances")
    if hasattr(posterior.mean, "detach") and hasattr(posterior.variance, "detach"):
        return posterior
    return Posterior(tensor(means), tensor(variances))
