"""Captions: one open question per image, which is asked about source images, too.

``Captioned`` is the view of a dataset for captioners, and ``CaptionOracle`` the base of oracles.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any

from ..datasets.base import CompleteDataset, Dataset
from ..datasets.view import View
from ..errors import InputError, ModelError
from ..models.reply_frames import NO_ANSWER
from ..models.yes_no import declines
from ..types import CAPTION, Ask, Outcome, Received, Sample, SourceAnswer, Unanswered
from ..utils.options import Option
from .base import OracleDefaults
from .labels import VIOLATIONS

QUESTION = "Describe the image in one sentence."
QuestionOption = Annotated[str, Option("what to ask about every image", min_length=1)]


class Captioned(View):
    """A dataset whose only concept is "caption", which is asked about each sample.

    Args:
        dataset: The dataset.
        question: The question about each image.

    Attributes:
        received: Index of a sample -> the model's answers by which its follow-ups are chosen.
    """

    def __init__(self, dataset: Dataset, question: str = QUESTION) -> None:
        super().__init__(dataset, (CAPTION,), (0,), (1, 1, 1))
        self.question = question
        self.received: dict[int, Received] = {}

    def asks(self, index: int) -> Mapping[str, Ask]:
        return {CAPTION: Ask(self.question)}

    def sample(self, index: int) -> Sample:
        return replace(
            super().sample(index), asks=self.asks(index), received=self.received.get(index)
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash that covers the text of the question, too."""
        content = repr((super().fingerprint, self.question))
        return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("source", "caption", "reduction"), ""),
    **{"size": [1, 1], "shown_size": [1, 1], "boxes": [], "objects": [], "unnamed": []},
    **{"comparable": False, "versions": 0},
}
"""The details of a follow-up without a caption, with empty fields."""
NOT_CAPTIONED = Outcome(0.0, excluded="the source image was not captioned", details=NOTHING)
_FIRST_PERSON = re.compile(r"\s*(i\b|i['’]m|sorry|as an\b|unfortunately|(my )?apologies)", re.I)


class CaptionOracle(OracleDefaults):
    """Base of oracles that compare captions with that of the source image.

    Follow-ups of a source without a caption are excluded.

    Args:
        question: The question about each image.
        unanswered_loss: Loss of a question without answer.
    """

    needs_source = True
    rates = VIOLATIONS

    def __init__(self, question: str = QUESTION, unanswered_loss: float = 1.0) -> None:
        self.question, self.unanswered_loss = question, unanswered_loss

    def view(self, dataset: Dataset) -> Dataset:
        """Return the view of captioners; raise InputError for a dataset without images."""
        if not dataset.has_images:
            raise InputError(f"captions: expected images, dataset {dataset.name!r} has none")
        return Captioned(dataset, self.question)

    def asked(self, dataset: CompleteDataset) -> tuple[tuple[str, ...], Sequence[int]]:
        return (CAPTION,), range(1)

    def unread(self, answer: Any, sample: str) -> Outcome | None:
        """Return the outcome of an answer that is no caption; None if it is a caption.

        Raises:
            ModelError: The answer is no text.
        """
        if isinstance(answer, Unanswered):
            return Outcome(self.unanswered_loss)
        refused = refusal(words(answer, sample))
        if refused or not answer.strip():
            return Outcome(self.unanswered_loss, unanswered=refused or NO_ANSWER)
        return None


def caption_of(answer: SourceAnswer, sample: str) -> str | None:
    """Return a source image's caption; None if it was not captioned."""
    if answer is None or isinstance(answer, Unanswered):
        return None
    caption = words(answer, sample)
    return None if refusal(caption) or not caption.strip() else caption


def refusal(caption: str) -> str | None:
    """Return the reason if a caption refuses to describe the image, else None.

    Only captions that begin in the first person can refuse: "I cannot ..." does, "a man cannot open
    a door" describes the image.
    """
    return declines(caption) if _FIRST_PERSON.match(caption) else None


def words(answer: Any, sample: str) -> str:
    """Return an answer that is a text; raise ModelError for another one."""
    if not isinstance(answer, str):
        raise ModelError(f"captions: expected a text, got {answer!r} for sample {sample!r}")
    return answer
