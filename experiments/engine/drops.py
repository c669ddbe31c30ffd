"""Count the calls that certify the drops of seven relations, as pairs or as two rates each.

    python -m adaptive_vtt.experiments.engine.drops

The bundled classifier answers about the bundled garments. "pairs" certifies targets = ["drops"] to
a half-width. "box" certifies the error rates under every relation and on original images to half of
it, so that their differences have the same half-width. The table has the mean calls of both, and
how many of these were about original images.
"""

import tomllib
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pandas as pd

from adaptive_vtt import Audit, config
from adaptive_vtt.config.building import build_parts
from adaptive_vtt.families import DROPS
from adaptive_vtt.journal import MemoryJournal

from ..program import Row, in_processes, options, save_table

SEVENTH = "imagenet-c/jpeg_compression"
"""A relation that the demo lacks."""
Job = tuple[int, tuple[str, float]]


def audited(job: Job) -> Row:
    """Return the calls of an audit that certifies the job's targets to its half-width."""
    seed, (targets, width) = job
    demo = tomllib.loads((Path(config.__file__).parent / "demo.toml").read_text("utf-8"))
    demo["space"]["relations"] += [SEVENTH]
    demo["audit"] = {"device": "cpu", "seed": seed}
    demo["certify"] = {"half_width": width, "targets": [targets]}
    space, model, settings = build_parts(config.parse_spec(demo, "demo"), Path())
    journal = MemoryJournal()
    calls = Audit(space, model, journal=journal, **settings).run().calls
    return {"targets": targets, "calls": calls, "of originals": len(journal.sources())}


def main(arguments: Sequence[str] | None = None) -> None:
    quick = {"seeds": 1, "width": 0.45}
    chosen = options(__doc__, arguments, quick=quick, seeds=3, width=0.1, workers=2)
    halves = {DROPS: chosen.width, "relations": chosen.width / 2}
    jobs = [*product(range(chosen.seeds), halves.items())]
    rows = pd.DataFrame(in_processes(audited, jobs, chosen.workers))
    table = rows.groupby("targets").mean().loc[[*halves]]
    table.index = pd.Index(["pairs", "box"], name="way")
    calls = table["calls"].astype(float)
    table["calls / those of the box"] = (calls / calls["box"]).round(2)
    save_table(table.reset_index(), chosen.out / "drops.csv")


if __name__ == "__main__":
    main()
