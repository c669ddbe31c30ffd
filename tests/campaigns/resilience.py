"""Attack every promise about the cap, the journal and secrets.

kills: kills and signals at random moments over four kinds of audit (all answers per call, one per
call, with source answers, an endpoint with calls in flight and faults), each resumed to its end
and compared with an undisturbed one.

concurrent: a second writer, a reader, and a deleted journal, while an audit is running.

hostile: a server that miscounts, floods, sends nothing or malformed replies, or redirects, and a
cap.

forgeries: bytes flipped in journals, and each fact, cell and result changed, for ``verify``.

secrets: keys planted wherever a spec allows one, and echoed by the server.

    python -m tests.campaigns.resilience [--quick] [--only kills] [--out bench]

Prints a table "what | tried | survived | lost". It also writes the table, with the losses and
commands that reproduce them, as resilience.json. The exit code is 1 if anything was lost.
"""

import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from adaptive_vtt.experiments.program import WIDTH, Row, options, show
from adaptive_vtt.utils.files import write_text

from . import resilience_audits as audits
from .resilience_forgeries import forgeries
from .resilience_hostile import hostile
from .resilience_kills import concurrent, kills
from .resilience_secrets import secrets


class Size(NamedTuple):
    """Numbers of kills, of runs side by side, and of flips, and the step of the rest."""

    kills: int
    concurrent: int
    flips: int
    every: int


FULL, QUICK, TINY = Size(200, 10, 200, 1), Size(16, 1, 20, 7), Size(1, 0, 1, 200)
Suite = Callable[[Path, Size, np.random.Generator], list[Row]]
SUITES: dict[str, Suite] = {
    "kills": lambda folder, size, rng: kills(folder, size.kills, rng),
    "concurrent": lambda folder, size, rng: concurrent(folder, size.concurrent),
    "hostile": lambda folder, size, rng: hostile(folder, size.every),
    "forgeries": lambda folder, size, rng: forgeries(folder, size.flips, size.every, rng),
    "secrets": lambda folder, size, rng: secrets(folder, size.every),
}


def campaign(names: Sequence[str], size: Size, seed: int) -> pd.DataFrame:
    """Return the rows of these suites, each of which has its own folder that is then deleted."""
    audits.warm_up()
    rows: list[Row] = []
    for name in names:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="avtt-resilience-") as folder:
            rng = np.random.default_rng([seed, list(SUITES).index(name)])
            results = SUITES[name](Path(folder), size, rng)
        rows += [{"suite": name, **each} for each in results]
        for each in results:
            print(textwrap.fill(" | ".join(map(str, each.values())), WIDTH), file=sys.stderr)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={}, only=SUITES, seed=0)
    table = campaign(chosen.only, QUICK if chosen.quick else FULL, chosen.seed)
    show(table[["what", "tried", "survived", "lost"]])
    for each in table[table["lost"] > 0].itertuples():
        show(f"lost: {each.what}: {str(each.note)[:400]}")
    write_text(chosen.out / "resilience.json", table.to_json(orient="records", indent=1) + "\n")
    if table["lost"].any():
        sys.exit(1)


if __name__ == "__main__":
    main()
