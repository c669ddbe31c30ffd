"""Models that ask a server on loopback, and replies of such a server."""

import json
from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt import QuestionSpace
from adaptive_vtt.datasets import from_table
from adaptive_vtt.models import (
    Answer,
    Endpoint,
    HttpJson,
    OpenAIChat,
    OpenInference,
    Prices,
    Prompt,
    Retries,
    Unanswered,
)
from tests.helpers.loopback import RawResponse

PROMPT = Prompt(np.full((6, 4, 3), 7, np.uint8), ("a",), "s", "identity", 0)
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}
PRICES = Prices(input=1.0, output=1.0, tokens=1)
COUNTED, WORST = 110.0, 1000.0 + 50.0
"""Price of an attempt with USAGE, and the highest price of an attempt."""


def completion(message: Any, usage: Any = USAGE) -> bytes:
    choice = message if message == [None] else [{"index": 0, "message": message}]
    return json.dumps({"choices": choice, "usage": usage}).encode()


GOOD = completion({"role": "assistant", "content": "Yes"})
LESS_DEEP = b'{"choices": ' + b"[" * 40_000 + b"]" * 40_000 + b"}"


def chat(url: str, **options: Any) -> OpenAIChat:
    chosen: dict[str, Any] = {
        "prices": PRICES,
        "max_input_tokens": 1000,
        "max_tokens": 50,
        "yes_from": "words",
        "retries": Retries(times=1, first_wait=0.001),
        **options,
    }
    return OpenAIChat("m", base_url=url, **chosen)


def http(url: str, **options: Any) -> HttpJson:
    chosen: dict[str, Any] = {
        "request": {"image": "{image_base64}", "of": "{concept}"},
        "response": "p",
        "prices": Prices(per_call=1.0),
        "retries": Retries(times=1, first_wait=0.001),
        **options,
    }
    return HttpJson(url, **chosen)


def tensors(url: str, **options: Any) -> OpenInference:
    chosen: dict[str, Any] = {"retries": Retries(times=1, first_wait=0.001), **options}
    return OpenInference(url, "m", **chosen)


def ask(endpoint: Endpoint, prompt: Prompt = PROMPT) -> Answer | Unanswered:
    try:
        return endpoint.ask([prompt])[0]
    finally:
        endpoint.close()


def json_reply(body: Any, status: int = 200, **headers: str) -> RawResponse:
    return status, headers, body if isinstance(body, bytes) else json.dumps(body).encode()


PLAIN: dict[str, Any] = {"strategy": "random", "surrogate": False}
"""Options of audits for tests that do not depend on the draws."""


def space(samples: int = 12) -> QuestionSpace:
    images = np.zeros((samples, 6, 4, 3), np.uint8)
    labels = pd.DataFrame({"apple": [0, 1] * (samples // 2), "berry": [1, 0] * (samples // 2)})
    return QuestionSpace(from_table(images, labels), ["identity"])
