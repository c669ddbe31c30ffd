"""The hop between NumPy, which the engine speaks, and torch, which surrogates and strategies speak.

Nothing else in the engine imports torch, and this only where a tensor is made.
"""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..types import Candidates, Indices

if TYPE_CHECKING:
    from torch import Tensor as Tensor


def load_torch() -> None:
    """Load PyTorch, whose threads ``utils.threads.one_thread`` limits only once it is loaded."""
    import torch  # noqa: F401


def array(values: "Tensor | npt.ArrayLike") -> npt.NDArray[Any]:
    """The tensor as an array of its shape and type; on the CPU they share their memory. An array
    is taken as it is, and a list becomes one."""
    return np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else values)


def tensor(values: npt.NDArray[Any], like: "Tensor | None" = None) -> "Tensor":
    """The array as a tensor of its shape and type that shares its memory, on the CPU; a copy on
    the device of ``like`` where that is elsewhere."""
    import torch

    copied = torch.from_numpy(values)
    return copied if like is None else copied.to(like.device)


def hashed(*arrays: npt.NDArray[Any]) -> str:
    """A digest of the arrays' values."""
    digest = hashlib.blake2b(digest_size=16)
    for values in arrays:
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def joined(parts: "Iterable[Tensor]") -> "Tensor":
    """The tensors one after the other along their first axis."""
    import torch

    return torch.cat(tuple(parts))


def candidates_of(columns: Iterable[Indices], *, plain: bool = False) -> Candidates:
    """The candidates whose columns these int64 arrays are, in the order of their fields.
    ``plain``: they stay arrays, for who reads them by NumPy alone."""
    return Candidates(*(columns if plain else map(tensor, columns)))
