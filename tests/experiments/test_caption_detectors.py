"""What detectors add to REIC's localisation, on photographs boxed by hand."""

from adaptive_vtt.experiments.reic import caption_detectors
from adaptive_vtt.experiments.reic.caption_detectors import localised, summary
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.types import Box, Image

SIZE = (96, 128)


class Finds:
    """A detector that finds the same in every picture."""

    fingerprint = "finds"

    def __init__(self, *boxes: Box) -> None:
        self.boxes = boxes

    def detect(self, image: Image) -> tuple[Box, ...]:
        return self.boxes


def test_found_by_name_by_hiding_and_not_at_all() -> None:
    exact = scenes(1, size=SIZE)
    captioner = TemplateCaptioner(omission=0, misclassification=0, fabrication=0, setting=0)
    first, second, *others = exact.sample(0).boxes
    there = {first.label, second.label, *(box.label for box in others)}
    nameless = Box("", *second.edges)
    detected = caption_detectors.Detected(exact, Finds(first, nameless))
    result = localised(exact, detected, captioner, ReducedCaptions())
    assert sorted(result["how"]) == ["hiding", "name", *["not"] * (len(there) - 2)]
    counts = summary(result)
    assert counts["things"] == len(there)
    assert counts["by name"] == counts["by name, right"] == 1
    assert counts["by hiding"] == counts["by hiding, right"] == 1
    assert counts["not found"] == len(there) - 2
    assert counts["hidden"] > 0
