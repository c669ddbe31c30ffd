"""Files of trained models.

ONNX and TorchScript files are models. Of others there are the lines that make a model of them, and
parameters are loaded into a network. Nothing is unpickled here: a pickle is a program, and its user
decides whether to run it, in lines of their own.
"""

import hashlib
import pickletools
import zipfile
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from ...errors import InputError, listed, one_line
from ...types import JsonObject
from ...utils.files import as_file, near_file

if TYPE_CHECKING:
    import torch

ENDINGS = (".onnx", ".pt", ".pth", ".joblib", ".pkl")
"""Endings of files of models."""
_HOLDERS = ("state_dict", "model_state_dict", "model", "network", "net")
"""Names under which training programs keep the parameters, in this order."""
_WRAPPERS = ("module.", "model.", "net.")
"""Prefixes that data-parallel training and training programs put before every name."""


def lines(path: Path, file: str, concepts: int) -> str:
    """Return the lines of Python that make a model, named ``network`` or ``predict``, of a file.

    Args:
        path: The file.
        file: The path as an expression.
        concepts: How many concepts are asked about.

    Raises:
        InputError: It is no file of a model.
    """
    if path.suffix not in ENDINGS[1:]:
        raise InputError(f"model: expected a file {', '.join(ENDINGS)}, got {str(path)!r}")
    kind = _kind(path) if path.suffix in (".pt", ".pth") else "estimator"
    from ...utils.web import text_of  # jinja2, which audits do without

    return text_of(__package__, f"{kind}.py", file=file, concepts=concepts)


def is_script(path: Path) -> bool:
    return path.suffix in (".pt", ".pth") and _kind(path) == "script"


def _kind(path: Path) -> str:
    """Return what torch wrote into the file, "script", "parameters" or "other", without running
    any of it."""
    try:
        with zipfile.ZipFile(as_file(path)) as archive:
            names = archive.namelist()
            if any(name.partition("/")[2].startswith("code/") for name in names):
                return "script"
            pickled = next(name for name in names if name.endswith("/data.pkl"))
            with archive.open(pickled) as file:
                made = [a for code, a, _ in pickletools.genops(file) if code.name == "GLOBAL"]
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile):
        return "other"
    return "parameters" if made[:1] == ["collections OrderedDict"] else "other"


def hash_of(module: "torch.nn.Module", use: str = "") -> str:
    """Return a short hash of a module's parameters and of the buffers that are saved with them,
    such as the statistics of batch norm. ``use``: what else decides its answers."""
    import torch

    digest = hashlib.blake2b(digest_size=8)
    for name, values in module.state_dict().items():
        digest.update(name.encode())
        flat = values.detach().cpu().contiguous().flatten().view(torch.uint8)
        digest.update(memoryview(flat.numpy()))
    digest.update(use.encode())
    return digest.hexdigest()


def load_parameters(module: "torch.nn.Module", path: Path) -> None:
    """Load the parameters of a file into a module: .safetensors, or what ``torch.save`` wrote.

    They may stand in a checkpoint under "state_dict" or the like, and behind "module." or "model.".
    No code in the file is run. Raises InputError for files that cannot be read, and for parameters
    that are not exactly the module's.
    """
    given, expected = _read(path), module.state_dict()
    for wrapper in _WRAPPERS:
        if not given.keys() & expected.keys() and all(name.startswith(wrapper) for name in given):
            given = {name.removeprefix(wrapper): values for name, values in given.items()}
    wrong = {
        # counts of batches, which old checkpoints lack, matter to training alone
        "lacks": [n for n in expected if n not in given and not n.endswith("batches_tracked")],
        "has additional": [name for name in given if name not in expected],
        "has in another shape": [
            n for n in expected if n in given and given[n].shape != expected[n].shape
        ],
    }
    parts = [f"{how} {len(names)} ({listed(names, 2)})" for how, names in wrong.items() if names]
    if parts:
        raise InputError(
            f"weights {str(path)!r}: expected the parameters of the network, but it "
            f"{', '.join(parts)}; function and options in [model] define the network"
        )
    module.load_state_dict(given, strict=False)


def _read(path: Path) -> JsonObject:
    where = f"weights {str(path)!r}"
    if not path.is_file():
        raise InputError(f"weights: file {str(path)!r} does not exist{near_file(path)}")
    expected = (
        f"{where}: expected parameters alone, in .safetensors or as "
        "torch.save(network.state_dict(), FILE) writes them"
    )
    try:
        held = _held(path, expected)
    except InputError:
        raise
    except ImportError:
        pip = "a .safetensors file needs safetensors: pip install safetensors"
        raise InputError(f"{where}: {pip}") from None
    except UnpicklingError:  # torch's message for it advises to run what the file holds
        raise InputError(f"{expected}, got other objects, which are not loaded") from None
    except Exception as error:  # torch, zipfile and safetensors raise errors of many kinds
        raise InputError(f"{expected}, cannot read it: {one_line(error)[:160]}") from None
    for name in _HOLDERS:
        if isinstance(held, Mapping) and isinstance(held.get(name), Mapping):
            held = held[name]
    if not isinstance(held, Mapping) or not all(hasattr(v, "shape") for v in held.values()):
        got = listed(held) if isinstance(held, Mapping) else type(held).__name__
        names = ", ".join(_HOLDERS)
        expected = f"parameters by name, or a checkpoint that holds them under one of {names}"
        raise InputError(f"{where}: expected {expected}, got {got}")
    return dict(held)


def _held(path: Path, expected: str) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    if is_script(path):
        remedy = (
            "a hubconf.py whose function returns torch.jit.load(FILE) takes it, without weights"
        )
        raise InputError(f"{expected}, got TorchScript; {remedy}")
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)
