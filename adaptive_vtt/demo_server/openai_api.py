"""Chat completions with images, as OpenAI's API and the many that follow it word them."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..types import Image
from .brain import Brain
from .demo_brain import REFUSAL, Reply
from .http import Rejected, Request, Response, Usage
from .image_decoding import MOST_PIXELS, decoded
from .reading import fold
from .routes import Route

_TILE, _PER_TILE, _PER_IMAGE = 512, 170, 85
_MOST_ALTERNATIVES = 20


class OpenAI:
    """GET /v1/models, GET /v1/models/NAME and POST /v1/chat/completions.

    The last user message that has an image is answered; earlier ones are examples. Questions
    that are numbered from 1 are answered in lines "1: ...", without rambling. Honoured are
    ``logprobs`` with ``top_logprobs``, ``max_tokens`` or ``max_completion_tokens``, and a
    ``response_format`` of json_schema, whose properties are filled by name (a concept, or a
    question's number) and type: P(yes) for a number, yes or no for a boolean, else words.
    Tokens are counted by this server's own rule: four characters each in a prompt, one per
    word in an answer, and 85 + 170 per tile of 512 x 512 pixels for an image.
    """

    def __init__(self, brain: Brain, model: str, most_pixels: int = MOST_PIXELS) -> None:
        self._brain, self._model, self._most_pixels = brain, model, most_pixels
        self.routes = (
            Route("GET", r"/v1/models", self._models),
            Route("GET", r"/v1/models/(?P<name>.+)", self._one_model),
            Route("POST", r"/v1/chat/completions", self._chat, paid=True),
        )

    def error(self, rejected: Rejected) -> Response:
        """The error's body as OpenAI words it."""
        kinds = {401: "authentication_error", 429: "rate_limit_error"}
        kind = "server_error" if rejected.status >= 500 else "invalid_request_error"
        error = {
            "message": rejected.message,
            "type": kinds.get(rejected.status, kind),
            "param": rejected.param,
            "code": rejected.code,
        }
        return Response(rejected.status, {"error": error})

    def answer(self, request: Request) -> Response:
        """The reply to a chat completion, whatever is wrong with it."""
        try:
            return self._chat(request)
        except Rejected as rejected:
            return self.error(rejected)

    def _models(self, request: Request) -> Response:
        return Response(200, {"object": "list", "data": [self._card()]})

    def _one_model(self, request: Request, name: str) -> Response:
        self._check_model(name)
        return Response(200, self._card())

    def _card(self) -> dict[str, Any]:
        return {"id": self._model, "object": "model", "created": 0, "owned_by": "adaptive-vtt"}

    def _check_model(self, name: Any) -> None:
        if name != self._model:
            message = f"The model `{name}` does not exist; this server has `{self._model}`."
            raise Rejected(404, message, "model_not_found", "model")

    def _chat(self, request: Request) -> Response:
        asked = request.json()
        self._check_model(asked.get("model"))
        if asked.get("stream") or asked.get("n", 1) != 1:
            raise Rejected(400, "this server answers once and whole: no stream, n = 1")
        prompt, image, tokens = self._prompt(asked.get("messages"))
        replies = self._brain.answers(image, prompt)
        words = self._words(asked.get("response_format"), replies, image)
        pieces = re.findall(r"\s*\S+", words)
        most = _whole(asked, "max_completion_tokens", _whole(asked, "max_tokens", len(pieces)))
        said, cut = pieces[:most], len(pieces) > most
        formatted = bool(asked.get("response_format")) and words == REFUSAL
        choice = {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": None if formatted else "".join(said),
                "refusal": "".join(said) if formatted else None,
            },
            "logprobs": _logprobs(asked, said, replies),
            "finish_reason": "length" if cut else "stop",
        }
        first, rambled = replies[0], len(replies) == 1 and replies[0].rambled
        return self._completion(choice, Usage(tokens, len(said), first.refused, rambled))

    def _completion(self, choice: dict[str, Any], usage: Usage) -> Response:
        billed = {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        }
        content = {
            "id": "chatcmpl-demo",
            "object": "chat.completion",
            "created": 0,
            "model": self._model,
            "choices": [choice],
            "usage": billed,
        }
        return Response(200, content, usage=usage)

    def _prompt(self, messages: Any) -> tuple[str, Image | None, int]:
        """The words of the last user message with an image (or the last), the image, tokens."""
        if not isinstance(messages, list) or not messages:
            raise Rejected(400, "expected messages, a list that is not empty", param="messages")
        tokens, prompt, shown = 0, "", None
        for message in messages:
            if not isinstance(message, dict):
                raise Rejected(400, "expected each message as an object", param="messages")
            texts, sources = _parts(message.get("content"))
            images = [decoded(source, self._most_pixels) for source in sources]
            tokens += sum(math.ceil(len(text) / 4) for text in texts)
            tokens += sum(_image_tokens(image) for image in images)
            if message.get("role") == "user" and (images or shown is None):
                prompt, shown = "\n".join(texts), images[-1] if images else shown
        return prompt, shown, tokens

    def _words(self, wanted: Any, replies: Sequence[Reply], image: Image | None) -> str:
        """What is said, as JSON where that is wanted; a refusal is a refusal in any format."""
        kind = wanted.get("type") if isinstance(wanted, dict) else None
        if replies[0].refused or (kind in (None, "text") and len(replies) == 1):
            return replies[0].words
        if kind in (None, "text"):
            return "\n".join(f"{n}: {reply.choice}" for n, reply in enumerate(replies, start=1))
        if kind == "json_object":
            return json.dumps({"answer": replies[0].choice})
        if kind != "json_schema":
            raise Rejected(400, f"unknown response_format {kind!r}", param="response_format")
        described = wanted.get("json_schema")
        schema = described.get("schema") if isinstance(described, dict) else None
        return json.dumps(self._filled(schema, "", replies, image))

    def _filled(self, schema: Any, name: str, replies: Sequence[Reply], image: Image | None) -> Any:
        """What stands in a schema's place ``name``."""
        if not isinstance(schema, dict):
            raise Rejected(400, "expected a JSON schema as an object", param="response_format")
        if schema.get("type") == "object":
            inner = schema.get("properties") or {}
            return {key: self._filled(inner[key], key, replies, image) for key in inner}
        concepts = {_folded(concept): concept for concept in self._brain.concepts}
        if _folded(name) in concepts:
            return _value(schema, self._brain.answer(image, concepts[_folded(name)]))
        if name.isascii() and name.isdigit() and 1 <= int(name) <= len(replies):
            return _value(schema, replies[int(name) - 1])
        return _value(schema, replies[0])


def _folded(name: str) -> str:
    """Names of properties have no blanks."""
    return fold(name.replace("_", " "))


def _value(schema: Mapping[str, Any], reply: Reply) -> Any:
    """One value of a schema: its type says what is wanted."""
    if "enum" in schema:
        same = [each for each in schema["enum"] if fold(str(each)) == fold(reply.choice)]
        return (same or schema["enum"])[0]
    plain = {
        "number": round(reply.yes, 6),
        "integer": int(reply.yes > 0.5),
        "boolean": reply.yes > 0.5,
        "array": [],
        "null": None,
    }
    return plain.get(schema.get("type", "string"), reply.choice)


def _parts(content: Any) -> tuple[list[str], list[str]]:
    """The texts of a message and the sources of its images."""
    if isinstance(content, str):
        return [content], []
    if content is None:
        return [], []
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise Rejected(400, "expected content as text or a list of parts", param="messages")
    texts = [str(part.get("text", "")) for part in content if part.get("type") == "text"]
    pictured = [part.get("image_url") for part in content if part.get("type") == "image_url"]
    if not all(isinstance(each, dict) and isinstance(each.get("url"), str) for each in pictured):
        raise Rejected(400, "expected image_url with a url", param="messages")
    return texts, [each["url"] for each in pictured if each]


def _image_tokens(image: Image) -> int:
    tiles = math.ceil(image.shape[0] / _TILE) * math.ceil(image.shape[1] / _TILE)
    return _PER_IMAGE + _PER_TILE * tiles


def _whole(asked: Mapping[str, Any], name: str, default: int) -> int:
    value = asked.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or value < 1:
        raise Rejected(400, f"expected {name} as a whole number above 0, got {value!r}", param=name)
    return value


def _logprobs(asked: Mapping[str, Any], said: Sequence[str], replies: Sequence[Reply]) -> Any:
    """Per token its log-probability; where the one answer stands, those of all choices."""
    if not asked.get("logprobs"):
        return None
    top = asked.get("top_logprobs") or 0
    if not isinstance(top, int) or not 0 <= top <= _MOST_ALTERNATIVES:
        raise Rejected(
            400, f"expected top_logprobs in 0..{_MOST_ALTERNATIVES}", param="top_logprobs"
        )
    return {"content": [*_weighed(said, replies, top)], "refusal": None}


def _weighed(said: Sequence[str], replies: Sequence[Reply], top: int) -> Iterator[dict[str, Any]]:
    for token in said:
        bare = token.strip(" \n.")
        if len(replies) == 1 and bare == replies[0].choice:
            before, _, after = token.partition(bare)
            likely = {f"{before}{c}{after}": p for c, p in replies[0].likelihoods.items()}
        else:
            likely = {token: 1.0}
        ordered = sorted(likely.items(), key=lambda pair: -pair[1])[:top]
        own = _logprob(token, likely[token])
        yield {**own, "top_logprobs": [_logprob(*pair) for pair in ordered]}


def _logprob(token: str, likelihood: float) -> dict[str, Any]:
    return {
        "token": token,
        "logprob": math.log(max(likelihood, 1e-9)),
        "bytes": list(token.encode()),
    }
