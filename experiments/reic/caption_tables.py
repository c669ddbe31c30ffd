"""Make REIC's tables on drawn scenes, for a captioner whose faults are known, in over 3 minutes.

    python -m adaptive_vtt.experiments.reic.caption_tables --seeds 3

The paper is Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE 2024).
``caption_truth`` defines which names in captions are wrong.

- Table I: verdicts on objects and cases, and their scores. "errors" counts all wrong names, also
  those that no relation between captions could show, and "found" the reported ones. An object that
  both captions name counts once here and twice in the paper.
- Table II: MetaIC and ROME next to REIC; see ``caption_rivals``.
- Tables III and IV: follow-ups that are chosen without the ambiguity score (Setting-1), and without
  the diversity score (Setting-2).
- Table V: F1 on objects without each part, on the same follow-ups, with three detectors. The first
  has exact boxes. The second misses a share MISSED of them, and gives a share MISLABELLED the name
  of a similar kind. The third has region proposals without names. ``--detector`` adds a real
  detector, trained on photographs. In "places named", nouns for the place of the picture are read
  as objects, too, as by the paper's plain rule. In "all boxes hidden", boxes that match a name are
  hidden, too, as in the paper.
- Table VI: types of true positives, the oracle's guesses at them, and causes of false alarms.
- Table VIII: seconds on one thread; see ``caption_seconds``.
- Candidates before and after the caption: see ``caption_candidates``.

Tables I and VI and the candidates add up ``--seeds`` seeds. The others, which ``--cheap`` leaves
out, are of the first seed. Columns "paper: ..." have the range over the paper's captioners and sets
of photographs.

Words are compared by number and last words; by WordNet if ``--wordnet`` or $WNSEARCHDIR names its
folder; and by vectors if these are installed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.oracles.caption_rules import ERROR_TYPES
from adaptive_vtt.oracles.captions import Detector, Same, language
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.relations.reic import KINDS
from adaptive_vtt.utils.other_code import fingerprint_of

from ..program import Row, options, save_tables, show
from .caption_candidates import before_and_after, together
from .caption_detectors import DETECTOR, real_detector, with_detectors
from .caption_rivals import table_2
from .caption_seconds import seconds
from .caption_verdicts import (
    CAUSES,
    Bench,
    CachedCaptioner,
    by_relation,
    confusion,
    hidden,
    percent,
    verdicts,
)
from .drawn_scenes import scenes
from .paper_columns import with_paper
from .reic_scheme import Step, distinct, scheme, statuses
from .template_captioner import TemplateCaptioner
from .wordnet import EveryWay

TYPES = "Table VI: true positives by type"
CANDIDATES = "Candidates before and after the caption"
OMISSION = 0.1
"""Default share of the objects of a picture that captions leave out."""


def ablations(same: Same) -> dict[str, ReducedCaptions]:
    """Return the oracle with all its parts, and without each."""
    reader = language.reader()
    return {
        "all parts": ReducedCaptions(reader, same),
        "no detector": ReducedCaptions(reader, same, detection=False),
        "no occlusion": ReducedCaptions(reader, same, occlusion=False),
        "literal words": ReducedCaptions(reader, language.same("literal")),
        "places named": ReducedCaptions(language.reader(places=True), same),
        "all boxes hidden": ReducedCaptions(reader, same, hide_named=True),
    }


# -- the tables ------------------------------------------------------------------------


def table_1(frame: pd.DataFrame) -> pd.DataFrame:
    """Return counts and scores of the verdicts, a row per relation and level."""
    rows = []
    for relation, part in by_relation(frame):
        cases = part.groupby("case")[["real", "reported"]].any()
        wrong = part["error"] != "none"
        errors = {"errors": int(wrong.sum()), "found": int((wrong & part["reported"]).sum())}
        rows.append({"level": "object", "relation": relation, **confusion(part), **errors})
        rows.append({"level": "case", "relation": relation, **confusion(cases)})
    table = pd.DataFrame(rows).sort_values("level", ascending=False, kind="stable")
    return table.astype({"errors": "Int64", "found": "Int64"})


def table_6(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return three tables by title.

    They have true positives by type and relation, reports by true and guessed type, with the share
    of right guesses, and false alarms by cause.
    """
    reports, types = frame[frame["reported"]], list(ERROR_TYPES)
    hits = reports[reports["real"]]
    guesses = _counted(reports, "error", "guess", [*types, "none"], types)
    right, counts = np.diag(guesses.to_numpy()), guesses.to_numpy().sum(axis=1)
    guesses["guessed"] = [
        *(percent(r / n if n else None) for r, n in zip(right, counts[:-1], strict=True)),
        None,
    ]
    return {
        TYPES: _counted(hits, "error", "relation", types, KINDS),
        "Table VI: reports by true type, and guess": guesses,
        "False alarms by cause": _counted(reports, "cause", "relation", CAUSES, KINDS),
    }


def _counted(
    frame: pd.DataFrame, row: str, column: str, rows: Sequence[str], columns: Sequence[str]
) -> pd.DataFrame:
    """Return the number of rows of the frame with each pair of values of two columns."""
    table = pd.crosstab(frame[row], frame[column])
    return table.reindex(index=list(rows), columns=list(columns), fill_value=0)


def table_5(bench: Bench, detected: dict[str, Dataset], same: Same, seed: int) -> pd.DataFrame:
    """Return scores on objects with and without each part, by detector and relation."""
    rows = []
    for name, dataset in detected.items():
        oracles = ablations(same)
        steps = list(scheme(dataset, bench.captioner, oracles["all parts"], seed=seed))
        truths = bench.truths(steps)
        for part, oracle in oracles.items():
            whole = part == "all parts"
            judged = steps if whole else bench.judged_again(dataset, steps, oracle)
            rows += [
                {
                    "detector": name,
                    "relation": relation,
                    "oracle": part,
                    "hidden": hidden(judged),
                    **confusion(frame),
                }
                for relation, frame in by_relation(verdicts(judged, truths))
            ]
    table = pd.DataFrame(rows)
    best = table.groupby(["detector", "relation"], sort=False)["F1"].transform("first")
    table["difference"] = (table["F1"].astype(float) - best.astype(float)).round(1)
    return table


def table_3(settings: dict[str, list[Step]]) -> pd.DataFrame:
    """Return statuses of the sources' objects after the follow-ups of each setting."""
    rows = []
    for row, own in _by_setting(settings):
        counts = [statuses([step]) for step in own]
        valid = [each["disappeared"] + each["retained"] for each in counts]
        rows.append(
            {
                **row,
                **statuses(own),
                "valid objects": sum(valid),
                "valid cases": sum(map(bool, valid)),
                "cases": len(own),
                "reported": sum(len(step.violations) for step in own),
            }
        )
    return pd.DataFrame(rows)


def table_4(settings: dict[str, list[Step]], same: Same) -> pd.DataFrame:
    """Return the numbers of objects and images with a reported violation, by setting."""
    rows = []
    for row, own in _by_setting(settings):
        new = [(step.sample, names) for step, names in distinct(own, same)]
        images = len({sample for sample, names in new if names})
        objects = sum(len(names) for _, names in new)
        rows.append({**row, "distinct objects": objects, "distinct images": images})
    return pd.DataFrame(rows)


def _by_setting(settings: dict[str, list[Step]]) -> Iterator[tuple[Row, list[Step]]]:
    for kind in KINDS:
        for name, steps in settings.items():
            yield {"relation": kind, "setting": name}, [s for s in steps if s.kind == kind]


# -- the run ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """REIC's scheme on the scenes and the captioner of one seed, with exact boxes."""

    dataset: Dataset
    bench: Bench
    oracle: ReducedCaptions
    seed: int

    @classmethod
    def of(cls, count: int, same: Same, seed: int, omission: float = OMISSION) -> "Run":
        """Return the run of ``count`` scenes, with words compared by ``same``."""
        dataset = scenes(count, seed=seed)
        bench = Bench(dataset, CachedCaptioner(TemplateCaptioner(seed=seed, omission=omission)))
        return cls(dataset, bench, ReducedCaptions(language.reader(), same), seed)

    @cached_property
    def steps(self) -> list[Step]:
        """All follow-ups that REIC asks about."""
        return self.steps_by()

    def steps_by(self, **scores: bool) -> list[Step]:
        """Return the follow-ups chosen by these ``scores``, by_ambiguity and by_diversity."""
        captioner = self.bench.captioner
        return list(scheme(self.dataset, captioner, self.oracle, seed=self.seed, **scores))

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """The verdicts and the truth, with names of cases that no other seed has."""
        frame = verdicts(self.steps, self.bench.truths(self.steps))
        return frame.assign(case=f"seed {self.seed}: " + frame["case"])

    def candidates(self) -> pd.DataFrame:
        """Return counts for candidates that are chosen before and after the caption."""
        return before_and_after(self.bench, self.dataset, self.oracle, self.steps)


def cheap_tables(runs: Sequence[Run]) -> dict[str, pd.DataFrame]:
    """Return Tables I and VI and the candidates, with the counts of all runs."""
    frame = pd.concat([run.verdicts for run in runs])
    types = {title: table.reset_index() for title, table in table_6(frame).items()}
    types[TYPES] = with_paper("VI", types[TYPES])
    return {
        "Table I: verdicts, exact boxes": with_paper("I", table_1(frame)),
        **types,
        CANDIDATES: together(pd.concat([run.candidates() for run in runs])),
    }


def costly_tables(run: Run, timed: int, real: Detector | None = None) -> dict[str, pd.DataFrame]:
    """Return the other tables, of one run.

    Args:
        run: The run.
        timed: Number of images whose seconds are measured.
        real: A real detector, None without one.
    """
    dataset, bench, same, seed = run.dataset, run.bench, run.oracle.same, run.seed
    setting_1 = {"Setting-1": run.steps_by(by_ambiguity=False), "REIC": run.steps}
    setting_2 = {"Setting-2": run.steps_by(by_diversity=False), "REIC": run.steps}
    parts = table_5(bench, with_detectors(dataset, seed, real), same, seed)
    others = table_2(bench, run.verdicts, run.steps, same, seed)
    return {
        "Table II: other methods": with_paper("II", others),
        "Table III: without the ambiguity score": with_paper("III", table_3(setting_1)),
        "Table IV: without the diversity score": with_paper("IV", table_4(setting_2, same)),
        "Table V: without each part": with_paper("V", parts),
        "Table VIII: seconds": seconds(timed, same, seed),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"scenes": 2, "timed": 1},
        scenes=300,
        timed=20,
        seed=0,
        seeds=1,
        cheap=False,
        omission=OMISSION,
        wordnet=Path,
        **DETECTOR,
    )
    same = EveryWay(chosen.wordnet)
    show(f"words: {fingerprint_of(same)}")
    seeds = range(chosen.seed, chosen.seed + chosen.seeds)
    runs = [Run.of(chosen.scenes, same, seed, chosen.omission) for seed in seeds]
    tables = cheap_tables(runs)
    if not chosen.cheap:
        tables |= costly_tables(runs[0], chosen.timed, real_detector(chosen))
    save_tables(tables, chosen.out / "caption_tables.json")


if __name__ == "__main__":
    main()
