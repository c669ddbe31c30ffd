"""Chat models that see: OpenAI, and the many servers that speak its protocol.

An audit's binary questions want P(yes). In the order in which `yes_from = "auto"` tries them:

- "logprobs": the probabilities of the tokens Yes and No where the reply says one of them,
  normalised over the two;
- "structured": a number the model states, in JSON that the server enforces;
- "words": 1 or 0 from a Yes or No in the reply.

A server that refuses (400, 422) the request for one of them, or whose reply lacks what was asked
for, is asked for the next (`elicitation.py`); later replies that lack it are read as words.
Questions in words (`Prompt.asks`) are answered in words, which an oracle on words judges. A refusal
by the server's content filter is an answer like others, of no tokens where it counts none.
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
    """``model`` at ``base_url`` (default: OpenAI), through the openai library.

    ``chat`` are the options of `Provider` and `Chat`. Needs openai (the extra ``openai``).
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
        wanted = "Give as JSON the probability, from 0 to 1, that the answer is Yes."
        enforced = {"type": "json_schema", "json_schema": schema}
        return {**with_text(request, wanted), "response_format": enforced}

    def created(self, request: JsonObject) -> Awaitable[Any]:
        return self._client.chat.completions.with_raw_response.create(**request)

    def _used(self, body: Any) -> Usage | None:
        fields = fields_of(body)
        choices = fields.get("choices")
        first = fields_of(choices[0]) if isinstance(choices, list) and choices else {}
        return self.counted([fields.get("usage"), fields.get("usageMetadata"), first.get("usage")])

    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        """The content filter's refusal of an image is an answer."""
        content = read_or_none(body)
        error = fields_of(fields_of(content).get("error"))
        if error.get("code") in _FILTERS:
            reply = Reply(FILTERED, self._used(content) or self._refused)
            # limits of tokens per minute go by the usage
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
            if error := (body if choice is None else choice).get("error"):  # a gateway's
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
    """A model behind OpenAI's chat completions, of whatever provider, one call each.

    Args:
        **chat: Options of `Provider`, `Chat` and `Endpoint`.
    """


def refused(status: int, code: object, words: str, headers: Mapping[str, str]) -> Trouble:
    if code == "insufficient_quota":  # comes as 429, but no waiting helps
        return Trouble(f"http {status}", words, then="stop", refused=True)
    return of_status(status, headers, words)
