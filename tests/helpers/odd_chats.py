"""Chat servers with one odd behaviour each, and the spec of an audit of such a server."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from tests.helpers.loopback import RawResponse, serving
from tests.helpers.small_datasets import picture

Body = Mapping[str, Any]
USED = {"prompt_tokens": 100, "completion_tokens": 10}
IMAGES = 60
KEY = "sk-0d5f3c7e91ab42"


def ended(content: object, why: str = "stop", **message: object) -> tuple[int, Body]:
    """Return a chat completion with this content and finish reason."""
    choice = {"message": {"content": content, **message}, "finish_reason": why}
    return 200, {"choices": [choice], "usage": USED}


def declined(status: int, words: str) -> tuple[int, Body]:
    return status, {"error": {"message": words}}


ODD = {
    "blind": ended("I cannot see any picture here: none was attached to the question."),
    "prose": ended("The radiograph shows a lesion, without artifacts."),
    "cut": ended(None, "length", reasoning_content="First the left side. " * 200),
    "thinking": ended("<thinking>Yes? Rather not.</thinking> No."),
    "parts": ended([{"type": "reasoning", "text": "yes"}, {"type": "text", "text": "Answer: no"}]),
    "wrong key": declined(401, "this key is not known"),
    "echo": ended(f"No. You sent {KEY}. " + "It is calm. " * 300),
}


PAGE = f"<html><body>Gateway: no upstream for {KEY}</body></html>"
SHAPE = '{"choices": [{"message": "Yes"}]}'


def reply_to(way: str, request: Body, before: int) -> tuple[int, Body | str]:
    """Return the reply of a server to a request, after ``before`` earlier replies."""
    if way == "no log-probabilities" and "logprobs" in request:
        return declined((501, 404, 403)[before % 3], "logprobs: not offered by this model")
    if way == "no temperature" and "temperature" in request:
        return declined(422, "temperature cannot be set for this model")
    if way == "pages" and before % 5 in (1, 2):
        return (200, PAGE) if before % 5 == 1 else (200, SHAPE)
    if way == "looks":
        return ended("Yes, it is." if _shade(request) < 128 else "No.")
    return ODD.get(way) or ended("No")


def _shade(request: Body) -> float:
    """Return the mean of the pixels of the request's image."""
    url = request["messages"][0]["content"][0]["image_url"]["url"]
    data = base64.b64decode(url.partition(",")[2])
    return float(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR).mean())


@contextmanager
def odd_chat(way: str, folder: Path, **options: object) -> Iterator[tuple[Path, list[Body]]]:
    """Yield a SPEC.toml in ``folder`` for the chat model of such a server, and its requests.

    Every second image shows a lesion. ``options`` are those of [model].
    """
    requests: list[Body] = []

    def answer(path: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
        if not body:  # a list of models, which gateways may refuse
            return 401, {}, b"{}"
        requests.append(json.loads(body))
        status, content = reply_to(way, requests[-1], len(requests) - 1)
        return status, {}, (content if isinstance(content, str) else json.dumps(content)).encode()

    for number in range(IMAGES):
        picture(folder / "images" / f"{number}.png")
    rows = [f"{number}.png,{number % 2}" for number in range(IMAGES)]
    (folder / "labels.csv").write_text("\n".join(["id,lesion", *rows]))
    with serving(answer) as url:
        model = {"kind": "openai", "model": "m", "url": f"{url}/v1", "retries": 0, **options}
        lines = [f"{name} = {json.dumps(value)}" for name, value in model.items()]
        spec = folder / "SPEC.toml"
        spec.write_text(
            '[dataset]\nkind = "table"\nlabels = "labels.csv"\nimages = "images"\n\n'
            + "\n".join(["[model]", *lines])
            + "\n\n[certify]\nhalf_width = 0.3\nself_taught = false\nsurrogate = false\n"
            + "\n[audit]\nseed = 1\n"
        )
        yield spec, requests
