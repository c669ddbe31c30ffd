"""What the audit has learnt, for strategies to read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import surrogates
from ..certify import Certifier
from ..errors import InputError
from ..journal.rows import AnswerRow, Reasons
from ..oracles.labels import margin
from ..space import QuestionSpace
from ..types import Bools, Candidates, Floats, Indices, PairedLoss
from ..utils.random_streams import generator
from .candidates import columns
from .prices import Prices
from .tensors import array, candidates_of, joined, tensor

if TYPE_CHECKING:
    from ..surrogates import AnswerGP, Losses, LossSurrogate, Posterior, QuestionModel
    from ..surrogates.question_gp import Questions
    from .tensors import Tensor

REFERENCE = 2_000
"""Samples over which predictability is counted, at most."""

FAILURE = 0.5
"""A loss from here on is a failure."""


@dataclass(frozen=True)
class Observation:
    """One judged question: where it stands, its truth, P(yes) and a (None: unanswered).

    ``loss`` is the oracle's; the mean loss of all questions surely lies between those of
    ``low`` and ``high``, which differ from it only where unanswered questions count both
    ways. ``details``: what else the oracle returned, as JSON has it. ``margin``: by how much the
    answer was right; see ``margin``. ``excluded``: it turned out not to count; its loss, 0, teaches
    nothing.
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
        """A judged answer as journaled; ``both``: unanswered questions count both ways."""
        open_ = row.answer is None and both and not row.excluded
        low, high = (0.0, 1.0) if open_ else (None, None)
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
    """The answer GPs per concept, how predictable each image's next answer is, and, in audits
    that certify, the expected loss of every question and how far each target is.

    ``losses``: what predicts losses, mostly a QuestionGP, or None; ``certifier``: a Certifier or
    None. ``received``: counts of
    answers C x 2 x V x 51, by concept, side, variant and bin of that side's half. ``tally``:
    questions judged and their summed losses, C x 2 x V x 2. ``asked``:
    sample -> how many questions were judged of it, in order of the first; ``failed``: (sample,
    concept) pairs.
    ``hard``: how many answers there were, where all of them were 0 or 1; else 0.
    ``form`` is that of AnswerGP's uncertainty, ``history`` that of Predictability.
    ``prices``: what calls are expected to cost; None: all the same.
    """

    def __init__(
        self,
        space: QuestionSpace,
        *,
        seed: int | str,
        device: str = "cpu",
        losses: "LossSurrogate | None" = None,
        certifier: Certifier | None = None,
        form: surrogates.Form = "std",
        history: surrogates.History = "truth",
        prices: Prices | None = None,
    ) -> None:
        self.space = space
        self.prices = prices
        self._answers: AnswerGP | None = None
        if not space.oracle.tells_losses:
            self._answers = surrogates.AnswerGP(len(space.concepts), form=form, device=device)
            reference = space.dataset.reference(REFERENCE, generator(seed, "reference"))
            self.predictability = surrogates.Predictability(*reference, history=history)
        self.losses = losses
        self.certifier = certifier
        # answers by concept, side, variant, and bin counted from the side's lower end
        self._places = surrogates.BINS - 1
        shape = (len(space.concepts), 2, len(space.variants), self._places // 2 + 1)
        self.received = np.zeros(shape, dtype=np.float32)
        self.tally = np.zeros((*shape[:3], 2))
        self.hard, self._soft = 0, False
        self._form = form
        self.sources: set[int] = set()  # asked about; shared with the audit
        self.asked: dict[int, int] = {}
        self.failed: set[tuple[int, int]] = set()
        self.inside: Bools = np.zeros((0, 0), dtype=bool)
        self.predictions: Tensor | None = None
        self._variance: Tensor | None = None  # of what was predicted
        self._needs: Floats | None = None  # by target, of the candidates looked at
        self._ahead: tuple[Indices, Posterior] | None = None  # of questions, ascending
        self._uncertain: Tensor | None = None
        self._sent: Floats | None = None  # m x 2: what the calls looked at send
        self._price: Floats | float = 1.0  # (m,) of them; 1: all the same

    def look_at(self, candidates: Candidates) -> None:
        """Prepares ``inside`` (K x n) and ``predictions`` (n,) for the candidates of a draw."""
        self._needs = None
        if self.prices is not None:
            unit = array(candidates.unit)
            first = np.searchsorted(unit, np.arange(len(candidates.call)))
            about = array(candidates.sample)[first], array(candidates.concept)[first]
            self._sent = self.prices.sent(*about)
            price = self.prices.expected(self._sent)
            self._price = price if np.ptp(price) > 0 else 1.0
        if self.certifier is not None:
            self.inside = self.certifier.members(array(candidates.question))
        if self.losses is not None:
            posterior = self._predicted(candidates, self.losses)
            self.predictions, self._variance = posterior.mean, posterior.variance

    def look_ahead(self, slices: Iterable[Candidates]) -> None:
        """Predicts these questions, in ascending order, once for all draws until more is learnt.

        Does nothing where that was done.
        """
        if self._ahead is not None or self.losses is None:
            return
        parts = [(s.question, self.losses.posterior(s)) for s in slices]
        questions = joined([question for question, _ in parts])
        means = joined([posterior.mean for _, posterior in parts])
        variances = joined([posterior.variance for _, posterior in parts])
        self._ahead = (
            array(questions),
            surrogates.Posterior(_in_range(self.losses, means), variances),
        )

    def _predicted(self, candidates: Candidates, losses: "LossSurrogate") -> "Posterior":
        """What ``losses`` expects of each candidate, (n,) each."""
        if self._ahead is None:
            posterior = losses.posterior(candidates)
            return surrogates.Posterior(_in_range(losses, posterior.mean), posterior.variance)
        questions, ahead = self._ahead
        places = tensor(np.searchsorted(questions, array(candidates.question)))
        return surrogates.Posterior(ahead.mean[places], ahead.variance[places])

    def foreseen(self, candidates: "Questions") -> Floats:
        """(n,): what is expected now of these questions, whatever was looked at. Raises InputError
        where nothing predicts losses."""
        if self.losses is None:
            raise InputError("belief: expected a surrogate that predicts losses, got none")
        return array(_in_range(self.losses, self.losses.posterior(candidates).mean))

    def model(self) -> "QuestionModel":
        """What the question GP believes, as a BoTorch model whose points are questions by number,
        (... x q x 1). Raises InputError where something else predicts losses, or nothing."""
        if not isinstance(self.losses, surrogates.QuestionGP):
            raise InputError(
                "belief: expected the question GP, of which BoTorch can make use, got "
                f"{type(self.losses).__name__}; give half_width, and no other surrogate"
            )
        return surrogates.QuestionModel(self.losses, self._questions)

    def _questions(self, numbers: "Tensor") -> Candidates:
        """Questions by number (n,), each as a call of its own."""
        table = columns(self.space, array(numbers))
        return candidates_of((*table, np.arange(len(numbers)), array(numbers)))

    @property
    def certifying(self) -> Certifier:
        """The certifier. Raises InputError for an audit that explores and has none."""
        if self.certifier is None:
            raise InputError("belief: expected an audit with half_width or at_most, got neither")
        return self.certifier

    def needs(self, candidates: Candidates) -> Floats:
        """(m,): what each candidate call is worth to the targets that are still open."""
        unit, calls = array(candidates.unit), len(candidates.call)
        return self.certifying.needs(self.inside, unit, calls, self.variance(), self._price)

    def needs_by_target(self, candidates: Candidates) -> Floats:
        """K x n: what each candidate question adds to its call's need, by open target.

        Worked out once per draw, of the candidates that were looked at.
        """
        if self._needs is None:
            unit, calls = array(candidates.unit), len(candidates.call)
            find = self.certifying.needs_by_target
            self._needs = find(self.inside, unit, calls, self.variance(), self._price)
        return self._needs

    def costs(self, candidates: Candidates) -> Floats:
        """(m,): how many calls each candidate call takes, those about its source included, relative
        to a call of all models; where prices differ, times what one is expected to cost."""
        return np.asarray(self._calls(candidates) * self._price)

    def price_of(self, place: int, question: int) -> Reasons:
        """What the proposal went by for the call at ``place``, drawn for ``question``: for the
        journal. Empty where prices are not known."""
        if self.prices is None or self._sent is None:
            return Reasons()
        oracle = self.space.oracle
        asked = oracle.models_asked(np.array([question]))
        return self.prices.reasons(self._sent[place], float(asked[0] / oracle.models))

    def _calls(self, candidates: Candidates) -> Floats:
        oracle, calls = self.space.oracle, np.empty(len(candidates.call))
        asked = oracle.models_asked(array(candidates.question))
        calls[array(candidates.unit)] = asked / oracle.models
        if not oracle.needs_source:
            return calls
        first = np.searchsorted(array(candidates.unit), np.arange(len(calls)))
        source = array(candidates.sample)[first]
        alone = np.array_equal(array(candidates.call), array(candidates.question))
        if alone:  # each call is one question: a source per concept
            source = source * len(self.space.asked) + array(candidates.concept)
        known = np.fromiter(self.sources, np.int64, len(self.sources))
        fresh = ~np.isin(source, known)
        return np.asarray(calls + fresh)

    def expected(self) -> Floats:
        """(n,): each candidate's loss, by the best prediction there is: what predicts losses, else
        the mean of the targets it belongs to, 1/2 in none."""
        if self.predictions is not None:
            return array(self.predictions)
        count = self.inside.sum(axis=0)
        mean = self.certifying.sequences.centre @ (self.inside / np.maximum(count, 1))
        return np.where(count > 0, mean, 0.5)

    def variance(self) -> Floats:
        """(n,): variance of each candidate's loss: what predicts it says, else f (1 - f)."""
        if self._variance is not None:
            return array(self._variance)
        f = self.expected()
        return np.asarray(f * (1 - f))

    def learn(self, outcomes: Sequence[Observation]) -> None:
        """Takes in judged questions, in order. Those unanswered teach the answer GPs nothing."""
        self._ahead = None
        counting = [o for o in outcomes if not o.excluded]
        if self.losses is not None and counting:
            self.losses.observe(self._losses(counting))
        self._remember(outcomes)
        numbering = self.space.numbering
        half = self._places // 2
        concepts, coordinates = [], []
        for outcome in outcomes:
            answer, coordinate = outcome.answer, outcome.coordinate
            if answer is None or coordinate is None:
                continue
            self._soft |= answer not in (0, 1)
            self.hard = 0 if self._soft else self.hard + 1
            image = numbering.image_of(outcome.question)
            sample, variant, concept = numbering.parts(outcome.question)
            place = round(coordinate * self._places) - outcome.truth * half
            self.received[concept, outcome.truth, variant, min(max(place, 0), half)] += 1
            self.predictability.observe(image, sample, concept, outcome.truth, answer)
            concepts.append(concept)
            coordinates.append(coordinate)
        if concepts:
            self._uncertain = None
            points = surrogates.AnswerPoints(
                tensor(np.array(concepts)), tensor(np.array(coordinates, float))
            )
            self.answers.observe(points)

    def _remember(self, outcomes: Sequence[Observation]) -> None:
        """Keeps which samples were judged, and which concepts failed on which of them."""
        for outcome in outcomes:
            sample, variant, concept = self.space.numbering.parts(outcome.question)
            self.asked[sample] = self.asked.get(sample, 0) + 1
            if outcome.excluded:
                continue
            self.tally[concept, outcome.truth, variant] += (1, outcome.loss)
            if outcome.loss >= FAILURE:
                self.failed.add((sample, concept))

    @property
    def answers(self) -> "AnswerGP":
        """The answer GPs. Raises InputError where the model returns losses, and no answers."""
        if self._answers is None:
            raise InputError(
                "belief: expected answers of a model to learn from, got losses alone; take a "
                "strategy that goes by losses, such as 'certify' or 'random'"
            )
        return self._answers

    def uncertainty(self) -> "Tensor":
        """C x 2 on the CPU: u- and u+ of every concept, as shares of their prior value."""
        if self._uncertain is None:  # draws that are made together ask for it a few times each
            self._uncertain = (self.answers.uncertainty() / self.answers.prior_uncertainty).cpu()
        return self._uncertain

    def side_uncertainty(self) -> Floats:
        """``uncertainty`` as an array; 1, as before any answer, where the model returns losses."""
        if self._answers is None:
            return np.ones((len(self.space.concepts), 2))
        return array(self.uncertainty())

    @property
    def lowest(self) -> float:
        """What no uncertainty falls below while all answers are 0 or 1; 0 where they are not."""
        return surrogates.lowest_with_hard_answers(self._form) if self.hard else 0.0

    def _losses(self, outcomes: Sequence[Observation]) -> "Losses":
        numbers = np.array([o.question for o in outcomes])
        truth = tensor(np.array([o.truth for o in outcomes]))
        sample, variant, concept = (tensor(p) for p in self.space.parts(numbers))

        def losses(observations: Iterable[Observation | PairedLoss]) -> "Losses":
            pairs = [(one.loss, one.margin) for one in observations]
            lost, margins = np.array(pairs, np.float64).T  # None: NaN
            return surrogates.Losses(sample, variant, concept, truth, tensor(lost), tensor(margins))

        halves = zip(*(self.space.oracle.paired_losses(o.details) for o in outcomes), strict=True)
        return replace(losses(outcomes), halves=tuple(map(losses, halves)) or None)


def _in_range(surrogate: "LossSurrogate", means: "Tensor") -> "Tensor":
    """Expected losses again; raises InputError where any is not in [0, 1], as bets need it."""
    values = array(means)
    if not ((values >= 0) & (values <= 1)).all():
        raise InputError(
            f"surrogate {type(surrogate).__name__!r}: expected means in [0, 1], got "
            f"{values.min()} to {values.max()}"
        )
    return means
