"""Vision chat models behind Anthropic's Messages API, asked through the anthropic library.

Documented at https://docs.anthropic.com/en/api/messages. Messages carry no log-probabilities, so
the model states P(yes) itself, in one of these modes. ``yes_from = "auto"`` tries them in order:

- "structured": the input of a tool that the reply must use, whose schema has one number from 0 to
  1 per question;
- "stated": JSON within the text of the reply;
- "words": 1 or 0 from a Yes or No in the reply.

A number outside [0, 1] is no answer. If the server refuses a mode, as it refuses a forced tool with
extended thinking, or ignores it, the next mode is tried (`elicitation.py`). Questions in words are
answered in words.
"""

import json
from collections.abc import Awaitable, Mapping
from typing import Any

from ...types import JsonObject, Prompt
from .attempts import Reply, Trouble, of_status, reading
from .chat import Provider, with_text
from .elicitation import WORDS
from .endpoint import Endpoint
from .http import fields_of, words_of
from .prices import Usage
from .shapes import names_in, schema_of, text_of

_TOOL = "give_probability"
_CACHED = ("cache_creation_input_tokens", "cache_read_input_tokens")
"""Counts of tokens sent that "input_tokens" does not include."""
_NO_FUNDS = "credit balance"
"""Part of the message of a status 400 that no waiting helps."""


class AnthropicMessages(Provider, Endpoint):
    """A model behind Anthropic's Messages API. Needs the extra ``anthropic``.

    Args:
        keys: Further secrets, which are removed from all texts that are shown or stored.
        **chat: Options of `Provider`, `Chat` and `Endpoint`.
    """

    library, client, address = "anthropic", "AsyncAnthropic", "https://api.anthropic.com"
    modes = ("structured", "stated", WORDS)
    variable, always_keyed = "ANTHROPIC_API_KEY", True
    _kept = (*Provider._kept, "max_tokens")

    def root(self, base_url: str | None) -> str | None:
        return (base_url or self.address).rstrip("/").removesuffix("/v1")  # the library adds it

    def image_part(self, data: str) -> JsonObject:
        source = {"media_type": self._encoding.media_type, "type": "base64", "data": data}
        return {"type": "image", "source": source}

    def prepare(self, prompt: Prompt) -> JsonObject:
        system = {"system": self.template.system} if self.template.system else {}
        return {**super().prepare(prompt), **system}

    def asking(self, mode: str, request: JsonObject, prompt: Prompt) -> JsonObject:
        if mode == "structured":
            about = "Takes the probability, from 0 to 1, that the answer is Yes."
            tool = {"name": _TOOL, "description": about, "input_schema": schema_of(prompt)}
            return {**request, "tools": [tool], "tool_choice": {"type": "tool", "name": _TOOL}}
        example = json.dumps(dict.fromkeys(names_in(prompt), 0.5))
        return with_text(
            request,
            "Instead of the words Yes and No, give the probability, from 0 to 1, that the answer "
            f"is Yes, as JSON alone, like this: {example}",
        )

    def created(self, request: JsonObject) -> Awaitable[Any]:
        return self._client.messages.with_raw_response.create(**request)

    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        words = words_of(body)
        if status == 400 and _NO_FUNDS in words.lower():
            return Trouble("http 400", words, then="stop", refused=True)
        return of_status(status, headers, words)

    def _used(self, body: Any) -> Usage | None:
        return self.counted(fields_of(body).get("usage"), _CACHED)

    def _reply(self, body: Any, prompt: Prompt, mode: str) -> Reply:
        usage = self._used(body)
        with reading(usage):
            text, stop_reason = text_of(body["content"]), body.get("stop_reason")
            inputs = [part["input"] for part in body["content"] if part["type"] == "tool_use"]
            message = {"content": text, "tool_calls": inputs}
            if mode == "structured" and inputs:
                message["content"] = json.dumps(inputs[0])
            if stop_reason == "refusal":
                message["refusal"] = text or "the model declined"
        finish_reason = "length" if stop_reason == "max_tokens" else stop_reason
        choice = {"message": message, "finish_reason": finish_reason}  # as in OpenAI's protocol
        return self._read(choice, prompt, mode, usage, body)
