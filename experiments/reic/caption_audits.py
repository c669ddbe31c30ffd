"""Audits of a captioner whose every fault is known: what adaptive choice saves.

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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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

from ..program import options, show, told_together
from .caption_truth import KINDS_OF_WORDS, truths_of
from .reic_scheme import scheme


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
        units = truths_of(self.captioner, self.scenes.sample(index), reduction)
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
        for name, given in (
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
                **given,
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
    chosen = options(
        __doc__,
        arguments,
        quick={"scenes": 20, "captions": 150, "seeds": 1, "half_width": 0.2},
        only=dict.fromkeys(("distinct", "certifying")),
        scenes=300,
        captions=1000,
        seeds=10,
        half_width=0.05,
    )
    runs = {}
    if "distinct" in chosen.only:
        table = runs["distinct"] = distinct_violations(chosen.scenes, chosen.captions, chosen.seeds)
        figures = summary(table, "way", "REIC's scheme", ("distinct", "real")).round(2)
        title = f"distinct violations within {chosen.captions} captions, {chosen.scenes} scenes"
        show(figures, title, index=True)
    if "certifying" in chosen.only:
        seeds = max(1, chosen.seeds // 3)
        table = runs["certifying"] = certifying(chosen.scenes, chosen.half_width, seeds)
        figures = summary(table, "strategy", "uniform", ("captions", "follow-ups")).round(2)
        title = f"captions until all three rates are known to +-{chosen.half_width}"
        show(figures, title, index=True)
    told_together(runs, chosen.out / "caption_audits.json")


if __name__ == "__main__":
    main()
