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
from collections.abc import Awaitable, Mapping, Sequence
from typing import Annotated, Any, Literal

from ...errors import InputError
from ...types import JsonObject, Prompt, Unanswered
from ...utils.options import Option
from ..replies import REFUSED, are_weighed, names_in, schema_of
from ..yes_no import p_yes
from .attempts import Reply, Trouble, of_status, reading
from .chat import WORDS, ChatEndpoint, MaxTokens, ModelName, PerCall, Provider, Received, lacks
from .elicitation import Elicitation, kind
from .http import fields_of, host_of, read_or_none, words_of
from .keys import QUERY
from .prices import Usage
from .prompt_templates import Template
from .shapes import (
    refusal_in,
    spoken,
    stated_in,
    status_of,
    text_of,
    unsaid,
    words_of_message,
)

YesFrom = Literal["auto", "logprobs", "structured", "words"]
ALTERNATIVES = {"logprobs": 20, "logprobs-5": 5}
"""Log-probabilities per token that are asked for: the most that the protocol allows, or, where
those are refused, as many as stingier servers give."""
ELICITATIONS = (*ALTERNATIVES, "structured", WORDS)
"""In which P(yes) is asked for; see `elicitation.py`."""
_FILTERS = ("content_filter", "content_policy_violation")
_FILTERED = Unanswered(f"{REFUSED}the server's content filter")


class OpenAIProtocol(Provider):
    """``model`` at ``base_url`` (default: OpenAI), through the openai library.

    ``chat`` are the options of `Chat` and `Provider`. Needs openai (the extra ``openai``).
    """

    library, client = "openai", "AsyncOpenAI"

    def __init__(
        self,
        model: ModelName,
        *,
        base_url: Annotated[
            str | None, Option(f"address ending in /v1 (default: OpenAI); {QUERY}", name="url")
        ] = None,
        key: Annotated[
            str | None,
            Option(
                "the environment variable that holds the key (default: OPENAI_API_KEY, where no "
                "url is given)"
            ),
        ] = None,
        answers: PerCall = "one",
        yes_from: Annotated[
            YesFrom, Option("where P(yes) comes from (auto: the first that works)")
        ] = "auto",
        detail: Annotated[
            Literal["auto", "low", "high"] | None,
            Option("how closely to look, where the server offers it"),
        ] = None,
        max_tokens: MaxTokens = 512,
        options: Annotated[
            Mapping[str, Any] | None,
            Option(
                "goes into the request (temperature = 0); ${NAME} in a text is read from the "
                "environment; extra_headers and extra_query as headers and the url's query"
            ),
        ] = None,
        **chat: Any,
    ) -> None:
        super().__init__(
            model,
            base_url=base_url,
            key="OPENAI_API_KEY" if key is None and base_url is None else key,
            options=options,
            elicitation=Elicitation(elicitations_of(ELICITATIONS, yes_from, answers)),
            host="api.openai.com" if base_url is None else host_of(base_url),
            answers=answers,
            max_tokens=max_tokens,
            **chat,
        )
        self._model, self._detail = model, detail
        # OpenAI's newer models refuse the older name; other servers may ignore the newer one.
        limit = "max_completion_tokens" if base_url is None else "max_tokens"
        self._options = {limit: max_tokens, **({"temperature": 0} if options is None else options)}

    def prepare(self, prompt: Prompt) -> JsonObject:
        content: list[JsonObject] = []
        if (image := self._encoding.base64_of(prompt)) is not None:
            url = {"url": f"data:{self._encoding.media_type};base64,{image}"}
            if self._detail is not None:
                url["detail"] = self._detail
            content.append({"type": "image_url", "image_url": url})
        content.append({"type": "text", "text": self.template.render(prompt)})
        messages: list[JsonObject] = [{"role": "user", "content": content}]
        if self.template.system:
            messages.insert(0, {"role": "system", "content": self.template.system})
        return {"model": self._model, "messages": messages, **self._options}

    def worded(self, way: str, request: JsonObject, prompt: Prompt) -> JsonObject:
        if way in ALTERNATIVES:
            return {**request, "logprobs": True, "top_logprobs": ALTERNATIVES[way]}
        if way == WORDS:
            return request
        what = {"name": "probabilities", "strict": True, "schema": schema_of(prompt)}
        wanted = "Give as JSON the probability, from 0 to 1, that the answer is Yes."
        *before, message = request["messages"]
        content = [*message["content"], {"type": "text", "text": wanted}]
        return {
            **request,
            "messages": [*before, {**message, "content": content}],
            "response_format": {"type": "json_schema", "json_schema": what},
        }

    def _used(self, said: Any) -> Usage | None:
        counts = fields_of(fields_of(said).get("usage"))
        return self.counted(counts.get("prompt_tokens"), counts.get("completion_tokens"))

    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        """The content filter's refusal of an image is an answer."""
        found, usage = read_or_none(body), self._used(read_or_none(body))
        code = fields_of(fields_of(found).get("error")).get("code")
        if code in _FILTERS:
            said = Reply(_FILTERED, usage or self._refused)
            trouble = Trouble("content filter", then="leave", billed=True, reply=said)
            trouble.usage = said.usage  # limits of tokens per minute go by it
            return trouble
        words, named = words_of(body), fields_of(fields_of(found).get("error")).get("param")
        if isinstance(named, str) and named not in words:
            words = f"{words} ({named})"
        trouble = refused(status, code, words, headers)
        trouble.usage = usage
        return trouble

    def _reply(self, said: Any, prompt: Prompt, way: str) -> Reply:
        usage = self._used(said)
        with reading(usage):
            if not isinstance(said, dict):
                raise ValueError("expected a JSON object, got something else")
            choices = said.get("choices")
            if choices and not (isinstance(choices, list) and isinstance(choices[0], dict)):
                raise ValueError("expected a list of objects as its choices, got something else")
            choice = choices[0] if choices else None
            error = (said if choice is None else choice).get("error")
            if error:  # a gateway's, of whoever it asked
                body = json.dumps({"error": error, "usage": said.get("usage")})
                raise self._refusal(status_of(error), body.encode(), {})
            if choice is None:
                detail = f"expected a chat completion, got {words_of(json.dumps(said).encode())}"
                raise Trouble("truncated", detail, billed=True, usage=usage)
            if choice.get("finish_reason") == "error":
                detail = "the reply ended in an error"
                raise Trouble("provider error", detail, billed=True, usage=usage)
            found = received(choice, prompt, way, self.template, self.longest)
            return self._replied(found, prompt, way, usage)


class OpenAIChat(ChatEndpoint, OpenAIProtocol):
    """A model behind OpenAI's chat completions, of whatever provider, one call each.

    The options are those of `ChatEndpoint`, `OpenAIProtocol` and `Endpoint`.
    """

    def created(self, request: JsonObject) -> Awaitable[Any]:
        return self._client.chat.completions.with_raw_response.create(**request)


def elicitations_of(ways: Sequence[str], yes_from: YesFrom, answers: str) -> list[str]:
    """Those of the ways that are wanted, and can be had. Raises InputError where there are none."""
    if answers == "all" and yes_from == "logprobs":
        raise InputError("model.yes_from: 'logprobs' needs one question per call, answers = 'one'")
    asked = [way for way in ways if yes_from in ("auto", kind(way))]
    return [way for way in asked if answers == "one" or way not in ALTERNATIVES]


# -- what came back ------------------------------------------------------------------------


def received(
    choice: Mapping[str, Any], prompt: Prompt, way: str, template: Template, longest: int
) -> Received:
    """What a reply's first choice says; any exception means that it is malformed."""
    message, ended = choice["message"], choice.get("finish_reason")
    if (refusal := refusal_in(message)) is not None:
        return Received(Unanswered(f"{REFUSED}{refusal}"), None, refusal)
    text, cut = text_of(message.get("content")), longest if ended == "length" else None
    words = words_of_message(message, text, cut=cut is not None)
    if ended == "content_filter":
        return Received(_FILTERED, None, words)
    if cut is None and not text.strip():
        return Received(unsaid(message), True if way == WORDS else None, words)
    said, wanted = spoken(text, prompt, template, cut=cut), False
    if way == WORDS:
        return Received(said, True, words)
    if way in ALTERNATIVES:
        tokens = (choice.get("logprobs") or {}).get("content") or ()
        value, wanted = p_yes(tokens, prompt.concepts[0]), are_weighed(tokens)
        begun = isinstance(said, tuple) and not isinstance(said[0], Unanswered)
        said = said if value is None or not (cut is None or begun) else (value,)
    elif (found := stated_in(text, names_in(prompt))) is not None:
        said, wanted = found, True
    return Received(said, wanted or lacks(text, cut=cut is not None), words)


def refused(status: int, code: object, words: str, headers: Mapping[str, str]) -> Trouble:
    if code == "insufficient_quota":  # comes as 429, but no waiting helps
        return Trouble(f"http {status}", words, then="stop", refused=True)
    return of_status(status, headers, words)
