"""Twelve drawn scenes, captioners of them, and findings of their audits."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd

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


def write_captions(folder: Path, seed: int) -> None:
    """Caption every picture that an export listed in ``answers.csv``."""
    table, captioner = pd.read_csv(folder / "answers.csv", dtype=str), faulty(seed=seed)
    images = [cv2.imread(str(folder / "images" / name))[:, :, ::-1] for name in table["file"]]
    table["caption"] = [captioner.caption(np.ascontiguousarray(image)) for image in images]
    table.to_csv(folder / "answers.csv", index=False)
