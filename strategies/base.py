"""What a strategy is, one method, and what it may read."""

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
    """What an audit has learnt, as strategies read it; ``engine.belief.Belief`` is one.

    C concepts, V variants; side 0 is of questions whose truth is No, side 1 of the others.
    """

    @property
    def space(self) -> "QuestionSpace":
        """All questions of the audit."""

    @property
    def answers(self) -> "AnswerGP":
        """The answer GPs: how sure each side's answers are, by concept."""

    @property
    def predictability(self) -> "Predictability":
        """How probable a Yes is, given the answers about the same image."""

    @property
    def losses(self) -> "LossSurrogate | None":
        """What predicts losses, mostly the question GP; None in audits that certify nothing or go
        without."""

    def model(self) -> "QuestionModel":
        """What the question GP believes, as a model for BoTorch's acquisition functions: X holds
        questions by number, (... x q x 1). Raises InputError where there is no question GP."""

    @property
    def certifier(self) -> "Certifier | None":
        """The intervals of all targets; None in audits that certify nothing."""

    @property
    def received(self) -> "npt.NDArray[np.float32]":
        """C x 2 x V x 51: counts of answers by concept, side, variant and bin of that side."""

    @property
    def tally(self) -> "Floats":
        """C x 2 x V x 2: questions judged, and their summed losses."""

    @property
    def asked(self) -> Mapping[int, int]:
        """Sample -> how many questions were judged of it, in order of the first."""

    @property
    def failed(self) -> set[tuple[int, int]]:
        """(sample, concept) pairs whose loss was 0.5 or more."""

    @property
    def inside(self) -> Bools:
        """K x n: which targets each candidate of this draw belongs to."""

    @property
    def predictions(self) -> "Tensor | None":
        """(n,): the expected loss of each candidate of this draw, by ``losses``."""

    def uncertainty(self) -> "Tensor":
        """C x 2 on the CPU: u- and u+ of every concept, as shares of their prior value."""

    def expected(self) -> Floats:
        """(n,): the loss of each candidate of this draw, by the best prediction there is."""

    def variance(self) -> Floats:
        """(n,): the variance of that loss: what predicts losses says, else f (1 - f)."""

    def needs(self, candidates: Candidates) -> Floats:
        """(m,): what each candidate call is worth to the targets that are still open."""

    def needs_by_target(self, candidates: Candidates) -> Floats:
        """K x n: what each candidate question adds to its call's need, by open target."""

    def costs(self, candidates: Candidates) -> Floats:
        """(m,): how many calls each candidate call takes, those about its source included; where
        prices differ, times what one is expected to cost."""


class Strategy(Protocol):
    """Says how much each candidate is worth asking; the engine draws."""

    def weights(self, candidates: Candidates, belief: BeliefView) -> "Tensor | Floats":
        """Weights (n,), a tensor or an array, finite, >= 0, not all zero, for n >= 1 candidates.

        Must depend on nothing but its arguments, and must not change them.
        """


@runtime_checkable
class Mixed(Protocol):
    """A strategy whose weights are the sum of several, each for a reason of its own."""

    def mixture(
        self, candidates: Candidates, belief: BeliefView
    ) -> "Mapping[str, Tensor] | Mapping[str, Floats]":
        """Those weights (n,), by what stands for them in the journal: a word."""


@runtime_checkable
class Reasoned(Protocol):
    """A strategy that says what it went by."""

    def reasons(
        self, candidates: Candidates, belief: BeliefView, place: int
    ) -> dict[str, float | int]:
        """What decided about the candidate at ``place``, once it was drawn, by name: for the
        journal and the report."""
