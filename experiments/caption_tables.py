"""REIC's tables on drawn scenes and a captioner whose every fault is known.

The paper is Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE
2024). What is really wrong is defined in ``caption_truth.py`` beside this file.

- Table I: verdicts on objects and cases, and their scores; "errors" are all that is wrong with
  the captions, also what no relation between them could show, "found" those reported. An
  object that both captions name is counted once, the paper counts it twice.
- Table VI: the types of true positives, and how the oracle's guesses at them agree; and what
  led to false alarms.
- Table V: F1 at object level without each part, on the follow-ups that all parts chose, with
  three detectors: exact boxes; boxes of which some are missed (MISSED) and some bear the name
  of what the thing is easily taken for (MISLABELLED); and region proposals, without names.
  "places named": nouns that say where the picture was taken are read as objects, too, as the
  paper's plain rule has it; "all boxes hidden": also those that match a name, as in the paper.
- Tables III and IV: follow-ups chosen without the ambiguity score (Setting-1), and without the
  diversity score (Setting-2).
- Table VIII: seconds on one thread, see ``caption_seconds.py``.

Words are compared by number, last words and, where ``--wordnet`` or $WNSEARCHDIR names its
folder, by WordNet; vectors count where they are installed.
"""

import argparse
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd

from adaptive_vtt.captions import language
from adaptive_vtt.captions.base import Same
from adaptive_vtt.captions.detectors import Detected
from adaptive_vtt.captions.regions import Regions
from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.datasets.synthetic.scenery.vocabulary import TAKEN_FOR
from adaptive_vtt.datasets.synthetic.scenes import scenes
from adaptive_vtt.datasets.view import View
from adaptive_vtt.labelling.agreement import scores
from adaptive_vtt.models.demo.template_captioner import TemplateCaptioner, Told
from adaptive_vtt.oracles.caption_rules import ERROR_TYPES
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.relations.reduction import visible_shares
from adaptive_vtt.relations.reic import KINDS
from adaptive_vtt.types import Image, Sample
from adaptive_vtt.utils.files import write_text
from adaptive_vtt.utils.parts import describe_part
from adaptive_vtt.utils.random_streams import generator

from .caption_seconds import seconds
from .caption_truth import KINDS_OF_WORDS, Unit, truth
from .reic_scheme import Step, distinct, judge, listen, scheme

MISSED, MISLABELLED = 0.1, 0.15
PLACES = frozenset(("room", "house", "street", "city", "park", "lawn", "beach", "sea"))
"""What the captioner says of where things are: nouns, but no things."""
CAUSES = ("place named", "still to be seen", "other words", "partly in view")

# -- what is audited -------------------------------------------------------------------


class Remembered:
    """A captioner that looks at every picture once."""

    def __init__(self, captioner: TemplateCaptioner) -> None:
        self.captioner = captioner
        self._told: dict[tuple[tuple[int, ...], bytes], Told] = {}

    def explain(self, image: Image) -> Told:
        key = image.shape, _digest(image)
        if key not in self._told:
            self._told[key] = self.captioner.explain(image)
        return self._told[key]

    def caption(self, image: Image) -> str:
        return self.explain(image).caption


class Fallible(View):
    """A dataset as a detector sees it that misses boxes and mislabels others, at set rates."""

    def __init__(self, dataset: Dataset, missed: float, mislabelled: float, seed: int = 0) -> None:
        super().__init__(dataset, dataset.concepts, range(len(dataset.concepts)))
        self.missed, self.mislabelled, self.seed = missed, mislabelled, seed

    def sample(self, index: int) -> Sample:
        found = super().sample(index)
        chance = generator(self.seed, "fallible detector", index).random((len(found.boxes), 2))
        boxes = [
            replace(box, label=TAKEN_FOR[box.label]) if mistaken < self.mislabelled else box
            for box, (lost, mistaken) in zip(found.boxes, chance.tolist(), strict=True)
            if lost >= self.missed
        ]
        return replace(found, boxes=tuple(boxes))


def detectors(dataset: Dataset, seed: int) -> dict[str, Dataset]:
    """The dataset with the boxes of three detectors."""
    return {
        "exact boxes": dataset,
        "missed and mislabelled": Fallible(dataset, MISSED, MISLABELLED, seed),
        "region proposals": Detected(dataset, Regions()),
    }


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


# -- verdicts beside the truth ---------------------------------------------------------

Place = tuple[int, str, int]


@dataclass(frozen=True)
class Bench:
    """Scenes and the captioner they are shown to; ``dataset`` has the exact masks."""

    dataset: Dataset
    captioner: Remembered

    def truths(self, steps: Iterable[Step]) -> dict[Place, list[Unit]]:
        """Of each step what is really wrong."""
        found = {}
        for step in steps:
            sample = self.dataset.sample(step.sample)
            there = {kind: mask for kind, mask in sample.masks.items() if mask.any()}
            seen = visible_shares(list(there.values()), [step.reduction])[:, 0].tolist()
            found[place(step)] = truth(
                self.captioner.explain(sample.require_image()),
                self.captioner.explain(step.reduction.image(sample.require_image())),
                dict(zip(there, seen, strict=True)),
            )
        return found

    def judged_again(
        self, detected: Dataset, steps: Iterable[Step], oracle: ReducedCaptions
    ) -> list[Step]:
        """The same follow-ups by another oracle, which hears the versions that it needs."""
        found, heard = [], {}
        for step in steps:
            sample = detected.sample(step.sample)
            if step.sample not in heard:
                heard[step.sample] = listen(oracle, self.captioner, sample, step.heard)
            said = heard[step.sample]
            outcome = judge(oracle, sample, said, step.reduction, step.caption)
            found.append(replace(step, heard=said, outcome=outcome))
        return found


def place(step: Step) -> Place:
    """Which follow-up it is."""
    return step.sample, step.kind, step.rank


def verdicts(steps: Iterable[Step], truths: dict[Place, list[Unit]]) -> pd.DataFrame:
    """One row per name of a pair of captions: what is wrong with it, and what was reported.

    Names are joined as they stand in the captions. What the oracle reads as a name though the
    captioner meant none ("room") is a row without an error.
    """
    rows = []
    for step in steps:
        units = {(unit.name, unit.new): unit for unit in truths[place(step)]}
        findings = {(each["name"], each["status"] == "new"): each for each in step.objects}
        for key in {**units, **findings}:
            unit, finding = units.get(key, Unit(*key)), findings.get(key, {})
            reported = finding.get("rule") is not None
            rows.append(
                {
                    "relation": step.kind,
                    "case": str(place(step)),
                    "name": key[0],
                    "real": unit.violation or (reported and unit.error is not None),
                    "reported": reported,
                    "error": unit.error or "none",
                    "guess": finding.get("type") or "none",
                    "cause": _cause(unit, finding) if reported and not unit.error else "",
                }
            )
    columns = ["relation", "case", "name", "real", "reported", "error", "guess", "cause"]
    return pd.DataFrame(rows, columns=columns)


def _cause(unit: Unit, finding: dict[str, Any]) -> str:
    """Why a name without an error was reported: one of CAUSES."""
    if unit.name not in KINDS_OF_WORDS:
        return "place named"
    if finding["rule"] == 2:
        return "still to be seen"
    return "other words" if unit.again else "partly in view"


def confusion(frame: pd.DataFrame) -> dict[str, Any]:
    """TP, FN, FP, TN of rows with ``real`` and ``reported``, and the scores in per cent."""
    real, said = frame["real"].to_numpy(bool), frame["reported"].to_numpy(bool)
    pairs = ((real, said), (real, ~said), (~real, said), (~real, ~said))
    tp, fn, fp, tn = (int((one & other).sum()) for one, other in pairs)
    found = scores(tp, fp, fn, tn)
    return {
        "TP": tp,
        "FN": fn,
        "FP": fp,
        "TN": tn,
        "accuracy": _percent(found.accuracy),
        "precision": _percent(found.precision),
        "recall": _percent(found.recall),
        "F1": _percent(found.f1),
    }


# -- the tables ------------------------------------------------------------------------


def table_1(frame: pd.DataFrame) -> pd.DataFrame:
    """Verdicts per relation and level."""
    rows = []
    for relation, part in _parts(frame):
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
        *(_percent(r / n if n else None) for r, n in zip(right, of[:-1], strict=True)),
        None,
    ]
    return {
        "Table VI: true positives by type": _counted(hits, "error", "relation", types, KINDS),
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
            frame, hidden = verdicts(again, truths), _versions(again)
            rows += [
                {
                    "detector": name,
                    "relation": relation,
                    "oracle": part,
                    "hidden": hidden,
                    **confusion(part_of),
                }
                for relation, part_of in _parts(frame)
            ]
    table = pd.DataFrame(rows)
    best = table.groupby(["detector", "relation"], sort=False)["F1"].transform("first")
    table["difference"] = (table["F1"].astype(float) - best.astype(float)).round(1)
    return table


def _versions(steps: Sequence[Step]) -> float:
    """The mean number of versions captioned of an image."""
    images = {step.sample: len(step.heard.versions) for step in steps}
    return round(float(np.mean(list(images.values()))), 1) if images else 0.0


def table_3(settings: dict[str, list[Step]]) -> pd.DataFrame:
    """What the follow-ups of each setting do to the source's objects."""
    rows = []
    for kind in KINDS:
        for name, steps in settings.items():
            own = [step for step in steps if step.kind == kind]
            status = [[each["status"] for each in step.objects] for step in own]
            flat = [each for case in status for each in case]
            row = {each: flat.count(each) for each in ("ambiguous", "disappeared", "retained")}
            valid = [sum(each in ("disappeared", "retained") for each in case) for case in status]
            rows.append(
                {
                    "relation": kind,
                    "setting": name,
                    **row,
                    "valid objects": sum(valid),
                    "valid cases": sum(map(bool, valid)),
                    "cases": len(own),
                    "reported": sum(len(step.violations) for step in own),
                }
            )
    return pd.DataFrame(rows)


def table_4(settings: dict[str, list[Step]], same: Same) -> pd.DataFrame:
    """Of how many objects, and of how many images, each setting reports a violation."""
    rows = []
    for kind in KINDS:
        for name, steps in settings.items():
            own = [step for step in steps if step.kind == kind]
            new = [(step.sample, names) for step, names in distinct(own, same)]
            rows.append(
                {
                    "relation": kind,
                    "setting": name,
                    "distinct objects": sum(len(names) for _, names in new),
                    "distinct images": len({sample for sample, names in new if names}),
                }
            )
    return pd.DataFrame(rows)


# -- the run ---------------------------------------------------------------------------


def tables(count: int, timed: int, same: Same, seed: int) -> dict[str, pd.DataFrame]:
    """All of them, by title."""
    dataset = scenes(count, seed=seed)
    bench = Bench(dataset, Remembered(TemplateCaptioner(seed=seed)))
    oracle = ReducedCaptions(language.reader(), same)
    settings = {
        "REIC": list(scheme(dataset, bench.captioner, oracle, seed=seed)),
        "Setting-1": list(scheme(dataset, bench.captioner, oracle, by_ambiguity=False, seed=seed)),
        "Setting-2": list(scheme(dataset, bench.captioner, oracle, by_diversity=False, seed=seed)),
    }
    frame = verdicts(settings["REIC"], bench.truths(settings["REIC"]))
    return {
        "Table I: verdicts, exact boxes": table_1(frame),
        **{title: table.reset_index() for title, table in table_6(frame).items()},
        "Table III: without the ambiguity score": table_3(_only(settings, "Setting-1")),
        "Table IV: without the diversity score": table_4(_only(settings, "Setting-2"), same),
        "Table V: without each part": table_5(bench, detectors(dataset, seed), same, seed),
        "Table VIII: seconds": seconds(timed, same, seed),
    }


def _only(settings: dict[str, list[Step]], other: str) -> dict[str, list[Step]]:
    return {name: settings[name] for name in (other, "REIC")}


def _parts(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each relation, and of all together."""
    return [(kind, frame[frame["relation"] == kind]) for kind in KINDS] + [("all", frame)]


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)


def _digest(image: Image) -> bytes:
    return hashlib.blake2b(image.tobytes(), digest_size=16).digest()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="few scenes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wordnet", type=Path, help="the folder of WordNet's database")
    parser.add_argument("--json", type=Path, help="also write the tables to this file")
    options = parser.parse_args(arguments)
    cv2.setNumThreads(1)
    same = language.same(wordnet=options.wordnet)
    print(f"words: {describe_part(same)}")
    count, timed = (2, 1) if options.quick else (options.scenes, 20)
    found = tables(count, timed, same, options.seed)
    for title, frame in found.items():
        print(f"\n{title}\n{frame.astype(object).fillna('').to_string(index=False)}", flush=True)
    if options.json:
        rows = {
            title: json.loads(frame.to_json(orient="records")) for title, frame in found.items()
        }
        write_text(options.json, json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
