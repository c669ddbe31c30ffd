"""Files of trained models: ONNX and TorchScript are models; of others, what makes a model of them.

Nothing of a file is unpickled here: a pickle is a program, and whether to run it is its user's to
say, in lines of their own.
"""

import pickletools
import zipfile
from pathlib import Path

from ...errors import InputError

ENDINGS = (".onnx", ".pt", ".pth", ".joblib", ".pkl")
"""What files of models end in."""
TORCHSCRIPT = """\
import torch

network = torch.jit.load({file}, map_location="cpu")
"""
WHOLE = """\
import torch

# The file holds a whole network, a program that runs when it is loaded, so this line refuses it.
# If you trust the file, say False; better, save the network by torch.jit.save, or as ONNX.
network = torch.load({file}, map_location="cpu", weights_only=True)
"""
PARAMETERS = """\
import torch

network = YourNetwork()  # <- the class whose parameters these are
network.load_state_dict(torch.load({file}, map_location="cpu", weights_only=True))
"""
ESTIMATOR = """\
import joblib
import numpy as np

estimator = joblib.load({file})  # runs what is in the file: only for files that you trust


def predict(images):
    rows = np.stack([image.ravel() / 255 for image in images])  # <- as it was trained
    {said}
"""
ONE = "return estimator.predict_proba(rows)[:, 1:]  # P(yes)"
SEVERAL = """\
said = estimator.predict_proba(rows)
    if isinstance(said, list):  # of forests and their likes: P(no) and P(yes) of each concept
        said = np.stack([each[:, 1] for each in said], axis=1)
    return said  # P(yes), a column per concept"""


def lines(path: Path, file: str, concepts: int) -> str:
    """The lines of Python that wrap the model in ``path``, named ``network`` or ``predict``, for so
    many concepts; ``file``: the path as an expression. Raises InputError for other files."""
    if path.suffix in (".joblib", ".pkl"):
        return ESTIMATOR.format(file=file, said=ONE if concepts == 1 else SEVERAL)
    if path.suffix not in (".pt", ".pth"):
        raise InputError(f"model: expected a file {', '.join(ENDINGS)}, got {str(path)!r}")
    return {"script": TORCHSCRIPT, "parameters": PARAMETERS, "other": WHOLE}[_kind(path)].format(
        file=file
    )


def is_script(path: Path) -> bool:
    """Whether the file is TorchScript's."""
    return path.suffix in (".pt", ".pth") and _kind(path) == "script"


def _kind(path: Path) -> str:
    """What torch wrote into the file: "script", "parameters" or "other", told without running any
    of it."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if any(name.partition("/")[2].startswith("code/") for name in names):
                return "script"
            pickled = next(name for name in names if name.endswith("/data.pkl"))
            with archive.open(pickled) as file:
                made = [told for code, told, _ in pickletools.genops(file) if code.name == "GLOBAL"]
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile):
        return "other"
    return "parameters" if made[:1] == ["collections OrderedDict"] else "other"
