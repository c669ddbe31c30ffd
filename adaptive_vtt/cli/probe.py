"""``avtt plan --probe``: check by two calls that a chat model is shown its images.

A black image and a white one: "Is this image black?". The two calls are booked under no audit.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..config import Spec
from ..config.building import build_space, model_of, unworked
from ..errors import InputError
from ..models import adapted_model
from ..models.checking import checked
from ..models.network.chat import Chat
from ..models.unanswered import remedy
from ..models.yes_no import NO_IMAGE
from ..results.cautions import fallen_back
from ..types import Prompt, Unanswered
from ..utils.figures import money, percent, shorten
from .printing import plain_console

SIDE = 64
"""Pixels of an image's side: providers refuse smaller ones."""
SHADES = {"black": 0, "white": 255}
SHOWN = 100
"""Characters of a reply that are shown."""


def probe(spec: Spec, base: Path) -> int:
    """Ask about a black and a white image, and print how the replies were read.

    Returns:
        The exit code: 0 if the model looked, 4 if it did not, 2 if an answer is missing.

    Raises:
        InputError: The model is no chat model, or two calls may cost more than the spec allows.
    """
    model = adapted_model(model_of(unworked(spec), base, build_space(spec, base)))
    if not isinstance(model, Chat):
        raise InputError(
            f"--probe: expected a chat model, which can be asked about any image, got kind "
            f"{spec.model.kind!r}; leave --probe out"
        )
    cap, worst = spec.audit.max_cost, len(SHADES) * model.most_cost
    if cap is not None and worst > cap:
        cost = f"{money(worst, model.prices.currency)} at worst, more than max_cost = {cap:g}"
        raise InputError(f"--probe: two calls may cost {cost}; raise max_cost or lower max_tokens")
    model.template = replace(model.template, ask_concept="Is this image {concept}?")
    images = {shade: np.full((SIDE, SIDE, 3), value, np.uint8) for shade, value in SHADES.items()}
    prompts = [Prompt(i, ("black",), f"a {s} image", "identity", 0) for s, i in images.items()]
    with model:
        answers = checked(model, prompts)
    console = plain_console()
    values: list[float | Unanswered] = []
    for shade, answer in zip(SHADES, answers, strict=True):
        reply = shorten(" ".join(answer.reply.split()), SHOWN)
        value = answer if isinstance(answer, Unanswered) else answer.values[0]
        if not isinstance(value, float | Unanswered):
            value = Unanswered("no number")
        values.append(value)
        if isinstance(value, Unanswered):
            reading = f"no answer: {value.reason}"
        else:
            reading = f"{'Yes' if value >= 0.5 else 'No'}, P(yes) {percent(value)}"
        console.print(f"a {shade} image: the reply {reply!r} was read as {reading}")
    for sentence in fallen_back(model.elicitation()):
        console.print(f"warning: {sentence}")
    cost = money(sum(answer.cost for answer in answers), model.prices.currency)
    paid = f"cost {cost}" if model.prices_known else "cost what is not known: [model] has no prices"
    code, verdict = _verdict(values)
    console.print(f"two calls, which {paid}; {verdict}")
    return code


def _verdict(values: Sequence[float | Unanswered]) -> tuple[int, str]:
    reasons = [value.reason for value in values if isinstance(value, Unanswered)]
    numbers = [value for value in values if isinstance(value, float)]
    if reasons and NO_IMAGE not in reasons:
        why = "whether the model looks is not known, as a question was not answered"
        return 2, f"{why}; {remedy(reasons[0])}"
    if reasons or not numbers[0] >= 0.5 > numbers[1]:
        why = "the model did not look at its images, or confuses black and white"
        return 4, f"{why}; {remedy(NO_IMAGE)}"
    return 0, "the model looked at both images"
