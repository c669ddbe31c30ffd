"""Small models that experiments run in worker processes, which therefore start fast.

Each call is written to the file that AVTT_HELD_CALLS names, before anything is computed. So the
file is the bill, also where a call is interrupted.
"""

import os
import time
from collections.abc import Sequence

import numpy as np

from adaptive_vtt.models.base import ModelDefaults
from adaptive_vtt.types import Answer, Prompt, Unanswered
from adaptive_vtt.utils.random_streams import generator

CALLS = "AVTT_HELD_CALLS"
SECONDS = 0.1
"""Time of a call, asleep or on the processor."""


class Held(ModelDefaults):
    """Model with random answers whose calls cost 1, and sleep or compute for SECONDS."""

    most_cost = 1.0
    version = "1"

    def __init__(self, name: str, *, computes: bool) -> None:
        self.name, self._computes = name, computes

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Prompt) -> Answer:
        note()
        if self._computes:
            compute()
        else:
            time.sleep(SECONDS)
        key = f"held/{prompt.sample_id}/{prompt.relation}/{prompt.severity}"
        return Answer(tuple(generator(0, key).random(len(prompt.concepts)).tolist()), cost=1.0)


def note() -> None:
    """Write the call to the bill, if there is one."""
    if (path := os.environ.get(CALLS)) is not None:
        with open(path, "a") as bill:
            bill.write(f"{os.getpid()}\n")


def compute() -> None:
    """Keep one processor busy for ``SECONDS``."""
    start, table = time.thread_time(), np.ones((64, 64))
    while time.thread_time() - start < SECONDS:
        table = table @ table / 64


sleeping = Held("sleeping", computes=False)
computing = Held("computing", computes=True)


LOOKS = ("ulcer", "polyp", "bleeding", "normal")
"""The options of the questions that the student is asked."""
STUDENT_PRICE = 0.001
_ORDINALS = ("first", "second", "third", "fourth")


class Student(ModelDefaults):
    """Model that chooses the wrong option in a fifth of its answers, and names none in a third."""

    name = "student"
    answers = "one"
    needs_image = False
    most_cost = STUDENT_PRICE
    version = "1"

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Prompt) -> Answer:
        note()
        time.sleep(SECONDS / 5)
        key = f"student/{prompt.sample_id}/{prompt.relation}/{prompt.severity}"
        errs, vague = generator(0, key).random(2) < (0.2, 0.33)
        place = (int(prompt.sample_id[1:]) + errs) % len(LOOKS)
        text = "ABCD"[place]
        if vague:
            text = f"Of those that you list it is the {_ORDINALS[place]} one."
        return Answer((text,), STUDENT_PRICE)


student = Student()
