"""From questions to calls, and from a call's answer to judged rows for the journal."""

from typing import Literal

import numpy as np

from .datasets.base import UNKNOWN, Image, Indices
from .journal import AnswerRow, CallRow
from .models.base import Answer, Prompt, Unanswered
from .relations import FollowUp
from .space import QuestionSpace

MAX_PICTURES = 60
"""So many failing calls leave their pictures in the journal."""
PICTURE_SIDE = 160
"""Pictures are shrunk to this many pixels on the longer side."""


class Judge:
    """Knows what one call covers, what to send, and what the answer is worth.

    With ``answers`` "all" a call is about one image and all concepts, and is numbered by
    the image; with "one" it is one question, numbered as such.
    """

    def __init__(self, space: QuestionSpace, answers: Literal["one", "all"], seed: int) -> None:
        self.space = space
        self.answers = answers
        self.seed = seed
        self._follow_ups: dict[int, FollowUp] = {}
        self.pictures = 0  # kept so far, those of an earlier run included

    def call_of(self, question: int) -> int:
        """The call that answers ``question``."""
        return question if self.answers == "one" else int(self.space.image_of(question))

    def all_questions_of(self, call: int) -> Indices:
        """Every question the call answers, those that cannot be judged included."""
        if self.answers == "one":
            return np.array([call])
        count = len(self.space.concepts)
        return np.arange(call * count, (call + 1) * count)

    def questions_of(self, call: int) -> Indices:
        """The eligible questions the call answers."""
        questions = self.all_questions_of(call)
        return questions[self.space.eligible(questions)]

    def prompt(self, call: int) -> Prompt:
        """What is sent to the model."""
        question = self.space.question(int(self.all_questions_of(call)[0]))
        concepts = (question.concept,) if self.answers == "one" else self.space.concepts
        return Prompt(
            self._follow_up(call).image,
            concepts,
            question.sample_id,
            question.relation,
            question.severity,
        )

    def row(self, call: int, answer: Answer | Unanswered, elapsed: float) -> CallRow:
        """The judged answer, ready for the journal."""
        questions = self.all_questions_of(call)
        values: tuple[float | Unanswered, ...]
        values = answer.values if isinstance(answer, Answer) else (answer,) * len(questions)
        follow_up = self._follow_up(call)
        pairs = zip(questions.tolist(), values, strict=True)
        rows = tuple(self._judge(call, q, v, follow_up) for q, v in pairs)
        failed = any(r.loss is not None and r.loss >= 0.5 for r in rows)
        pictures = self._picture(call, follow_up) if failed else None
        return CallRow(call, answer.cost, elapsed, rows, pictures)

    def forget(self, call: int) -> None:
        """Lets go of the call's image."""
        self._follow_ups.pop(call, None)

    def _judge(
        self, call: int, number: int, value: float | Unanswered, follow_up: FollowUp
    ) -> AnswerRow:
        missing = isinstance(value, Unanswered)
        answer = None if isinstance(value, Unanswered) else float(value)
        reason = value.reason if isinstance(value, Unanswered) else None
        question = self.space.question(number)
        if question.truth == UNKNOWN or not self.space.eligible([number])[0]:
            return AnswerRow(number, call, None, answer, reason, None, None)
        _, variant, _ = self.space.parts(number)
        expected = self.space.variants[int(variant)].relation.expect(question.truth, follow_up)
        outcome = self.space.oracle.judge(question, value, expected, None)
        coordinate = None if missing else outcome.coordinate
        return AnswerRow(number, call, expected, answer, reason, outcome.loss, coordinate)

    def _follow_up(self, call: int) -> FollowUp:
        if call not in self._follow_ups:
            image = call // len(self.space.concepts) if self.answers == "one" else call
            self._follow_ups[call] = self.space.follow_up(image, self.seed)
        return self._follow_ups[call]

    def _picture(self, call: int, follow_up: FollowUp) -> tuple[bytes, bytes] | None:
        if follow_up.image is None or self.pictures >= MAX_PICTURES:
            return None
        self.pictures += 1
        sample, _, _ = self.space.parts(self.all_questions_of(call)[0])
        source = self.space.dataset.sample(int(sample)).image
        assert source is not None
        return thumbnail(source), thumbnail(follow_up.image)


def thumbnail(image: Image) -> bytes:
    """A PNG of H x W x 1 or 3 uint8, shrunk to PICTURE_SIDE."""
    import cv2

    scale = PICTURE_SIDE / max(image.shape[:2])
    if scale < 1:
        image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    if image.ndim == 3 and image.shape[2] == 3:
        image = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    done, data = cv2.imencode(".png", image)
    assert done
    return data.tobytes()
