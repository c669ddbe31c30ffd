"""A network's parameters: read from a file without running anything of it, and hashed."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from ...errors import InputError, listed, one_line
from ...types import JsonObject
from ...utils.files import near_file
from .model_files import is_script

if TYPE_CHECKING:
    import torch

_HOLDERS = ("state_dict", "model_state_dict", "model", "network", "net")
"""Under which names training programs keep the parameters, in this order."""
_WRAPPERS = ("module.", "model.", "net.")
"""What data-parallel training and training programs put before every name."""


def hash_of(module: "torch.nn.Module", use: str = "") -> str:
    """A short hash of a module's parameters and of the buffers that are saved with them, such as
    the statistics of batch norm: one that was trained on is another model. ``use``: what else
    decides its answers."""
    import torch

    digest = hashlib.blake2b(digest_size=8)
    for name, values in module.state_dict().items():
        digest.update(name.encode())
        flat = values.detach().cpu().contiguous().flatten().view(torch.uint8)
        digest.update(memoryview(flat.numpy()))
    digest.update(use.encode())
    return digest.hexdigest()


def load_parameters(module: "torch.nn.Module", path: Path) -> None:
    """Gives a module the parameters of a file: .safetensors, or what ``torch.save`` wrote.

    A checkpoint that holds them under "state_dict" or the like will do, and names behind
    "module." or "model.". No code in the file is run. Raises InputError for files that cannot be
    read, and for parameters that are not exactly the module's.
    """
    given, expected = _read(path), module.state_dict()
    for wrapper in _WRAPPERS:
        if not given.keys() & expected.keys() and all(name.startswith(wrapper) for name in given):
            given = {name.removeprefix(wrapper): values for name, values in given.items()}
    # counts of batches, which old checkpoints lack, matter to training alone
    counts = {name for name in expected if name.endswith("num_batches_tracked")}
    lacking = [name for name in expected if name not in given and name not in counts]
    needless = [name for name in given if name not in expected]
    other = [n for n in expected if n in given and given[n].shape != expected[n].shape]
    if lacking or needless or other:
        wrong = {"lacks": lacking, "has besides": needless, "has in another shape": other}
        parts = [
            f"{how} {len(names)} ({listed(names, 2)})" for how, names in wrong.items() if names
        ]
        raise InputError(
            f"weights {str(path)!r}: expected the parameters of the network, but it "
            f"{', '.join(parts)}; "
            "function and options in [model] say which network it is"
        )
    module.load_state_dict(given, strict=False)


def _read(path: Path) -> JsonObject:
    if not path.is_file():
        raise InputError(f"weights: file {str(path)!r} does not exist{near_file(path)}")
    expected = (
        f"weights {str(path)!r}: expected parameters alone, in .safetensors or as "
        "torch.save(network.state_dict(), FILE) writes them"
    )
    try:
        held = _held(path, expected)
    except InputError:
        raise
    except ImportError:
        raise InputError(
            f"weights {str(path)!r}: a .safetensors file needs safetensors: pip install safetensors"
        ) from None
    except UnpicklingError:  # torch's words for it advise to run what the file holds
        raise InputError(f"{expected}, got other objects, which are not loaded") from None
    except Exception as error:  # torch, zipfile and safetensors raise errors of many kinds
        raise InputError(f"{expected}, cannot read it: {one_line(error)[:160]}") from None
    for name in _HOLDERS:
        if isinstance(held, Mapping) and isinstance(held.get(name), Mapping):
            held = held[name]
    if not isinstance(held, Mapping) or not all(hasattr(v, "shape") for v in held.values()):
        got = listed(held) if isinstance(held, Mapping) else type(held).__name__
        raise InputError(
            f"weights {str(path)!r}: expected parameters by name, or a checkpoint that holds them "
            f"under one of {', '.join(_HOLDERS)}, got {got}"
        )
    return dict(held)


def _held(path: Path, expected: str) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    if is_script(path):
        raise InputError(
            f"{expected}, got TorchScript; a hubconf.py whose function returns "
            "torch.jit.load(FILE) takes it, without weights"
        )
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)
