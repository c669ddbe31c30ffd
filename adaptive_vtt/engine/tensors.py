"""Conversion between NumPy arrays, in the engine, and torch tensors, in surrogates and strategies.

No other file of the engine imports torch, and this one does so only when a tensor is made.
"""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import unexpected
from ..types import Candidates, Floats, Indices

if TYPE_CHECKING:
    from torch import Tensor as Tensor


MAX = 1e300
"""Highest number of a user's part, so that sums of them are finite."""


def load_torch() -> None:
    """Load PyTorch: ``utils.threads.one_thread`` limits its threads only if it is loaded."""
    import torch  # noqa: F401


def array(values: "Tensor | npt.ArrayLike") -> npt.NDArray[Any]:
    """Return a tensor, an array or a list as an array.

    A tensor on the CPU shares its memory with the array.
    """
    return np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else values)


def per_candidate(values: Any, count: int, what: str, highest: float = MAX) -> Floats:
    """Return what a part computed for ``count`` candidates as an array.

    Args:
        values: A tensor, an array or a list.
        count: The number of candidates.
        what: What they are, such as "weights".
        highest: The highest value; the lowest is 0.

    Raises:
        InputError: They are no such numbers.
    """
    got, remedy = type(values).__name__, "return a vector as long as candidates"
    numbers = array(values)
    if numbers.shape == (count,) and numbers.dtype.kind in "biuf":
        bad = np.flatnonzero(~((numbers >= 0) & (numbers <= highest)))  # NaN is neither
        if not len(bad):
            return numbers.astype(np.float64, copy=False)
        got, remedy = f"{numbers[bad[0]]} for candidate {bad[0]}", ""
    elif numbers.ndim:
        got += f" of shape {numbers.shape} and type {numbers.dtype}"
    within = f"finite {what} of at least 0" if highest == MAX else f"{what} from 0 to {highest:g}"
    expected = f"{count} {within}, one per candidate"
    raise unexpected("", expected, got, remedy)


def tensor(values: npt.NDArray[Any], like: "Tensor | None" = None) -> "Tensor":
    """Return an array as a tensor of its shape and type, on the device of ``like``.

    On the CPU, the default, it shares its memory with the array.
    """
    import torch

    shared = torch.from_numpy(values)
    return shared if like is None else shared.to(like.device)


def hashed(*arrays: npt.NDArray[Any]) -> str:
    """Return a hash of the arrays' values, 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for values in arrays:
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def joined(parts: "Iterable[Tensor]") -> "Tensor":
    """Return the tensors concatenated along their first axis."""
    import torch

    return torch.cat(tuple(parts))


def candidates_of(columns: Iterable[Indices], *, plain: bool = False) -> Candidates:
    """Return candidates from int64 columns, in the order of ``Candidates``' fields.

    With ``plain`` they stay arrays, for strategies that use NumPy alone.
    """
    return Candidates(*(columns if plain else map(tensor, columns)))
