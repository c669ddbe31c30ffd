"""Twelve drawn scenes, captioners of them, and what an audit found."""

from typing import Any

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.oracles import ReducedCaptions
from adaptive_vtt.relations import reic

SCENES = scenes(12, seed=7)


def space(follow_ups: int = 3, **options: Any) -> QuestionSpace:
    return QuestionSpace(
        SCENES, reic.relations(follow_ups=follow_ups), oracle=ReducedCaptions(**options)
    )


def faultless() -> TemplateCaptioner:
    return TemplateCaptioner(omission=0, misclassification=0, fabrication=0, synonyms=0, setting=0)


def faulty(**rates: float) -> TemplateCaptioner:
    return TemplateCaptioner(**{"omission": 0.3, "misclassification": 0.1, "setting": 0, **rates})


def findings(audit: Audit) -> list[dict[str, Any]]:
    answers = [a for call in audit.journal.calls() for a in call.answers]
    return [o for a in answers for o in (a.details or {})["objects"]]
