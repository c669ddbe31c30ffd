"""MetaIC and ROME compared with REIC: what each reports of the same captioner."""

import pandas as pd

from adaptive_vtt.experiments.reic.caption_candidates import before_and_after, presumed, together
from adaptive_vtt.experiments.reic.caption_classes import CaptionClasses
from adaptive_vtt.experiments.reic.caption_rivals import Pair, edited
from adaptive_vtt.experiments.reic.caption_verdicts import Bench, CachedCaptioner
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.experiments.reic.metaic_rome import ROME
from adaptive_vtt.experiments.reic.reic_scheme import scheme
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.oracles.captions import language
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.relations.reic import Reduced

SCENES = scenes(4, size=(128, 168))


def bench(**rates: float) -> Bench:
    none = {"omission": 0, "misclassification": 0, "fabrication": 0, "synonyms": 0, "setting": 0}
    return Bench(SCENES, CachedCaptioner(TemplateCaptioner(**{**none, **rates})))


def pairs(**rates: float) -> list[Pair]:
    oracle = CaptionClasses(reader=language.reader(), same=language.same())
    return list(edited(bench(**rates), ROME(), oracle, 0))


def test_of_faultless_captions_every_report_is_a_false_alarm() -> None:
    assert all(pair.right == () for pair in pairs())


def test_of_faulty_captions_reports_are_right_where_there_is_a_fault() -> None:
    result = pairs(omission=0.4)
    assert any(pair.right for pair in result)
    assert all(set(pair.right) <= set(pair.reported) for pair in result)


def test_candidates_before_the_caption_are_those_of_an_audit() -> None:
    of, oracle = bench(omission=0.4), ReducedCaptions()
    steps = [step for step in scheme(SCENES, of.captioner, oracle) if step.kind == "crop"]
    made = list(presumed(of, SCENES, oracle, steps))
    for step, other in zip(steps, made, strict=True):
        sample = SCENES.sample(step.sample)
        assert other.reduction == Reduced("crop").reduction(sample, step.rank)
        assert (other.sample, other.rank, other.received) == (step.sample, step.rank, step.received)
    rows = before_and_after(of, SCENES, oracle, steps)
    crops = rows[rows["relation"] == "crop"]
    assert crops["follow-ups"].tolist() == 4 * [len(steps)]
    before, after = crops.iloc[0], crops.iloc[-1]
    assert [before["violations"], after["violations"]] == [
        sum(bool(each.violations) for each in result) for result in (made, steps)
    ]
    assert rows["per cent"].isna().sum() == 8  # no stretch, no rotation
    twice = together(pd.concat([rows, rows]))
    assert twice["violations"].tolist() == (2 * rows["violations"]).tolist()
    assert twice["per cent"].equals(rows["per cent"])
