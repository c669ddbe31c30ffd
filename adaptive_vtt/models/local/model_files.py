"""Files of trained models: ONNX and TorchScript are models; of others, what makes a model of them.

Nothing of a file is unpickled here: a pickle is a program, and whether to run it is its user's to
say, in lines of their own.
"""

import pickletools
import zipfile
from pathlib import Path

from ...errors import InputError
from ...utils.files import as_file

ENDINGS = (".onnx", ".pt", ".pth", ".joblib", ".pkl")
"""What files of models end in."""


def lines(path: Path, file: str, concepts: int) -> str:
    """The lines of Python that wrap the model in ``path``, named ``network`` or ``predict``, for so
    many concepts; ``file``: the path as an expression. Raises InputError for other files."""
    if path.suffix not in ENDINGS[1:]:
        raise InputError(f"model: expected a file {', '.join(ENDINGS)}, got {str(path)!r}")
    kind = _kind(path) if path.suffix in (".pt", ".pth") else "estimator"
    from ...utils.web import text_of  # jinja2, which audits do without

    return text_of(__package__, f"{kind}.py", file=file, concepts=concepts)


def is_script(path: Path) -> bool:
    return path.suffix in (".pt", ".pth") and _kind(path) == "script"


def _kind(path: Path) -> str:
    """What torch wrote into the file: "script", "parameters" or "other", told without running any
    of it."""
    try:
        with zipfile.ZipFile(as_file(path)) as archive:
            names = archive.namelist()
            if any(name.partition("/")[2].startswith("code/") for name in names):
                return "script"
            pickled = next(name for name in names if name.endswith("/data.pkl"))
            with archive.open(pickled) as file:
                made = [
                    argument
                    for code, argument, _ in pickletools.genops(file)
                    if code.name == "GLOBAL"
                ]
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile):
        return "other"
    return "parameters" if made[:1] == ["collections OrderedDict"] else "other"
