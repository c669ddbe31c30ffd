"""Anthropic's messages: models that see, asked through the anthropic library.

Documented at https://docs.anthropic.com/en/api/messages. Messages carry no log-probabilities, so
the model states P(yes) itself. In the order in which ``yes_from = "auto"`` tries them:

- "structured": as the input of a tool that the reply must use, whose schema asks for a number
  per question, from 0 to 1;
- "stated": as JSON among its words;
- "words": 1 or 0 from a Yes or No in the reply.

A number that is none from 0 to 1 is no answer. What is refused, as a forced tool is beside extended
thinking, or passed over, gives place to the next (`elicitation.py`). Questions in words are
answered in words.
"""

import json
from collections.abc import Awaitable, Mapping
from typing import Annotated, Any, Literal

from ...types import JsonObject, Prompt, Unanswered
from ...utils.options import Option
from ..replies import REFUSED, in_words, names_in, schema_of
from .attempts import Reply, Trouble, of_status, reading
from .chat import WORDS, ChatEndpoint, MaxTokens, ModelName, PerCall, Provider, Received, lacks
from .elicitation import Elicitation
from .http import fields_of, host_of, read_or_none, words_of
from .keys import QUERY
from .prices import Usage
from .prompt_templates import Template
from .shapes import spoken, stated, stated_in, text_of, words_of_message

ADDRESS = "https://api.anthropic.com"
ELICITATIONS = ("structured", "stated", WORDS)
"""In which P(yes) is asked for; see `elicitation.py`."""
Stating = Literal["auto", "structured", "stated", "words"]
_TOOL = "give_probability"
_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_NO_FUNDS = "credit balance"
"""In the words of a 400 that no waiting helps."""


class AnthropicProtocol(Provider):
    """``model`` at Anthropic, or at ``base_url``, through the anthropic library.

    ``yes_from``: see the module. ``chat`` are the options of `Chat` and `Provider`. Needs anthropic
    (the extra ``anthropic``).
    """

    library, client = "anthropic", "AsyncAnthropic"
    _kept = (*Provider._kept, "max_tokens")

    def __init__(
        self,
        model: ModelName,
        *,
        base_url: Annotated[
            str, Option(f"another address than Anthropic's; {QUERY}", name="url")
        ] = ADDRESS,
        key: Annotated[
            str, Option("the environment variable that holds the key")
        ] = "ANTHROPIC_API_KEY",
        answers: PerCall = "one",
        yes_from: Annotated[
            Stating,
            Option("P(yes): a number given to a tool, or stated, or 1 or 0 (auto: what works)"),
        ] = "auto",
        max_tokens: MaxTokens = 512,
        options: Annotated[
            Mapping[str, Any] | None,
            Option("goes into the request; ${NAME} in a text is read from the environment"),
        ] = None,
        **chat: Any,
    ) -> None:
        super().__init__(
            model,
            base_url=base_url.rstrip("/").removesuffix("/v1"),  # the library adds it
            key=key,
            options=options,
            elicitation=Elicitation(ELICITATIONS if yes_from == "auto" else (yes_from,)),
            host=host_of(base_url),
            answers=answers,
            max_tokens=max_tokens,
            **chat,
        )
        self._options = {"model": model, "max_tokens": max_tokens, **(options or {})}

    def prepare(self, prompt: Prompt) -> JsonObject:
        content: list[JsonObject] = []
        if (image := self._encoding.base64_of(prompt)) is not None:
            kind = self._encoding.media_type
            source = {"media_type": kind, "type": "base64", "data": image}
            content.append({"type": "image", "source": source})
        content.append({"type": "text", "text": self.template.render(prompt)})
        system = {"system": self.template.system} if self.template.system else {}
        return {**self._options, **system, "messages": [{"role": "user", "content": content}]}

    def worded(self, way: str, request: JsonObject, prompt: Prompt) -> JsonObject:
        if way == WORDS:
            return request
        if way == "structured":
            about = "Takes the probability, from 0 to 1, that the answer is Yes."
            tool = {"name": _TOOL, "description": about, "input_schema": schema_of(prompt)}
            return {**request, "tools": [tool], "tool_choice": {"type": "tool", "name": _TOOL}}
        example = ", ".join(f'"{name}": 0.5' for name in names_in(prompt))
        wanted = (
            "Instead of the words Yes and No, give the probability, from 0 to 1, that the answer "
            f"is Yes, as JSON alone, like this: {{{example}}}"
        )
        (message,) = request["messages"]
        content = [*message["content"], {"type": "text", "text": wanted}]
        return {**request, "messages": [{**message, "content": content}]}

    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        words = words_of(body)
        if status == 400 and _NO_FUNDS in words.lower():
            trouble = Trouble("http 400", words, then="stop", refused=True)
        else:
            trouble = of_status(status, headers, words)
        trouble.usage = self._used(read_or_none(body))
        return trouble

    def _used(self, message: Any) -> Usage | None:
        counts = fields_of(fields_of(message).get("usage"))
        sent, *cached = (counts.get(name) for name in _TOKENS)
        return self.counted(sent, counts.get("output_tokens"), *cached)

    def _reply(self, message: Mapping[str, Any], prompt: Prompt, way: str) -> Reply:
        usage = self._used(message)
        with reading(usage):
            received = _received(message, prompt, way, self.template, self.longest)
            return self._replied(received, prompt, way, usage)


class AnthropicMessages(ChatEndpoint, AnthropicProtocol):
    """A model behind Anthropic's messages, one call each.

    The options are those of `ChatEndpoint`, `AnthropicProtocol` and `Endpoint`.
    """

    def created(self, request: JsonObject) -> Awaitable[Any]:
        return self._client.messages.with_raw_response.create(**request)


def _received(
    message: Mapping[str, Any], prompt: Prompt, way: str, template: Template, longest: int
) -> Received:
    """What a message says; any exception means that it is malformed."""
    text, ended = text_of(message["content"]), message.get("stop_reason")
    if ended == "refusal":
        return Received(Unanswered(f"{REFUSED}{text or 'the model declined'}"), None, text)
    kept, names = words_of_message(message, text, cut=ended == "max_tokens"), names_in(prompt)
    words = spoken(text, prompt, template, cut=longest if ended == "max_tokens" else None)
    if way == WORDS or in_words(prompt):
        return Received(words, True, kept)
    if way == "structured":
        used = [part["input"] for part in message["content"] if part["type"] == "tool_use"]
        said = stated(used[0], names) if used else None
        kept = json.dumps(used[0]) if used else kept
    else:
        said = stated_in(text, names)
    if said is not None:
        return Received(said, True, kept)
    return Received(words, lacks(text, cut=ended == "max_tokens"), kept)
