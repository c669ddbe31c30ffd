"""Writing files whole or not at all."""

import os
import tempfile
from pathlib import Path

from .errors import InputError


def write_bytes(path: Path, data: bytes) -> None:
    """Replaces ``path`` in one step. Raises InputError, and leaves nothing, where it cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException as error:
        os.unlink(name)
        if not isinstance(error, OSError):
            raise
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def write_text(path: Path, text: str) -> None:
    """Replaces ``path`` with UTF-8 text in one step; errors as ``write_bytes``."""
    write_bytes(path, text.encode())
