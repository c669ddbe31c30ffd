"""Relations that tests need, and small spaces of questions that compare with a source image."""

from typing import Any

from adaptive_vtt import QuestionSpace
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.relations import FollowUp, LabelPreserving
from adaptive_vtt.testing import tiny_dataset

RELATIONS = ("identity", "gaussian_noise", "rotation")


def space(samples: int = 5, **options: Any) -> QuestionSpace:
    options = {"oracle": Consistency(), "severities": [1, 2], **options}
    return QuestionSpace(tiny_dataset(samples, 2), RELATIONS, **options)


class Negative(LabelPreserving):
    """The negative image, of which every answer should be the opposite."""

    name = "negative"
    severities = (1,)

    def transform(self, image: Any, severity: int, rng: Any) -> Any:
        return 255 - image

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        return 1 - truth


class Named(LabelPreserving):
    """A relation without images, which does not apply to one concept."""

    def __init__(self, name: str, severities: tuple[int, ...] = (1,), without: str = "") -> None:
        self.name, self.severities, self._without = name, severities, without

    def applies(self, concept: str) -> bool:
        return concept != self._without
