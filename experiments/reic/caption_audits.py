"""Audits of a captioner whose every fault is known: what adaptive choice saves.

    python -m adaptive_vtt.experiments.reic.caption_audits [--quick] [--json FILE]

- Distinct violations, of (image, object) pairs, per 1,000 captions paid for: the strategy
  "distinct-violations" against REIC's own scheme (``reic_scheme.py``: three follow-ups of each
  image and relation, chosen from all candidates once the source is captioned, images in random
  order), each ended after as many captions. A violation counts once per thing: the label of
  the detector's box around it, or else its name. "real": only those where one of the two
  captions has a fault about that thing (``caption_truth.py``).
- Captions to certify the violation rates of the three relations to +-.05, at 95 % together,
  against uniform draws with the same guarantee.

Scenes, captioner and all draws follow from the seed; a mean over seeds is given with its
standard error. Images come with exact boxes; captions about hidden boxes are paid for.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.census import all_losses, means
from adaptive_vtt.certify import named_targets
from adaptive_vtt.demo.drawn_scenes import Scenes, scenes
from adaptive_vtt.demo.template_captioner import TemplateCaptioner
from adaptive_vtt.oracles import ReducedCaptions
from adaptive_vtt.oracles.findings import thing
from adaptive_vtt.relations import reic
from adaptive_vtt.relations.reduction import visible_shares
from adaptive_vtt.utils.files import write_text

from .caption_truth import KINDS_OF_WORDS, truth
from .reic_scheme import scheme

SCENES, CAPTIONS, SEEDS = 300, 1000, 10
HALF_WIDTH = 0.05


@dataclass(frozen=True)
class Report:
    """A violation as it was reported, after ``paid`` captions; ``real``: whether one of the two
    captions has a fault about that thing."""

    paid: int
    sample: int
    what: str
    real: bool


@dataclass(frozen=True)
class Captioning:
    """Scenes with exact boxes, and the captioner they are shown to."""

    scenes: Scenes
    captioner: TemplateCaptioner

    @classmethod
    def of(cls, count: int, seed: int) -> "Captioning":
        return cls(scenes(count, seed=seed), TemplateCaptioner(seed=seed))

    def space(self) -> QuestionSpace:
        return QuestionSpace(self.scenes, reic.relations(), oracle=ReducedCaptions())

    def by_scheme(self, captions: int, seed: int) -> Iterator[Report]:
        """What REIC's scheme reports within so many captions."""
        for step in scheme(self.scenes, self.captioner, ReducedCaptions(), seed=seed):
            if step.paid > captions:
                return
            yield from self._reports(step.paid, step.sample, step.reduction, step.objects)

    def by_audit(self, strategy: str, captions: int, seed: int) -> Iterator[Report]:
        """What an audit reports."""
        space = self.space()
        looked_at = space.size if strategy == "reic" else 4096
        audit = Audit(
            space,
            self.captioner,
            strategy=strategy,
            budget=captions,
            seed=seed,
            candidates=looked_at,
        )
        paid = audit.run().calls
        for call in audit.journal.calls():
            sample, variant, _ = (int(part) for part in space.parts(call.answers[0].question))
            chosen = space.variants[variant]
            reduction = chosen.relation.reduction(  # type: ignore[attr-defined]
                self.scenes.sample(sample), chosen.severity
            )
            objects = (call.answers[0].details or {}).get("objects", ())
            yield from self._reports(paid, sample, reduction, objects)

    def _reports(
        self, paid: int, index: int, reduction: Any, objects: Iterable[dict[str, Any]]
    ) -> Iterator[Report]:
        broken = [one for one in objects if one["rule"] is not None]
        if not broken:
            return
        sample = self.scenes.sample(index)
        there = {kind: mask for kind, mask in sample.masks.items() if mask.any()}
        shares = visible_shares([*there.values()], [reduction])[:, 0].tolist()
        units = truth(
            self.captioner.explain(sample.require_image()),
            self.captioner.explain(reduction.image(sample.require_image())),
            dict(zip(there, shares, strict=True)),
        )
        wrong = {KINDS_OF_WORDS[unit.name] for unit in units if unit.error is not None}
        for one in broken:
            yield Report(paid, index, thing(one), KINDS_OF_WORDS.get(one["name"]) in wrong)


def distinct_violations(count: int, captions: int, seeds: int) -> pd.DataFrame:
    """Distinct violations within ``captions`` captions; a row per seed and way."""
    rows = []
    for seed in range(seeds):
        bench = Captioning.of(count, seed)
        ways = {"REIC's scheme": bench.by_scheme(captions, seed)}
        for strategy in ("random", "reic", "distinct-violations"):
            ways[strategy] = bench.by_audit(strategy, captions, seed)
        for way, reports in ways.items():
            found = list(reports)
            every = {(r.sample, r.what) for r in found}
            real = {(r.sample, r.what) for r in found if r.real}
            rows.append({"seed": seed, "way": way, "distinct": len(every), "real": len(real)})
    return pd.DataFrame(rows)


def certifying(count: int, half_width: float, seeds: int) -> pd.DataFrame:
    """Captions until all three rates are certified; a row per seed and strategy."""
    rows = []
    for seed in range(seeds):
        bench = Captioning.of(count, seed)
        space = bench.space()
        questions, losses = all_losses(space, bench.captioner)
        rates = means(space, named_targets(space, ["relations"], None), questions, losses)
        for name, options in (
            ("uniform", {"strategy": "random", "surrogate": False}),
            ("certify", {}),
            ("neyman", {"strategy": "neyman"}),
        ):
            audit = Audit(
                bench.space(),
                bench.captioner,
                half_width=half_width,
                targets=["relations"],
                seed=seed,
                **options,
            )
            result = audit.run()
            lower, upper = result.targets["lower"], result.targets["upper"]
            rows.append(
                {
                    "seed": seed,
                    "strategy": name,
                    "captions": result.calls,
                    "follow-ups": result.questions,
                    "covered": bool(((lower <= rates) & (rates <= upper)).all()),
                }
            )
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame, by: str, baseline: str, figures: Sequence[str]) -> pd.DataFrame:
    """Mean and standard error of each figure per ``by``, and the ratio of means to the
    baseline's."""
    groups = table.groupby(by, sort=False)
    found = pd.DataFrame({"seeds": groups["seed"].count()})
    for figure in figures:
        found[figure] = groups[figure].mean()
        found[f"{figure} +-"] = groups[figure].sem()
        found[f"{figure} ratio"] = found[figure] / float(groups[figure].mean()[baseline])
    if "covered" in table:
        found["covered"] = groups["covered"].sum()
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints both tables; see the head of this module."""
    options = argparse.ArgumentParser(description="Adaptive audits of a captioner.")
    options.add_argument("--quick", action="store_true", help="few scenes, one seed")
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--only", choices=("distinct", "certifying"))
    options.add_argument("--json", type=Path, help="write every run here")
    chosen = options.parse_args(arguments)
    count, captions, seeds = (20, 150, 1) if chosen.quick else (SCENES, CAPTIONS, chosen.seeds)
    half_width = 0.2 if chosen.quick else HALF_WIDTH
    runs = {}
    if chosen.only != "certifying":
        table = runs["distinct"] = distinct_violations(count, captions, seeds)
        print(f"distinct violations within {captions} captions, {count} scenes\n")
        print(summary(table, "way", "REIC's scheme", ("distinct", "real")).round(2).to_string())
    if chosen.only != "distinct":
        table = runs["certifying"] = certifying(count, half_width, max(1, seeds // 3))
        print(f"\ncaptions until all three rates are known to +-{half_width}\n")
        print(
            summary(table, "strategy", "uniform", ("captions", "follow-ups")).round(2).to_string()
        )
    if chosen.json:
        write_text(chosen.json, json.dumps({n: t.to_dict("records") for n, t in runs.items()}))


if __name__ == "__main__":
    main()
