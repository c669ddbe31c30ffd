"""The specs that come with the package, each a whole audit to start from (experiments/specs)."""

import re
from importlib.resources import files
from pathlib import Path

from ..errors import InputError, unknown
from ..utils.files import write_text

ENDING = ".toml"


def bundled() -> dict[str, str]:
    """Name -> text of every spec."""
    folder = files("adaptive_vtt.experiments").joinpath("specs")
    found = [path for path in folder.iterdir() if path.name.endswith(ENDING)]
    texts = {p.name.removesuffix(ENDING): p.read_text(encoding="utf-8") for p in found}
    return dict(sorted(texts.items()))


def about(text: str) -> str:
    """What a spec audits: its comment up to the first colon or full stop."""
    lines = text.splitlines()
    head = lines[: next((k for k, line in enumerate(lines) if line[:1] != "#"), len(lines))]
    said = " ".join(line.strip("# ") for line in head)
    return re.split(r"[.:] ", said)[0].rstrip(".")


def write_like(directory: Path, name: str) -> Path:
    """A bundled spec as ``directory``/SPEC.toml; raises InputError for an unknown name, and where
    one is there already."""
    specs, path = bundled(), directory / "SPEC.toml"
    if name not in specs:
        raise unknown("spec", name, specs, "--like")
    if path.exists():
        raise InputError(f"{path}: stands there already; nothing was written")
    write_text(path, specs[name])
    return path
