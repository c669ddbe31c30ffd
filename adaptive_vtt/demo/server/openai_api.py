"""Chat completions with images, as OpenAI's API and the many that follow it word them."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...types import Image
from .brain import Brain
from .conversation import asked_in, content_parts, filled, listed, pieces, texts_of, whole
from .demo_brain import REFUSAL, Reply
from .http import Rejected, Request, Response, Usage
from .image_decoding import MAX_PIXELS
from .quirks import Quirks
from .routes import Route

_MAX_ALTERNATIVES = 20


class OpenAI:
    """GET /v1/models, GET /v1/models/NAME and POST /v1/chat/completions.

    The last user message that has an image is answered; earlier ones are examples. Questions
    that are numbered from 1 are answered in lines "1: ...", without rambling. Honoured are
    ``logprobs`` with ``top_logprobs``, ``max_tokens`` or ``max_completion_tokens``, and a
    ``response_format`` of json_schema (`conversation.filled`): P(yes) for a number, yes or no for a
    boolean, else words. An answer's words are a token each. ``quirks``: what it does otherwise.
    """

    def __init__(
        self,
        brain: Brain,
        model: str,
        most_pixels: int = MAX_PIXELS,
        quirks: Quirks | None = None,
    ) -> None:
        self._brain, self._model, self._most_pixels = brain, model, most_pixels
        self._quirks = quirks or Quirks()
        root = self._quirks.root
        self.routes = (
            Route("GET", rf"{root}/models", self._models),
            Route("GET", rf"{root}/models/(?P<name>.+)", self._one_model),
            Route("POST", rf"{root}/chat/completions", self._chat, paid=True),
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
        said = {"error": error}
        return Response(rejected.status, [said] if self._quirks.listed_errors else said)

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
        asked = self._quirks.taken(request.json())
        self._check_model(asked.get("model"))
        if asked.get("stream") or asked.get("n", 1) != 1:
            raise Rejected(400, "this server answers once and whole: no stream, n = 1")
        question = asked_in(asked.get("messages"), _parts, self._most_pixels)
        replies = self._brain.answers(question.image, question.prompt)
        words = self._words(asked.get("response_format"), replies, question.image)
        tokens = pieces(words)
        most = whole(asked, "max_completion_tokens", whole(asked, "max_tokens", len(tokens)))
        said, cut = tokens[:most], len(tokens) > most
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
        return self._completion(choice, Usage(question.tokens, len(said), first.refused, rambled))

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

    def _words(self, wanted: Any, replies: Sequence[Reply], image: Image | None) -> str:
        """What is said, as JSON where that is wanted; a refusal is a refusal in any format."""
        kind = wanted.get("type") if isinstance(wanted, dict) else None
        if replies[0].refused or kind in (None, "text"):
            return listed(replies)
        if kind == "json_object":
            return json.dumps({"answer": replies[0].choice})
        if kind != "json_schema":
            raise Rejected(400, f"unknown response_format {kind!r}", param="response_format")
        described = wanted.get("json_schema")
        schema = described.get("schema") if isinstance(described, dict) else None
        return json.dumps(filled(schema, replies, self._brain, image))


def _parts(content: Any) -> tuple[list[str], list[str]]:
    """The texts of a message and the sources of its images."""
    parts = content_parts(content)
    pictured = [part.get("image_url") for part in parts if part.get("type") == "image_url"]
    if not all(isinstance(each, dict) and isinstance(each.get("url"), str) for each in pictured):
        raise Rejected(400, "expected image_url with a url", param="messages")
    return texts_of(parts), [each["url"] for each in pictured if each]


def _logprobs(asked: Mapping[str, Any], said: Sequence[str], replies: Sequence[Reply]) -> Any:
    """Per token its log-probability; where the one answer stands, those of all choices."""
    if not asked.get("logprobs"):
        return None
    top = asked.get("top_logprobs") or 0
    if not isinstance(top, int) or not 0 <= top <= _MAX_ALTERNATIVES:
        raise Rejected(
            400, f"expected top_logprobs in 0..{_MAX_ALTERNATIVES}", param="top_logprobs"
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
