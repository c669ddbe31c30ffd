"""Writes journal3.db.gz: a journal as schema 3 had it, to be read and resumed for ever after.

Run with the last version that wrote schema 3 (commit ec4912c), in the repository's root:

    python tests/golden/make_journal3.py tests/golden/journal3.db.gz
"""

import gzip
import sys
import tempfile
from pathlib import Path
from typing import Any

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

OPTIONS: dict[str, Any] = {"half_width": 0.1, "targets": ["overall"], "seed": 5}
"""Without a prior journal, proxies or a cap."""
BUDGET = 12
"""Calls: drawn, answered, and some of them about source images."""


def old_space() -> QuestionSpace:
    """Five samples, three relations; an oracle that compares with the source image's answer."""
    return QuestionSpace(
        tiny_dataset(5, 2),
        ("identity", "gaussian_noise", "rotation"),
        oracle=Consistency(),
        severities=[1, 2],
    )


def write(path: Path) -> None:
    """Two sittings of one audit; the second was interrupted with two calls on their way."""
    for budget in (8, BUDGET):
        with Audit(old_space(), ScriptedModel(), budget=budget, journal=path, **OPTIONS) as audit:
            audit.run()
    with Audit(old_space(), ScriptedModel(), journal=path, **OPTIONS) as audit:
        audit.ask(2)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "journal.db")
        data = (Path(folder) / "journal.db").read_bytes()
    Path(sys.argv[1]).write_bytes(gzip.compress(data, mtime=0))
