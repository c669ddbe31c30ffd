"""Audits of models in workers."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.models import Answer, Prompt, Unanswered, Workers
from adaptive_vtt.models import workers as workers_module
from adaptive_vtt.models.base import ModelUnderTest
from adaptive_vtt.models.workers import About, Died, Holding, Make, Worker
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.audits import content

DEADLY = "s3"


def space() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(20), ["identity", "brightness_up"])


def prompts(count: int) -> list[Prompt]:
    images = [tiny_dataset(20).sample(k).image for k in range(count)]
    return [Prompt(i, ("c0", "c1", "c2"), f"s{k}", "identity", 0) for k, i in enumerate(images)]


def audit(model: ModelUnderTest, hook: Any = None, **options: Any) -> Audit:
    usual = {"seed": 7, "budget": 30, "half_width": 0.05, "candidates": 64, "surrogate": False}
    finished = Audit(space(), model, targets=["overall"], **{**usual, **options})
    finished.run(hook)
    return finished


def rows(of: Audit) -> tuple[Any, ...]:
    """Return draws, answers and certificates, without times."""
    return content(of.journal), of.statuses()


class Mortal(Worker):
    """Worker that dies at prompts that are ``deadly``, and at its first ``stillborn`` starts."""

    def __init__(self, deadly: Callable[[Prompt], bool], make: Make = ScriptedModel) -> None:
        self._make, self._deadly = make, deadly
        self.asked: list[str] = []
        self.stillborn = 0

    def start(self) -> About:
        if self.stillborn:
            self.stillborn -= 1
            raise Died("ended with code 1")
        self._holding = Holding(self._make)
        return self._holding.about()

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        (prompt,) = prompts
        self.asked.append(prompt.sample_id)
        if self._deadly(prompt):
            raise Died("was ended by SIGKILL")
        return self._holding.ask(prompts)

    def close(self) -> None:
        pass

    def _begin(self) -> None:
        raise TypeError("expected a worker that holds its model in this process to begin no other")

    _result = _begin


def mortal(workers: Sequence[Worker], **options: Any) -> Workers:
    """Return the model ``Workers`` with these workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers_module, "_workers", lambda *_: workers)
        return Workers(ScriptedModel, 1, **options)


def poisoned(prompt: Prompt) -> bool:
    return prompt.sample_id == DEADLY
