"""Where tensors live."""

import os
from typing import TYPE_CHECKING

from ..errors import InputError, one_line

if TYPE_CHECKING:
    import torch


def pick(device: str = "auto") -> "torch.device":
    """ "auto": CUDA where there is one, else the CPU; or any device torch knows by name.

    Raises InputError for a device that is not there.
    """
    import torch

    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise InputError(
            f"device {device!r} cannot be used: expected auto, cpu, cuda, or another name that "
            "torch knows"
        ) from None
    try:
        torch.ones(1, dtype=torch.float64, device=chosen).item()
    except (RuntimeError, AssertionError, TypeError) as error:
        raise InputError(
            f"device {device!r} cannot be used: {one_line(error)[:120]}; 'auto' is CUDA where "
            "there is one, else cpu"
        ) from None
    return chosen


def cuda_devices() -> list[str]:
    """The CUDA devices that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]
