"""Versions of models that state none: hashes of their content and files.

A version is a text such as ``content 1f0c..., weights.npz 9a7e...``: a hash of the model's content
or of its code's file, then one of each file that its options name. Code may change during an audit,
to mend a crash. Other files may not, as the audit would mix the answers of two models.
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
"""Most bytes of a file that is hashed whole; number and bytes of the blocks that are hashed of a
larger one. Further training changes all of them."""
MOST_FILES = 1_000
"""Most files of a folder that are hashed; a folder with more is data."""
UNKNOWN = "unknown"
"""In place of a hash that cannot be computed."""
_WRITTEN = re.compile(r"(?:^|_)(?:cache|logs?|out|output|save|te?mp)(?:_|$)", re.IGNORECASE)
"""Pattern of names of options whose files the model writes, so that they are no part of it."""
_PATH = re.compile(r"(?:^|_)(?:paths?|files?|dir|folders?|weights|checkpoint)(?:_|$)", re.I)
"""Pattern of names of options whose texts are paths."""
_like_path = re.compile(r"[/\\]|\.[a-z]\w*$", re.IGNORECASE).search
"""Finds a separator, or the ending of a file, in texts that are paths."""
_FILE = re.compile(r", ([^,/]+) ([0-9a-f]{16}|unknown)(?=,| / |$)")


def version_of(
    model: ModelUnderTest, code: Path | None = None, named: Mapping[str, Path] | None = None
) -> str | None:
    """Return the model's ``version``, else one made of its content and its options' files.

    Args:
        model: The model.
        code: File of its code, for a model without ``content``.
        named: Further files, by name, that are always part of its version.

    Returns:
        The version, None if nothing is known.
    """
    known, named = adapted_model(model), named or {}
    if known.version is not None:
        return with_files(str(known.version), named)
    content, options = known.content(), _options(getattr(known, "plain", known))
    files = files_in([known.model_files if content is None else (), options])
    if content is None and not known.model_files and code is not None and code.is_file():
        content = hash_file(code)
    return with_files(content and CONTENT + content, {**files, **named})


def _options(model: object) -> dict[str, Any]:
    """Return the options that an object of a user's class keeps under their own names."""
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
    """Return the version that a model states itself, "" if it states none."""
    stated = _FILE.sub("", version or "")
    return "" if stated.startswith(CONTENT) else stated


def files_in(options: Any, base: Path | None = None) -> dict[str, Path]:
    """Return the files and folders that options name.

    Args:
        options: A text, a path, or lists and tables of these, at any depth. A text names a file if
            it has a separator or an ending (``nets/a``, ``a.npz``), or if its option is called a
            path, file, folder, weights or checkpoint. Texts that are not the path of an existing
            file are ignored, and so are options such as ``cache`` or ``log``, which the model
            writes.
        base: Folder that paths start at. None, or a path that does not exist there, starts at the
            working folder.
    """
    files: dict[str, Path] = {}
    for value in _texts(options):
        for path in [Path(value)] if base is None else [base / value, Path(value)]:
            if value not in ("", ".", "..") and os.path.lexists(path):
                name = re.sub("[,/]", "_", path.name)
                files[name if name not in files else f"{name} ({len(files)})"] = path
                break
    return files


def _texts(value: Any, is_path: bool = False) -> Iterator[str]:
    """Yield the texts that are paths; ``is_path``: by the name of their option."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if not _WRITTEN.search(str(name)):
                yield from _texts(each, bool(_PATH.search(str(name))))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each, is_path)
    elif isinstance(value, Path) or (isinstance(value, str) and (is_path or _like_path(value))):
        yield str(value)


def hash_of_path(path: Path) -> str:
    """Return a hash of 16 hexadecimal digits of a file, or of all files of a folder.

    It is UNKNOWN for a path that is neither, cannot be read, or has too many files.
    """
    digest = hashlib.blake2b(digest_size=8)
    try:
        paths = [] if path.is_dir() else [path]
        for folder, folders, names in os.walk(path):  # which yields nothing for a file
            folders[:] = [name for name in folders if name[0] != "." and name[:2] != "__"]
            paths += [Path(folder, name) for name in names]
            if len(paths) > MOST_FILES:
                return UNKNOWN
        for each in sorted(paths):
            digest.update(f"{each.relative_to(path).as_posix()}\0".encode(errors="replace"))
            _update(digest, each)
    except OSError:
        return UNKNOWN
    return digest.hexdigest()


def _update(digest: "hashlib.blake2b", path: Path) -> None:
    """Hash a file, or evenly spaced blocks of a large one.

    Raise OSError for a path that is no file, or cannot be read.
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
    return [name for name, known in _FILE.findall(version or "") if known == UNKNOWN]


def changed_file(now: str | None, then: str | None) -> str | None:
    """Return the name of a file whose hashes differ in two versions of a model, or None.

    A file that one version lacks counts, too.
    """
    one, other = (_FILE.findall(version or "") for version in (now, then))
    changed = next((name for name, _ in {*one} ^ {*other}), None)
    return changed or (None if one == other else one[0][0])


def changed_content(model: ModelUnderTest, now: str | None, then: str | None) -> str | None:
    """Return the name of a file of a model whose content differs in two versions, or None.

    The versions may be those of a pair of models.
    """
    sides = getattr(model, "sides", {"": adapted_model(model)}).values()
    versions = zip(sides, *(str(version).split(BETWEEN) for version in (now, then)), strict=False)
    changed = [path for side, one, other in versions if one != other for path in side.model_files]
    return changed[0].name if changed else None
