"""Vision chat models of OpenAI, and of the many servers that share its protocol.

Binary questions need P(yes). These modes provide it, in the order in which `yes_from = "auto"`
tries them:

- "logprobs": the probability of the token Yes, over that of Yes and No together, at the token of
  the reply that answers;
- "structured": a number that the model states, in JSON whose form the server enforces;
- "words": 1 or 0 from a Yes or No in the reply.

If a server refuses the request for one mode (400, 422), or its reply lacks what was asked for, the
next mode is tried (`elicitation.py`). Once a mode has worked, replies that lack it are read as
words. Questions in words (`Prompt.asks`) are answered in words. A refusal by the server's content
filter counts as an answer, of no tokens unless the server counts them.
"""

import json
from collections.abc import Awaitable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from ...types import JsonObject, Prompt
from ...utils.options import Option
from .attempts import Reply, Trouble, of_status, reading
from .chat import ModelName, Provider, with_text
from .elicitation import ALTERNATIVES, WORDS
from .endpoint import Endpoint
from .http import fields_of, read_or_none, words_of
from .prices import Usage
from .shapes import FILTERED, schema_of, status_of

DETAIL = "how closely to look, where the server offers it"
_FILTERS = ("content_filter", "content_policy_violation")


class OpenAIProtocol(Provider):
    """A model that is asked through the openai library. Needs the extra ``openai``.

    Args:
        model: The server's name of the model.
        detail: How closely the model looks at images: "low", "high" or "auto". Default None: the
            field is not sent.
        **chat: Options of `Provider` and `Chat`.
    """

    library, client, address = "openai", "AsyncOpenAI", "https://api.openai.com/v1"
    modes = (*ALTERNATIVES, "structured", WORDS)
    variable, defaults = "OPENAI_API_KEY", MappingProxyType({"temperature": 0})
    limit = "max_completion_tokens"  # OpenAI's newer models refuse the older name

    def __init__(
        self,
        model: ModelName,
        *,
        detail: Annotated[Literal["auto", "low", "high"] | None, Option(DETAIL)] = None,
        **chat: Any,
    ) -> None:
        super().__init__(model, **chat)
        self._detail = {} if detail is None else {"detail": detail}

    def image_part(self, data: str) -> JsonObject:
        url = f"data:{self._encoding.media_type};base64,{data}"
        return {"type": "image_url", "image_url": {"url": url, **self._detail}}

    def prepare(self, prompt: Prompt) -> JsonObject:
        request = super().prepare(prompt)
        if self.template.system:
            request["messages"].insert(0, {"role": "system", "content": self.template.system})
        return request

    def asking(self, mode: str, request: JsonObject, prompt: Prompt) -> JsonObject:
        if mode in ALTERNATIVES:
            return {**request, "logprobs": True, "top_logprobs": ALTERNATIVES[mode]}
        schema = {"name": "probabilities", "strict": True, "schema": schema_of(prompt)}
        text = "Give as JSON the probability, from 0 to 1, that the answer is Yes."
        response_format = {"type": "json_schema", "json_schema": schema}
        return {**with_text(request, text), "response_format": response_format}

    def created(self, request: JsonObject) -> Awaitable[Any]:
        return self._client.chat.completions.with_raw_response.create(**request)

    def _used(self, body: Any) -> Usage | None:
        fields = fields_of(body)
        choices = fields.get("choices")
        first = fields_of(choices[0]) if isinstance(choices, list) and choices else {}
        return self.counted([fields.get("usage"), fields.get("usageMetadata"), first.get("usage")])

    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        """Return the trouble with a failed request; that with a content filter has a reply."""
        content = read_or_none(body)
        error = fields_of(fields_of(content).get("error"))
        if error.get("code") in _FILTERS:
            reply = Reply(FILTERED, self._used(content) or self._usage_of_refusals)
            # the usage of the trouble counts towards tokens per minute, that of the reply is booked
            return Trouble(
                "content filter", then="leave", billed=True, usage=reply.usage, reply=reply
            )
        words, named = words_of(body), error.get("param")
        if isinstance(named, str) and named not in words:
            words = f"{words} ({named})"
        return refused(status, error.get("code"), words, headers)

    def _reply(self, body: Any, prompt: Prompt, mode: str) -> Reply:
        usage = self._used(body)
        with reading(usage):
            if not isinstance(body, dict):
                raise ValueError("expected a JSON object, got something else")
            choices = body.get("choices")
            if choices and not (isinstance(choices, list) and isinstance(choices[0], dict)):
                raise ValueError("expected a list of objects as its choices, got something else")
            choice = choices[0] if choices else None
            if error := (body if choice is None else choice).get("error"):
                # gateways send errors with status 200
                content = json.dumps({"error": error, "usage": body.get("usage")})
                raise self._failed(status_of(error), content.encode(), {})
            if choice is None:
                detail = f"expected a chat completion, got {words_of(json.dumps(body).encode())}"
                raise Trouble("truncated", detail, billed=True, usage=usage)
            if choice.get("finish_reason") == "error":
                detail = "the reply ended in an error"
                raise Trouble("provider error", detail, billed=True, usage=usage)
        return self._read(choice, prompt, mode, usage, body)


class OpenAIChat(OpenAIProtocol, Endpoint):
    """A model of any provider behind OpenAI's chat completions, asked by single calls.

    Args:
        **chat: Options of `OpenAIProtocol`, `Provider`, `Chat` and `Endpoint`.
    """


def refused(status: int, code: object, words: str, headers: Mapping[str, str]) -> Trouble:
    """Return the trouble with a failed request.

    Args:
        status: The HTTP status.
        code: OpenAI's code of the error.
        words: The server's explanation.
        headers: Headers of the response.
    """
    if code == "insufficient_quota":  # has status 429, but waiting does not help
        return Trouble(f"http {status}", words, then="stop", refused=True)
    return of_status(status, headers, words)
