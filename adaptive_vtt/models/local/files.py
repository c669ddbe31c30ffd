"""Files of trained models: recognise them, and load parameters into a network.

ONNX and TorchScript files can be audited directly. For other files this module prints the code that
makes a model of them. It unpickles nothing, as a pickle can run any program: users decide in their
own code whether to open one.
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
_CHECKPOINT_KEYS = ("state_dict", "model_state_dict", "model", "network", "net")
"""Keys under which checkpoints of training programs hold the parameters, tried in this order."""
_PREFIXES = ("module.", "model.", "net.")
"""Prefixes that data-parallel training and training programs add to the names of parameters."""


def lines(path: Path, file: str, concepts: int) -> str:
    """Return Python code that makes a model, ``network`` or ``predict``, of a file.

    Args:
        path: The file.
        file: The path as a Python expression.
        concepts: Number of concepts that are asked about.

    Raises:
        InputError: The file has no ending of a model, or is ONNX.
    """
    if path.suffix not in ENDINGS[1:]:
        raise InputError(f"model: expected a file {', '.join(ENDINGS)}, got {str(path)!r}")
    kind = _kind(path) if path.suffix in (".pt", ".pth") else "estimator"
    from ...utils.web import text_of  # jinja2, which audits do without

    return text_of(__package__, f"{kind}.py", file=file, concepts=concepts)


def is_script(path: Path) -> bool:
    """Return whether a file is TorchScript."""
    return path.suffix in (".pt", ".pth") and _kind(path) == "script"


def _kind(path: Path) -> str:
    """Return the content of a file of torch, "script", "parameters" or "other".

    The operations of its pickle are read, not run.
    """
    try:
        with zipfile.ZipFile(as_file(path)) as archive:
            names = archive.namelist()
            if any(name.partition("/")[2].startswith("code/") for name in names):
                return "script"
            pickled = next(name for name in names if name.endswith("/data.pkl"))
            with archive.open(pickled) as file:
                classes = [
                    name for code, name, _ in pickletools.genops(file) if code.name == "GLOBAL"
                ]
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile):
        return "other"
    return "parameters" if classes[:1] == ["collections OrderedDict"] else "other"


def hash_of(module: "torch.nn.Module", use: str = "") -> str:
    """Return a hash of 16 hexadecimal digits of a module.

    Args:
        module: Its parameters are hashed, and the buffers that are saved with them, such as the
            statistics of batch norm.
        use: Text with everything else on which its answers depend.
    """
    import torch

    digest = hashlib.blake2b(digest_size=8)
    for name, values in module.state_dict().items():
        digest.update(name.encode())
        flat = values.detach().cpu().contiguous().flatten().view(torch.uint8)
        digest.update(memoryview(flat.numpy()))
    digest.update(use.encode())
    return digest.hexdigest()


def load_parameters(module: "torch.nn.Module", path: Path) -> None:
    """Load parameters from a file into a module. No code in the file is run.

    Args:
        module: The module.
        path: A file .safetensors, or one that ``torch.save`` wrote. The parameters may be part of a
            checkpoint (_CHECKPOINT_KEYS), and their names may have a prefix (_PREFIXES).

    Raises:
        InputError: The file cannot be read, or its parameters are not exactly the module's.
    """
    loaded, expected = _read(path), module.state_dict()
    for prefix in _PREFIXES:
        if not loaded.keys() & expected.keys() and all(name.startswith(prefix) for name in loaded):
            loaded = {name.removeprefix(prefix): values for name, values in loaded.items()}
    shared = [name for name in expected if name in loaded]
    wrong = {
        # old checkpoints lack the counts of batches, which only training needs
        "lacks": [n for n in expected if n not in loaded and not n.endswith("batches_tracked")],
        "has additional": [name for name in loaded if name not in expected],
        "has in another shape": [n for n in shared if loaded[n].shape != expected[n].shape],
    }
    faults = [f"{how} {len(names)} ({listed(names, 2)})" for how, names in wrong.items() if names]
    if faults:
        raise InputError(
            f"weights {str(path)!r}: expected the parameters of the network, but it "
            f"{', '.join(faults)}; function and options in [model] define the network"
        )
    module.load_state_dict(loaded, strict=False)


def _read(path: Path) -> JsonObject:
    """Return the parameters in a file by name; raise InputError if it holds something else."""
    where = f"weights {str(path)!r}"
    if not path.is_file():
        raise InputError(f"weights: file {str(path)!r} does not exist{near_file(path)}")
    expected = (
        f"{where}: expected parameters alone, in .safetensors or as "
        "torch.save(network.state_dict(), FILE) writes them"
    )
    try:
        content = _content(path, expected)
    except InputError:
        raise
    except ImportError:
        pip = "a .safetensors file needs safetensors: pip install safetensors"
        raise InputError(f"{where}: {pip}") from None
    except UnpicklingError:  # torch's own message advises to load the file unsafely
        raise InputError(f"{expected}, got other objects, which are not loaded") from None
    except Exception as error:  # torch, zipfile and safetensors raise errors of many types
        raise InputError(f"{expected}, cannot read it: {one_line(error)[:160]}") from None
    for key in _CHECKPOINT_KEYS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not all(hasattr(v, "shape") for v in content.values()):
        got = listed(content) if isinstance(content, Mapping) else type(content).__name__
        names = ", ".join(_CHECKPOINT_KEYS)
        expected = f"parameters by name, or a checkpoint that holds them under one of {names}"
        raise InputError(f"{where}: expected {expected}, got {got}")
    return dict(content)


def _content(path: Path, expected: str) -> Any:
    """Return the objects in a file of parameters; raise InputError for TorchScript."""
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    if is_script(path):
        hubconf = "a hubconf.py whose function returns torch.jit.load(FILE)"
        raise InputError(f"{expected}, got TorchScript; {hubconf} takes it, without weights")
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)
