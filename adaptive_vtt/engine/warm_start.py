"""What an earlier audit foretells of every question: a surrogate that learnt its losses.

That audit asked a small part of the questions, and this one seldom asks the same. What carries over
is not the loss of one question but where losses are: which images, which relations. So a question
GP of its own learns all that was found, once, and what it expects is a proxy of the new model.
It may be wrong as any proxy may. It knows the earlier draws, and nothing of those to come, which
follow from a key of their own (``audit_key``).
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..journal.prior import Prior
from ..space import QuestionSpace
from ..surrogates import Losses, LossSurrogate
from ..types import Floats
from .belief import Observation
from .candidates import columns
from .tensors import array, candidates_of, hashed, tensor

NEUTRAL = 0.5
"""The expected loss where the earlier audit found nothing."""
MAX_KEPT = 2**24
"""Questions of a space up to which expected losses are kept, 64 MB; else they are worked out again
each time."""


class WarmStart:
    """Expected losses of questions, by ``surrogate`` once it has learnt what ``prior`` found.

    ``surrogate`` makes one that has learnt nothing, when it is needed. Raises InputError where the
    earlier audit was of another space.
    """

    def __init__(
        self, prior: Prior, space: QuestionSpace, surrogate: Callable[[], LossSurrogate]
    ) -> None:
        then = prior.space
        if then.fingerprint != space.fingerprint:
            raise InputError(
                f"prior journal {prior.where!r}: expected an audit of this space "
                f"({space.dataset.name!r}, {space.size} questions), got one of "
                f"{then.dataset!r} with {then.size}"
            )
        self._prior, self._space, self._make = prior, space, surrogate
        self._learnt: LossSurrogate | None = None
        self._kept = np.full(space.total if space.total <= MAX_KEPT else 0, np.nan, np.float32)

    @property
    def key(self) -> str:
        """That of the earlier audit."""
        return self._prior.key

    def losses(self, question: npt.NDArray[np.int64], truth: npt.NDArray[np.int64]) -> Floats:
        if not len(self._prior.questions):
            return np.full(len(question), NEUTRAL)
        if not len(self._kept):
            return self._expected(question)
        new = np.unique(question[np.isnan(self._kept[question])])
        if len(new):
            self._kept[new] = self._expected(new)
        return self._kept[question].astype(np.float64)

    def content(self) -> str:
        return f"{self._prior.key} {hashed(self._prior.questions, self._prior.losses)}"

    def _expected(self, question: npt.NDArray[np.int64]) -> Floats:
        if self._learnt is None:
            self._learnt = self._taught()
        table = columns(self._space, question)
        places = np.arange(len(question))
        return array(self._learnt.posterior(candidates_of((*table, places, question))).mean)

    def _taught(self) -> LossSurrogate:
        prior, surrogate = self._prior, self._make()
        table = columns(self._space, prior.questions)
        sample, variant, concept, truth = (tensor(np.ascontiguousarray(row)) for row in table[2:])
        margins = np.array([Observation.of(row, False).margin for row in prior.answers], float)
        losses = Losses(sample, variant, concept, truth, tensor(prior.losses), tensor(margins))
        surrogate.observe(losses)
        return surrogate
