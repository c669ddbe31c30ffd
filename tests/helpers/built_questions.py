"""All questions about a dataset, made at once."""

from collections.abc import Sequence
from typing import Any

from adaptive_vtt.datasets import Dataset
from adaptive_vtt.datasets.vqa.question_making import MAKERS, Built, choose


def build(dataset: Dataset, kinds: Sequence[str] = tuple(MAKERS), **options: Any) -> list[Built]:
    return [*choose(dataset, kinds, **options)]
