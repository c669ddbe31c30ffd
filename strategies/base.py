"""Protocols of strategies, and of the belief that they read."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from adaptive_vtt.types import Bools, Candidates, Floats

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    from adaptive_vtt.certify import Certifier
    from adaptive_vtt.space import QuestionSpace
    from adaptive_vtt.surrogates import AnswerGP, LossSurrogate, Predictability, QuestionModel


class BeliefView(Protocol):
    """Everything that an audit has learnt; ``engine.belief.Belief`` implements it.

    There are C concepts and V variants. Side 0 holds the questions with the truth No, side 1 those
    with Yes.
    """

    @property
    def space(self) -> "QuestionSpace":
        """All questions of the audit."""

    @property
    def answers(self) -> "AnswerGP":
        """Answer GPs, with the uncertainty of each concept's sides."""

    @property
    def predictability(self) -> "Predictability":
        """Probability of a Yes, given earlier answers about the same image."""

    @property
    def losses(self) -> "LossSurrogate | None":
        """Surrogate of losses, by default the question GP; None in audits without one."""

    def model(self) -> "QuestionModel":
        """Return the question GP as a BoTorch model, for acquisition functions.

        A point of X (... x q x 1) is the number of a question.

        Raises:
            InputError: There is no question GP.
        """

    @property
    def certifier(self) -> "Certifier | None":
        """Intervals of all targets; None in audits that certify nothing."""

    @property
    def received(self) -> "npt.NDArray[np.float32]":
        """C x 2 x V x 51: numbers of answers by concept, side, variant and bin of that side."""

    @property
    def tally(self) -> "Floats":
        """C x 2 x V x 2: judged questions, and the sum of their losses."""

    @property
    def asked(self) -> Mapping[int, int]:
        """Sample -> number of judged questions about it, in the order of the first ones."""

    @property
    def failed(self) -> set[tuple[int, int]]:
        """(sample, concept) pairs with a loss of 0.5 or more."""

    @property
    def inside(self) -> Bools:
        """K x n: which targets hold each of this draw's candidates."""

    @property
    def predictions(self) -> "Tensor | None":
        """(n,): expected loss of each of this draw's candidates by ``losses``, if it has any."""

    def uncertainty(self) -> "Tensor":
        """Return u- and u+ of every concept as shares of their prior values, C x 2 on the CPU."""

    def expected(self) -> Floats:
        """Return the best prediction of the loss of each of this draw's candidates, (n,)."""

    def variance(self) -> Floats:
        """Return the variance of these losses (n,), by the surrogate or as f (1 - f)."""

    def needs(self, candidates: Candidates) -> Floats:
        """Return the worth of each candidate call to the open targets, (m,)."""

    def needs_by_target(self, candidates: Candidates) -> Floats:
        """Return each question's part of its call's need by target, K x n; 0 if not open."""

    def costs(self, candidates: Candidates) -> Floats:
        """Return the cost of each candidate call, (m,).

        It is the number of calls that it takes, with those about its source image. Where prices
        differ, it is multiplied by the expected price of one.
        """


class Strategy(Protocol):
    """Function from belief to weights of candidates; the engine draws by them."""

    def weights(self, candidates: Candidates, belief: BeliefView) -> "Tensor | Floats":
        """Return the weight of each candidate.

        The result must depend on the arguments alone, and must not change them.

        Args:
            candidates: n >= 1 candidate questions of a draw.
            belief: All that the audit has learnt.

        Returns:
            Weights (n,), a tensor or an array: finite, at least 0, not all 0.
        """


@runtime_checkable
class Mixed(Protocol):
    """A strategy whose weights are a sum of several, each with another reason."""

    def mixture(
        self, candidates: Candidates, belief: BeliefView
    ) -> "Mapping[str, Tensor] | Mapping[str, Floats]":
        """Return the weights (n,) of each part, by its name in the journal."""


@runtime_checkable
class Reasoned(Protocol):
    """A strategy that gives reasons for a draw."""

    def reasons(
        self, candidates: Candidates, belief: BeliefView, place: int
    ) -> dict[str, float | int]:
        """Return figures that led to a draw, by name, for the journal and the report.

        Args:
            candidates: The candidates of the draw.
            belief: The belief before it.
            place: Place of the question drawn among the candidates.
        """
