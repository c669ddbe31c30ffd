"""Captions: one open question per image, asked about sources, too.

``Captioned`` is a dataset as a captioner sees it; ``CaptionOracle`` the base of its oracles.
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
    """``dataset`` with the only concept "caption", asked about in words, of every sample.

    ``received``: by sample, the model's answers by which follow-ups are chosen.
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
        """Return a hash that covers the words of the question, too: other words, another audit."""
        content = repr((super().fingerprint, self.question))
        return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("source", "caption", "reduction"), ""),
    **{"size": [1, 1], "shown_size": [1, 1], "boxes": [], "objects": [], "unnamed": []},
    **{"comparable": False, "versions": 0},
}
"""The details of a follow-up without a caption: every field, empty."""
NOT_CAPTIONED = Outcome(0.0, excluded="the source image was not captioned", details=NOTHING)
_FIRST_PERSON = re.compile(r"\s*(i\b|i['’]m|sorry|as an\b|unfortunately|(my )?apologies)", re.I)


class CaptionOracle(OracleDefaults):
    """Base of oracles that read captions against the source image's.

    Where the source was not captioned its follow-ups are excluded.
    """

    needs_source = True
    rates = VIOLATIONS

    def __init__(self, question: str = QUESTION, unanswered_loss: float = 1.0) -> None:
        self.question, self.unanswered_loss = question, unanswered_loss

    def view(self, dataset: Dataset) -> Dataset:
        """Raise InputError for a dataset without images."""
        if not dataset.has_images:
            raise InputError(f"captions: expected images, dataset {dataset.name!r} has none")
        return Captioned(dataset, self.question)

    def asked(self, dataset: CompleteDataset) -> tuple[tuple[str, ...], Sequence[int]]:
        return (CAPTION,), range(1)

    def unread(self, answer: Any, sample: str) -> Outcome | None:
        """Return the outcome of an answer without a caption; None for a caption.

        Raises:
            ModelError: The answer is no text.
        """
        if isinstance(answer, Unanswered):
            return Outcome(self.unanswered_loss)
        no = refusal(words(answer, sample))
        if no or not answer.strip():
            return Outcome(self.unanswered_loss, unanswered=no or NO_ANSWER)
        return None


def caption_of(answer: SourceAnswer, sample: str) -> str | None:
    """Return a source image's caption; None if it was not captioned."""
    if answer is None or isinstance(answer, Unanswered):
        return None
    caption = words(answer, sample)
    return None if refusal(caption) or not caption.strip() else caption


def refusal(caption: str) -> str | None:
    """Return the words of a caption that refuse to describe the image; None for any other caption.

    Only captions that begin in the first person can refuse: "a man cannot open a door" says what
    is in the picture, "I cannot ..." does not.
    """
    return declines(caption) if _FIRST_PERSON.match(caption) else None


def words(answer: Any, sample: str) -> str:
    """Return the answer; raises ModelError for one that is no text."""
    if not isinstance(answer, str):
        raise ModelError(f"captions: expected a text, got {answer!r} for sample {sample!r}")
    return answer
