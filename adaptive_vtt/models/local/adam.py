"""One step of Adam, for nets that are taught within an audit.

By hand, since the first use of ``torch.optim`` imports a compiler for two seconds.
"""

from torch import Tensor

MEMORY = (0.9, 0.99)
"""Share of its mean and mean square of gradients that Adam keeps in each step."""


def move(
    weight: Tensor, mean: Tensor, square: Tensor, gradient: Tensor, step: int, rate: float
) -> None:
    """One step of Adam (Kingma and Ba, ICLR 2015), in place; step 1 is the first.

    ``mean``, ``square``: of the gradients so far, zeros at first; shapes as ``weight``'s.
    """
    mean.lerp_(gradient, 1 - MEMORY[0])
    square.lerp_(gradient.square(), 1 - MEMORY[1])
    spread = (square / (1 - MEMORY[1] ** step)).sqrt() + 1e-8
    weight -= rate / (1 - MEMORY[0] ** step) * mean / spread


def risen_and_fallen(done: float) -> float:
    """The learning rate's share of its highest: it rises for three tenths, then falls to 0.

    ``done``: the share of all steps that is done, in (0, 1].
    """
    return min(done / 0.3, (1 - done) / 0.7)
