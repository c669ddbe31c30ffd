"""The question GP as a BoTorch model, so that BoTorch's acquisition functions score questions.

A point of X (... x q x 1) is a question, by its number in the space. The posterior is normal, with
the question GP's mean and covariance of the expected losses f. Import this module only when needed:
importing BoTorch takes seconds.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from linear_operator.operators import DiagLinearOperator
from torch import Tensor

from .question_gp import QuestionGP, Questions


class _Joint(NamedTuple):
    """Posterior of m questions, with ascending ``numbers`` (m,).

    ``mean`` (m,) and ``covariance`` (m, m) are those of f; ``noise`` (m,) is the variance of an
    answer around f.
    """

    numbers: Tensor
    mean: Tensor
    covariance: Tensor
    noise: Tensor

    def places(self, numbers: Tensor) -> Tensor:
        """Return the places of these numbers, in their shape."""
        return torch.searchsorted(self.numbers, numbers)


class QuestionModel(Model):  # type: ignore[misc]
    """The question GP as a BoTorch model of the expected loss f.

    Args:
        gp: The question GP.
        questions: Question numbers (n,) -> the questions as ``gp`` takes them.
    """

    num_outputs = 1
    batch_shape = torch.Size([])

    def __init__(self, gp: QuestionGP, questions: Callable[[Tensor], Questions]) -> None:
        super().__init__()
        self._gp, self._questions = gp, questions
        self._held: _Joint | None = None

    def posterior(
        self,
        X: Tensor,
        output_indices: Any = None,
        observation_noise: Any = False,
        posterior_transform: Any = None,
        **_: Any,
    ) -> GPyTorchPosterior:
        """Return the posterior of f at the questions X (... x q x 1)."""
        numbers = _numbers(X)
        if numbers.shape[-1] == 1:
            distinct, place = torch.unique(numbers, return_inverse=True)
            marginals = self._gp.posterior(self._questions(distinct), latent=True)
            mean, covariance = marginals.mean[place], DiagLinearOperator(marginals.variance[place])
        else:
            joint = self.joint(numbers)
            place = joint.places(numbers)
            mean = joint.mean[place]
            covariance = joint.covariance[place[..., :, None], place[..., None, :]]
        posterior = GPyTorchPosterior(MultivariateNormal(mean, covariance))
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def joint(self, numbers: Tensor) -> _Joint:
        """Return a cached posterior that contains these questions."""
        numbers = torch.unique(numbers)
        if self._held is None or not bool(torch.isin(numbers, self._held.numbers).all()):
            self._held = _Joint(numbers, *self._gp.normal(self._questions(numbers)))
        return self._held

    def fantasize(self, X: Tensor, *_: Any, **__: Any) -> "Fantasies":
        """Return n models, each with an answer to one question of X (n x 1 x 1)."""
        if X.shape[-2] != 1:
            raise ValueError("one question at a time")
        return Fantasies(self, _numbers(X)[:, 0])


class Fantasies(Model):  # type: ignore[misc]
    """n copies of a model, each with an answer to one of the questions ``answered`` (n,).

    Only variances may be read; they do not depend on the answers.
    """

    num_outputs = 1

    def __init__(self, model: QuestionModel, answered: Tensor) -> None:
        super().__init__()
        self.model, self.answered = model, answered

    def posterior(self, X: Tensor, *_: Any, **__: Any) -> GPyTorchPosterior:
        """Return variances of questions X (... x p x 1), 1 x n x p.

        That of question r after an answer to x is S_rr - S_rx^2 / (S_xx + noise_x).
        """
        numbers = _numbers(X).flatten()
        joint = self.model.joint(torch.cat([self.answered, numbers]))
        answered, points = joint.places(self.answered), joint.places(numbers)
        before = joint.covariance.diagonal()
        total = (before + joint.noise)[answered]
        fall = joint.covariance[answered][:, points].square() / total[:, None]
        variance = (before[points] - fall).clamp(min=0)[None]
        normal = MultivariateNormal(torch.zeros_like(variance), DiagLinearOperator(variance))
        return GPyTorchPosterior(normal)


def _numbers(X: Tensor) -> Tensor:
    """Return X as question numbers; 64-bit floats hold them exactly up to 2^53."""
    return X[..., 0].round().long()
