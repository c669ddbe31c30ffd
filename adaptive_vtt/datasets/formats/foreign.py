"""Label files that are not read: which tool wrote them, and how to convert them."""

import re
from collections import Counter
from itertools import islice
from pathlib import Path

from ..scanning import NAMES

HEAD, MOST = 4096, 2000
"""Bytes of a file that are looked at, and files."""


def foreign_labels(root: Path) -> str:
    """Return which label files of other tools lie in a folder, with their number; "" for none."""
    counts, endings = Counter[str](), (".json", ".xml", ".dcm", ".dicom", "")
    files = (path for path in root.rglob("*") if path.suffix.lower() in endings and path.is_file())
    for path in islice(files, MOST):
        with path.open("rb") as file:
            head = file.read(HEAD)
        if path.suffix.lower() in (".dcm", ".dicom"):
            head = bytes(128) + b"DICM"
        kinds = NAMES["foreign"].items()
        counts.update([kind for start, kind in kinds if re.match(start.encode(), head, re.DOTALL)])
    kinds_met = [f"{number:,} files hold {kind}" for kind, number in counts.items()]
    return f"not read: {'; '.join(kinds_met)}" if kinds_met else ""
