"""The samples of a dataset as a captioner sees them: one open question about each image."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Annotated

from ..datasets.base import Dataset
from ..datasets.view import View
from ..types import CAPTION, Ask, Sample
from ..utils.options import Option

QUESTION = "Describe the image in one sentence."
QuestionOption = Annotated[str, Option("what to ask about every image", min_length=1)]


class Captioned(View):
    """``dataset`` with the single concept "caption", asked about in words, of every sample."""

    def __init__(self, dataset: Dataset, question: str = QUESTION) -> None:
        super().__init__(dataset, (CAPTION,), (0,), (1, 1, 1))
        self.question = question

    @property
    def most_boxes(self) -> int | None:
        """The most that any sample has, where the dataset knows."""
        return self.dataset.most_boxes

    def asks(self, index: int) -> Mapping[str, Ask]:
        return {CAPTION: Ask(self.question)}

    def sample(self, index: int) -> Sample:
        return replace(super().sample(index), asks=self.asks(index))

    @cached_property
    def fingerprint(self) -> str:
        """A hash that covers the words of the question too, so an audit with other words is another
        audit."""
        said = repr((super().fingerprint, self.question))
        return hashlib.blake2b(said.encode(), digest_size=12).hexdigest()
