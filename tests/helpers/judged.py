"""Audits of questions in words whose replies a judge has to read."""

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import adaptive_vtt as avtt
from adaptive_vtt.datasets.table import WordedDataset
from adaptive_vtt.models import Answer, ModelDefaults, Prompt, Unanswered
from adaptive_vtt.oracles import ContainsTruth, MultipleChoice
from adaptive_vtt.oracles.judge_models import JudgeModel
from adaptive_vtt.types import Ask

OPTIONS = ("ulcer", "polyp", "bleeding", "normal")
LOOKS = ("a crater", "a thing on a stalk", "something red that runs", "smooth and pink")
"""Descriptions of the options, which no rule recognises."""
MODEL_PRICE, JUDGE_PRICE = 1.0, 0.25


def digit(*parts: object) -> int:
    """Return a number 0..99 that depends on the parts alone."""
    return int(hashlib.blake2b(repr(parts).encode(), digest_size=4).hexdigest(), 16) % 100


class Voluble(ModelDefaults):
    """Model that is wrong in 30 of 100 answers, and only describes its choice in 40 of 100."""

    answers = "one"
    name = "voluble"
    needs_image = False
    most_cost = MODEL_PRICE

    def __init__(self) -> None:
        self.asked: list[str] = []

    def choice(self, sample: str) -> int:
        right = int(sample[1:]) % 4
        return (right + 1) % 4 if digit("errs", sample) < 30 else right

    def reply(self, sample: str) -> str:
        choice = self.choice(sample)
        vague = digit("vague", sample) < 40
        return f"I see {LOOKS[choice]} ({sample})." if vague else f"Answer: {'ABCD'[choice]}"

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        self.asked += [prompt.sample_id for prompt in prompts]
        return [Answer((self.reply(p.sample_id),), MODEL_PRICE) for p in prompts]


TRUTH = sum(Voluble().choice(f"s{k}") != k % 4 for k in range(60)) / 60
"""The error rate of the model over ``space``, if every reply is read correctly."""


class Reader(ModelDefaults):
    """Judge that knows the descriptions of the options; ``says`` replaces its verdict."""

    answers = "one"
    name = "reader"
    needs_image = False
    most_cost = JUDGE_PRICE

    def __init__(self, says: Callable[[str], Any] | None = None) -> None:
        self.asked: list[str] = []
        self._says = says or read

    def ask(self, prompts: Sequence[Prompt]) -> list[Any]:
        self.asked += [prompt.asks[0].text for prompt in prompts]
        return [_answer(self._says(prompt.asks[0].text)) for prompt in prompts]


def _answer(verdict: Any) -> Any:
    return Answer((verdict,), JUDGE_PRICE) if isinstance(verdict, str) else verdict


def read(text: str) -> str:
    """Return the letter of the option that the reply describes or names."""
    mark = re.findall(r"={3}\w+={3}", text)[-1]
    reply = text.split(mark)[-2]
    described = [letter for letter, looks in zip("ABCD", LOOKS, strict=True) if looks in reply]
    named = re.search(r"Answer: ([A-D])", reply)
    return described[0] if described else named[1] if named else "Z"


def space(oracle: MultipleChoice | ContainsTruth, samples: int = 60) -> avtt.QuestionSpace:
    """Return a space with one question about each sample, with four options or free answers."""
    free = isinstance(oracle, ContainsTruth)
    names = [f"s{k}" for k in range(samples)]
    right = [OPTIONS[k % 4] if free else "ABCD"[k % 4] for k in range(samples)]
    ask = Ask("What is shown?", () if free else OPTIONS)
    dataset = WordedDataset(
        None,
        np.ones((samples, 1), np.int8),
        names,
        ("finding",),
        asks=[{"finding": ask}] * samples,
        answers=[{"finding": (answer,)} for answer in right],
        name="worded",
    )
    return avtt.QuestionSpace(dataset, oracle=oracle)


def audit(
    judge: JudgeModel | None, model: ModelDefaults | None = None, **options: Any
) -> avtt.Audit:
    """Return an audit of multiple choice with a judge."""
    questions = space(MultipleChoice(judge=judge))
    usual = {"half_width": 0.1, "targets": ["overall"], "seed": 3, "strategy": "random"}
    return avtt.Audit(questions, model or Voluble(), **{**usual, **options})
