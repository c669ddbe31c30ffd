"""REIC's tables on drawn scenes and a captioner whose every fault is known.

The paper is Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE
2024). What is really wrong is defined in ``caption_truth.py`` beside this file.

- Table I: verdicts on objects and cases, and their scores; "errors" are all that is wrong with
  the captions, also what no relation between them could show, "found" those reported. An
  object that both captions name is counted once, the paper counts it twice.
- Table II: MetaIC and ROME beside REIC, see ``caption_rivals.py``.
- Table VI: the types of true positives, and how the oracle's guesses at them agree; and what
  led to false alarms.
- Table V: F1 at object level without each part, on the follow-ups that all parts chose, with
  three detectors: exact boxes; boxes of which some are missed (MISSED) and some bear the name
  of what the thing is easily taken for (MISLABELLED); and region proposals, without names;
  with ``--detector`` also with a real one, trained on photographs.
  "places named": nouns that say where the picture was taken are read as objects, too, as the
  paper's plain rule has it; "all boxes hidden": also those that match a name, as in the paper.
- Tables III and IV: follow-ups chosen without the ambiguity score (Setting-1), and without the
  diversity score (Setting-2).
- Candidates before and after the caption: see ``caption_candidates.py``.
- Table VIII: seconds on one thread, see ``caption_seconds.py``.

Tables I and VI and the candidates count ``--seeds`` seeds together, the others are of the first;
``--cheap`` leaves those out.

Columns "paper: ..." have the least and the most of the paper's captioners and sets of photographs.

Words are compared by number, last words and, where ``--wordnet`` or $WNSEARCHDIR names its
folder, by WordNet; vectors count where they are installed.
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
from .caption_detectors import DETECTOR, drawn, real_detector
from .caption_rivals import table_2
from .caption_seconds import seconds
from .caption_verdicts import (
    CAUSES,
    Bench,
    Remembered,
    by_relation,
    confusion,
    hidden,
    percent,
    verdicts,
)
from .drawn_scenes import scenes
from .reic_beside import beside
from .reic_scheme import Step, distinct, scheme, statuses
from .template_captioner import TemplateCaptioner
from .wordnet import EveryWay

TYPES = "Table VI: true positives by type"
CANDIDATES = "Candidates before and after the caption"
OMISSION = 0.1
"""Share of the things in a picture that its captions leave out, unless another is given."""

# -- what is audited -------------------------------------------------------------------


def ablations(same: Same) -> dict[str, ReducedCaptions]:
    """The oracle with all its parts, and without each."""
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
    """Verdicts per relation and level."""
    rows = []
    for relation, part in by_relation(frame):
        cases = part.groupby("case")[["real", "reported"]].any()
        wrong = part["error"] != "none"
        found = {"errors": int(wrong.sum()), "found": int((wrong & part["reported"]).sum())}
        rows.append({"level": "object", "relation": relation, **confusion(part), **found})
        rows.append({"level": "case", "relation": relation, **confusion(cases)})
    table = pd.DataFrame(rows).sort_values("level", ascending=False, kind="stable")
    return table.astype({"errors": "Int64", "found": "Int64"})


def table_6(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """True positives by type and relation; reports by true type and guess, with the share of
    each true type that was guessed; false alarms by cause."""
    told, types = frame[frame["reported"]], list(ERROR_TYPES)
    hits = told[told["real"]]
    guesses = _counted(told, "error", "guess", [*types, "none"], types)
    right, of = np.diag(guesses.to_numpy()), guesses.to_numpy().sum(axis=1)
    guesses["guessed"] = [
        *(percent(r / n if n else None) for r, n in zip(right, of[:-1], strict=True)),
        None,
    ]
    return {
        TYPES: _counted(hits, "error", "relation", types, KINDS),
        "Table VI: reports by true type, and guess": guesses,
        "False alarms by cause": _counted(told, "cause", "relation", CAUSES, KINDS),
    }


def _counted(
    frame: pd.DataFrame, row: str, column: str, rows: Sequence[str], columns: Sequence[str]
) -> pd.DataFrame:
    """How many rows of the frame have each value of two of its columns."""
    table = pd.crosstab(frame[row], frame[column])
    return table.reindex(index=list(rows), columns=list(columns), fill_value=0)


def table_5(bench: Bench, detected: dict[str, Dataset], same: Same, seed: int) -> pd.DataFrame:
    """Scores at object level with and without each part, by detector and relation."""
    rows = []
    for name, dataset in detected.items():
        oracles = ablations(same)
        steps = list(scheme(dataset, bench.captioner, oracles["all parts"], seed=seed))
        truths = bench.truths(steps)
        for part, oracle in oracles.items():
            own = part == "all parts"
            again = steps if own else bench.judged_again(dataset, steps, oracle)
            frame = verdicts(again, truths)
            rows += [
                {
                    "detector": name,
                    "relation": relation,
                    "oracle": part,
                    "hidden": hidden(again),
                    **confusion(part_of),
                }
                for relation, part_of in by_relation(frame)
            ]
    table = pd.DataFrame(rows)
    best = table.groupby(["detector", "relation"], sort=False)["F1"].transform("first")
    table["difference"] = (table["F1"].astype(float) - best.astype(float)).round(1)
    return table


def table_3(settings: dict[str, list[Step]]) -> pd.DataFrame:
    """What the follow-ups of each setting do to the source's objects."""
    rows = []
    for row, own in _by_setting(settings):
        counts = [statuses([step]) for step in own]
        valid = [each["disappeared"] + each["retained"] for each in counts]
        more = {"valid objects": sum(valid), "valid cases": sum(map(bool, valid))}
        told = {"cases": len(own), "reported": sum(len(step.violations) for step in own)}
        rows.append({**row, **statuses(own), **more, **told})
    return pd.DataFrame(rows)


def table_4(settings: dict[str, list[Step]], same: Same) -> pd.DataFrame:
    """Of how many objects, and of how many images, each setting reports a violation."""
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
        dataset = scenes(count, seed=seed)
        bench = Bench(dataset, Remembered(TemplateCaptioner(seed=seed, omission=omission)))
        return cls(dataset, bench, ReducedCaptions(language.reader(), same), seed)

    @cached_property
    def steps(self) -> list[Step]:
        """All follow-ups that REIC asks about."""
        return self.without()

    def without(self, **score: bool) -> list[Step]:
        """Those without a score: by_ambiguity=False or by_diversity=False."""
        captioner = self.bench.captioner
        return list(scheme(self.dataset, captioner, self.oracle, seed=self.seed, **score))

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """What is reported and what is wrong, with cases that no other seed has."""
        found = verdicts(self.steps, self.bench.truths(self.steps))
        return found.assign(case=f"seed {self.seed}: " + found["case"])

    def candidates(self) -> pd.DataFrame:
        """Candidates before and after the caption."""
        return before_and_after(self.bench, self.dataset, self.oracle, self.steps)


def cheap_tables(runs: Sequence[Run]) -> dict[str, pd.DataFrame]:
    """Tables I and VI, and candidates before and after the caption: counts of all runs."""
    frame = pd.concat([run.verdicts for run in runs])
    types = {title: table.reset_index() for title, table in table_6(frame).items()}
    types[TYPES] = beside("VI", types[TYPES])
    return {
        "Table I: verdicts, exact boxes": beside("I", table_1(frame)),
        **types,
        CANDIDATES: together(pd.concat([run.candidates() for run in runs])),
    }


def costly_tables(run: Run, timed: int, real: Detector | None = None) -> dict[str, pd.DataFrame]:
    """The others, of one run. ``timed``: images whose seconds are taken; ``real``: a detector."""
    dataset, bench, same, seed = run.dataset, run.bench, run.oracle.same, run.seed
    ambiguous = table_3({"Setting-1": run.without(by_ambiguity=False), "REIC": run.steps})
    alike = table_4({"Setting-2": run.without(by_diversity=False), "REIC": run.steps}, same)
    parts = table_5(bench, drawn(dataset, seed, real), same, seed)
    others = table_2(bench, run.verdicts, run.steps, same, seed)
    return {
        "Table II: other methods": beside("II", others),
        "Table III: without the ambiguity score": beside("III", ambiguous),
        "Table IV: without the diversity score": beside("IV", alike),
        "Table V: without each part": beside("V", parts),
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
    found = cheap_tables(runs)
    if not chosen.cheap:
        found |= costly_tables(runs[0], chosen.timed, real_detector(chosen))
    save_tables(found, chosen.out / "caption_tables.json")


if __name__ == "__main__":
    main()
