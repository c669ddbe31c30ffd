"""Writes journal4_names.db.gz: an audit that certifies by the law by stakes, of a version in which
that law was called "uncertainty+unpredictability"; to be read and resumed for ever after.

Run with the last version of that kind (commit a812e71), in the repository's root:

    python tests/golden/make_journal4_names.py tests/golden/journal4_names.db.gz
"""

import gzip
import sys
import tempfile
from pathlib import Path
from typing import Any

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

OPTIONS: dict[str, Any] = {"half_width": 0.1, "targets": ["overall", "concepts"], "seed": 5}
BUDGET = 12
"""Calls that were drawn and answered."""


def named_space() -> QuestionSpace:
    """Ten samples, two concepts, two relations."""
    return QuestionSpace(tiny_dataset(10, 2), ("identity", "rotation"), severities=[1, 2])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        with Audit(named_space(), ScriptedModel(), budget=BUDGET, journal=path, **OPTIONS) as audit:
            audit.run()
        data = path.read_bytes()
    Path(sys.argv[1]).write_bytes(gzip.compress(data, mtime=0))
