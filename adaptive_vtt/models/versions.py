"""Versions of models that state none: hashes of their content and files.

A version is a text such as ``content 1f0c..., weights.npz 9a7e...``: a hash of the model's content
or of the file of its code, then one hash for each file that its options name. The code may change
during an audit, for instance to fix a crash. Other files may not, as the audit would then mix the
answers of two models.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from ..utils.files import hash_file, regular
from .base import ModelUnderTest, adapted_model

BETWEEN = " / "
"""Separator of the names, or versions, of two models that are compared."""
CONTENT = "content "
"""Prefix of a version that is a hash of the model's content."""
WHOLE, BLOCKS, BLOCK = 2**28, 64, 2**22
"""A file of at most WHOLE bytes is hashed whole. Of a larger one BLOCKS evenly spaced blocks of
BLOCK bytes are hashed: further training changes all of them."""
MOST_FILES = 1_000
"""Maximum number of files in a folder that is hashed; a folder with more holds data."""
UNKNOWN = "unknown"
"""Stands in place of a hash that cannot be computed."""
_WRITTEN = re.compile(r"(?:^|_)(?:cache|logs?|out|output|save|te?mp)(?:_|$)", re.IGNORECASE)
"""Names of options whose files the model writes, so that they are no part of it."""
_PATH = re.compile(r"(?:^|_)(?:paths?|files?|dir|folders?|weights|checkpoint)(?:_|$)", re.I)
"""Names of options whose texts are paths."""
_like_path = re.compile(r"[/\\]|\.[a-z]\w*$", re.IGNORECASE).search
"""Matches a text that looks like a path, as it has a separator or the ending of a file."""
_FILE = re.compile(r", ([^,/]+) ([0-9a-f]{16}|unknown)(?=,| / |$)")
"""A file's name and hash in a version."""


def version_of(
    model: ModelUnderTest, code: Path | None = None, named: Mapping[str, Path] | None = None
) -> str | None:
    """Return the version that a model states, else one made of its content and files.

    Args:
        model: The model.
        code: File of its code, for a model without ``content``.
        named: Further files, by name, that are always part of its version.

    Returns:
        The version, None if nothing is known.
    """
    adapted, named = adapted_model(model), named or {}
    if adapted.version is not None:
        return with_files(str(adapted.version), named)
    content, options = adapted.content(), _options(getattr(adapted, "plain", adapted))
    files = files_in([adapted.model_files if content is None else (), options])
    if content is None and not adapted.model_files and code is not None and code.is_file():
        content = hash_file(code)
    return with_files(content and CONTENT + content, {**files, **named})


def _options(model: object) -> dict[str, Any]:
    """Return the constructor arguments that an object of a user's class keeps as attributes of the
    same name."""
    if type(model).__module__.partition(".")[0] == __name__.partition(".")[0]:
        return {}  # our own models have ``content`` and ``model_files``
    try:
        names = signature(type(model)).parameters.keys() - {"name"}
    except (TypeError, ValueError):  # the class is not written in Python
        return {}
    return {name: value for name, value in getattr(model, "__dict__", {}).items() if name in names}


def with_files(version: str | None, files: Mapping[str, Path]) -> str | None:
    """Return a version with the hashes of files, by name; None if nothing is known."""
    hashes = "".join(f", {name} {hash_of_path(path)}" for name, path in files.items())
    return f"{version or CONTENT}{hashes}" if version or hashes else None


def without_hashes(version: str | None) -> str:
    """Return a version without the hashes of files; "" if the model states none itself."""
    stated = _FILE.sub("", version or "")
    return "" if stated.startswith(CONTENT) else stated


def files_in(options: Any, base: Path | None = None) -> dict[str, Path]:
    """Return the existing files and folders that options name, by file name.

    Args:
        options: A text, a path, or lists and tables of these, at any depth. A text names a file if
            it has a separator or an ending (``nets/a``, ``a.npz``), or if its option is called a
            path, file, folder, weights or checkpoint. Options such as ``cache`` or ``log`` are
            ignored, as the model writes their files.
        base: Folder of relative paths. With None, or where no such file exists in it, they are
            relative to the working folder.
    """
    files: dict[str, Path] = {}
    for text in _paths(options):
        for path in [Path(text)] if base is None else [base / text, Path(text)]:
            if text not in ("", ".", "..") and os.path.lexists(path):
                name = re.sub("[,/]", "_", path.name)
                files[name if name not in files else f"{name} ({len(files)})"] = path
                break
    return files


def _paths(value: Any, is_path: bool = False) -> Iterator[str]:
    """Yield the texts within ``value`` that may be paths.

    Args:
        value: A text, a path, or lists and tables of these.
        is_path: Whether the name of the option shows that its texts are paths.
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if not _WRITTEN.search(str(name)):
                yield from _paths(inner, bool(_PATH.search(str(name))))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _paths(inner, is_path)
    elif isinstance(value, Path) or (isinstance(value, str) and (is_path or _like_path(value))):
        yield str(value)


def hash_of_path(path: Path) -> str:
    """Return a hash of 16 hexadecimal digits of a file, or of all files of a folder.

    Folders within it that are hidden, or caches such as __pycache__, are left out. The hash is
    UNKNOWN for a path that is neither file nor folder, cannot be read, or has too many files.
    """
    digest = hashlib.blake2b(digest_size=8)
    try:
        files = [] if path.is_dir() else [path]
        for folder, folders, names in os.walk(path):  # yields nothing if path is a file
            folders[:] = [name for name in folders if name[0] != "." and name[:2] != "__"]
            files += [Path(folder, name) for name in names]
            if len(files) > MOST_FILES:
                return UNKNOWN
        for file in sorted(files):
            digest.update(f"{file.relative_to(path).as_posix()}\0".encode(errors="replace"))
            _update(digest, file)
    except OSError:
        return UNKNOWN
    return digest.hexdigest()


def _update(digest: "hashlib.blake2b", path: Path) -> None:
    """Add a file to a hash: its size, and all of it or evenly spaced blocks of a large one.

    Raises:
        OSError: The path is no file, or cannot be read.
    """
    with open(path, "rb", opener=regular) as file:
        size = os.fstat(file.fileno()).st_size
        digest.update(f"{size}\0".encode())
        for number in range(BLOCKS if size > WHOLE else -(-size // BLOCK)):
            if size > WHOLE:
                file.seek((size - BLOCK) * number // (BLOCKS - 1))
            digest.update(file.read(BLOCK))


def unknown_files(version: str | None) -> list[str]:
    """Return the names of the files in a version that could not be hashed."""
    return [name for name, digest in _FILE.findall(version or "") if digest == UNKNOWN]


def changed_file(now: str | None, then: str | None) -> str | None:
    """Return the name of a file that differs between two versions of a model, or None.

    A file that only one version has differs, too.
    """
    files_now, files_then = (_FILE.findall(version or "") for version in (now, then))
    changed = next((name for name, _ in {*files_now} ^ {*files_then}), None)
    return changed or (None if files_now == files_then else files_now[0][0])


def changed_content(model: ModelUnderTest, now: str | None, then: str | None) -> str | None:
    """Return the name of a file of a model whose version differs from an earlier one, or None.

    Args:
        model: The model, or a pair of models.
        now: Its version; of a pair both, joined by BETWEEN.
        then: Its earlier version.
    """
    models = getattr(model, "sides", {"": adapted_model(model)}).values()
    versions = (str(version).split(BETWEEN) for version in (now, then))
    for one, version, earlier in zip(models, *versions, strict=False):
        if version != earlier and one.model_files:
            return str(one.model_files[0].name)
    return None
