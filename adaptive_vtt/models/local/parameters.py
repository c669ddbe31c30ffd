"""A network's parameters: read from a file without running anything of it, and hashed."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile, is_zipfile

from ...errors import InputError, listed, one_line
from ...types import JsonObject
from ...utils.files import near_file

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
        told = {"lacks": lacking, "has besides": needless, "has in another shape": other}
        parts = [f"{how} {len(n)} ({listed(n, 2)})" for how, n in told.items() if n]
        raise InputError(
            f"weights {str(path)!r}: expected the parameters of the network, but it "
            f"{', '.join(parts)}; "
            "function and options in [model] say which network it is"
        )
    module.load_state_dict(given, strict=False)


def _read(path: Path) -> JsonObject:
    if not path.is_file():
        raise InputError(f"weights: file {str(path)!r} does not exist{near_file(path)}")
    try:
        held = _safe_tensors(path) if path.suffix == ".safetensors" else _pickled(path)
    except InputError:
        raise
    except UnpicklingError:  # torch's words for it advise to run what the file holds
        raise _no_parameters(path, "got other objects, which are not loaded") from None
    except Exception as error:  # torch, zipfile and safetensors raise errors of many kinds
        raise _no_parameters(path, f"cannot read it: {one_line(error)[:160]}") from None
    for name in _HOLDERS:
        if isinstance(held, Mapping) and isinstance(held.get(name), Mapping):
            held = held[name]
    if not isinstance(held, Mapping) or not all(hasattr(v, "shape") for v in held.values()):
        raise InputError(
            f"weights {str(path)!r}: expected parameters by name, or a checkpoint that holds them "
            f"under one of {', '.join(_HOLDERS)}, got {_in_words(held)}"
        )
    return dict(held)


def _in_words(held: object) -> str:
    return f"{listed(held)}" if isinstance(held, Mapping) else type(held).__name__


def _no_parameters(path: Path, instead: str) -> InputError:
    return InputError(
        f"weights {str(path)!r}: expected parameters alone, in .safetensors or as "
        f"torch.save(network.state_dict(), FILE) writes them, {instead}"
    )


def _is_script(path: Path) -> bool:
    if not is_zipfile(path):
        return False
    with ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def _pickled(path: Path) -> Any:
    import torch

    if _is_script(path):
        raise _no_parameters(
            path,
            "got TorchScript; a hubconf.py whose function returns torch.jit.load(FILE) takes it, "
            "without weights",
        )
    return torch.load(path, map_location="cpu", weights_only=True)


def _safe_tensors(path: Path) -> Any:
    try:
        from safetensors.torch import load_file
    except ImportError:
        raise InputError(
            f"weights {str(path)!r}: a .safetensors file needs safetensors: pip install safetensors"
        ) from None
    return load_file(path)
