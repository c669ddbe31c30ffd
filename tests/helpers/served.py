"""Frames for the demo's server, and requests to it."""

import base64
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.types import Image
from adaptive_vtt.utils.image_codec import png
from tests.helpers.endpoint import DemoServer

FRAMES = phantoms.frames(24, size=96)


def frame(index: int) -> Image:
    image = FRAMES.sample(index).image
    assert image is not None
    return image


def uri(image: Image) -> str:
    return "data:image/png;base64," + base64.b64encode(png(image)).decode()


def messages(image: Image, text: str) -> list[Any]:
    parts = [
        {"type": "image_url", "image_url": {"url": uri(image)}},
        {"type": "text", "text": text},
    ]
    return [{"role": "user", "content": parts}]


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
