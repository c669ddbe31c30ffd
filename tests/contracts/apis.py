"""What the servers say that models of the contract ask on loopback."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.helpers.loopback import RawResponse


def share(*parts: Any) -> float:
    """A number in [0, 1] that follows from the parts."""
    return hashlib.blake2b(json.dumps(parts).encode()).digest()[0] / 255


def json_api(path: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
    asked = json.loads(body)
    said = {"scores": [share(asked["image"], c) for c in asked["concepts"]]}
    return 200, {}, json.dumps(said).encode()


def chat_api(path: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
    """Says Yes or No with a probability, or one of them on each numbered line."""
    assert path == "/v1/chat/completions"
    asked = json.loads(body)
    p = 0.05 + 0.9 * share(asked["messages"])
    several = "own" in json.dumps(asked["messages"])
    text = "\n".join(f"{k}: {'Yes' if (p * k) % 1 > 0.5 else 'No'}" for k in (1, 2, 3))
    listed = [
        {"token": t, "logprob": math.log(q), "bytes": None} for t, q in (("Yes", p), ("No", 1 - p))
    ]
    first = {**max(listed, key=lambda one: one["logprob"]), "top_logprobs": listed}
    message = {"role": "assistant", "content": text if several else first["token"]}
    logprobs = None if several else {"content": [first]}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}
    usage = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}
    about = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "usage": usage}
    return 200, {}, json.dumps({**about, "choices": [choice]}).encode()


def inference_api(path: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
    if path == "/v2":
        return 200, {}, b'{"extensions": []}'
    if path == "/v2/models/means":
        tensors = {"name": "image", "datatype": "FP32", "shape": [-1, 3, -1, -1]}
        scores = {"name": "p", "datatype": "FP32", "shape": [-1, 3]}
        return 200, {}, json.dumps({"inputs": [tensors], "outputs": [scores]}).encode()
    tensor = json.loads(body)["inputs"][0]
    means = np.reshape(tensor["data"], tensor["shape"]).mean((2, 3))
    said = {"name": "p", "shape": means.shape, "data": means.ravel().tolist()}
    return 200, {}, json.dumps({"outputs": [said]}).encode()
