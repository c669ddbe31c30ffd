"""What is asked of the demo's server, and what it was made from."""

import base64
import json
import urllib.error
import urllib.request
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.types import Ask, Image, Sample
from adaptive_vtt.utils.image_codec import png
from tests.helpers.endpoint import DemoServer

FRAMES = phantoms.frames(24, size=96)
ORGANS = ("stomach", "small intestine", "large intestine")
CHANCE = 1e-6
"""A correct server fails a test of its rates with this probability, were seeds drawn anew."""


class Quiz:
    """Phantom frames with a question with options, and one whose answer is free."""

    name, has_images, concepts = "quiz", True, ("organ", "colour")

    def __len__(self) -> int:
        return len(FRAMES)

    def sample(self, index: int) -> Sample:
        turned = (*ORGANS[index % 3 :], *ORGANS[: index % 3])
        asks = {
            "organ": Ask("Which organ is shown?", turned),
            "colour": Ask("What colour is the sheath?"),
        }
        right = {
            "organ": ("ABC"[turned.index("large intestine")],),
            "colour": (("blue", "azure"), ("yellow",))[index % 2],
        }
        return replace(FRAMES.sample(index), asks=asks, answers=right)


def frame(index: int) -> Image:
    image = FRAMES.sample(index).image
    assert image is not None
    return image


def noisy(count: int) -> list[Image]:
    """Frames that differ in a few pixels: each gets answers of its own."""
    rng = np.random.default_rng(0)
    images = []
    for number in range(count):
        image = frame(number % len(FRAMES)).copy()
        image[rng.integers(0, 96, 4), rng.integers(0, 96, 4)] += 1
        images.append(image)
    return images


def uri(image: Image) -> str:
    return "data:image/png;base64," + base64.b64encode(png(image)).decode()


def messages(image: Image, text: str) -> list[Any]:
    parts = [
        {"type": "image_url", "image_url": {"url": uri(image)}},
        {"type": "text", "text": text},
    ]
    return [{"role": "user", "content": parts}]


def multiple_choice(ask: Ask) -> str:
    listed = [f"{'ABC'[place]}. {text}" for place, text in enumerate(ask.options)]
    return "\n".join([f"Question: {ask.text}", "Options:", *listed, "Select the right one."])


def is_likely(errors: int, tries: int, rate: float) -> bool:
    return bool(min(binom.cdf(errors, tries, rate), binom.sf(errors - 1, tries, rate)) > CHANCE / 2)


def post(url: str, content: Any, **headers: str) -> tuple[int, Any]:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as response:
        return json.load(response)


def client_of(server: DemoServer, **arguments: Any) -> Any:
    openai = pytest.importorskip("openai")
    given = {"api_key": "none", "max_retries": 0, "timeout": 10, **arguments}
    return openai.OpenAI(base_url=server.url + "/v1", **given)
