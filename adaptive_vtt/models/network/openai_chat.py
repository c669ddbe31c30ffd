"""Chat models that see: OpenAI, and the many servers that speak its protocol.

An audit's binary questions want P(yes). In the order in which `yes_from = "auto"` tries them:

- "logprobs": the probabilities of the tokens Yes and No where the reply says one of them,
  normalised over the two;
- "structured": a number the model states, in JSON that the server enforces;
- "words": 1 or 0 from a Yes or No in the reply.

A server that refuses (400, 422) the request for one of them, before it ever answered one, is
asked for the next; a reply without log-probabilities is read as words. Questions in words
(`Prompt.asks`) are answered in words, which an oracle on words judges. A refusal by the
server's content filter is an answer like others, of no tokens where it counts none.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ...errors import InputError
from ...types import CallMode, Prompt, Unanswered, Value
from ...utils.extras import pip_install
from ..replies import REFUSED
from .attempts import Reply, Trouble, of_status, reading
from .chat_replies import in_words, names_in, p_yes, stated, value_of
from .endpoint import Endpoint
from .http import host_of
from .image_encoding import Encoding
from .key_signs import texts_of_options, texts_of_query, written_out
from .keys import Key, from_environment
from .paid import Paid
from .prices import Usage
from .prompt_templates import TEMPLATES, Template
from .wire import MAX_REPLY_BYTES, client_options, lost, parsed, words_of

YesFrom = Literal["auto", "logprobs", "structured", "words"]
_MODES: tuple[YesFrom, ...] = ("logprobs", "structured", "words")
_ALTERNATIVES = 20  # the most log-probabilities per token that the protocol allows
_FILTERS = ("content_filter", "content_policy_violation")
_FILTERED = Unanswered(f"{REFUSED}the server's content filter")


class OpenAIProtocol(Paid):
    """``model`` at ``base_url`` (default: OpenAI), through the openai library.

    ``key``: the environment variable that holds the key (default: OPENAI_API_KEY at OpenAI,
    none elsewhere). ``answers``: one question per call, or "all" of an image in one numbered
    list. ``template``: the words of a prompt. ``max_tokens`` bounds the reply,
    ``max_input_tokens`` text and image: a bound for the money, since no protocol enforces it.
    ``longest_body``: a longer body, in bytes, is a failed exchange.
    ``options`` go into the request as they are (default: temperature = 0). Raises InputError
    for a key that is not set. Needs openai (the extra ``openai``).
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key: str | None = None,
        template: Template = TEMPLATES["zero-shot"],
        answers: CallMode = "one",
        yes_from: YesFrom = "auto",
        encoding: Encoding | None = None,
        detail: Literal["auto", "low", "high"] | None = None,
        max_tokens: int = 512,
        max_input_tokens: int = 4096,
        longest_body: int = MAX_REPLY_BYTES,
        options: Mapping[str, Any] | None = None,
        keys: Sequence[Key] = (),
        **paid: Any,
    ) -> None:
        host = "api.openai.com" if base_url is None else host_of(base_url)
        if key is None and base_url is None:
            key = "OPENAI_API_KEY"
        secret = None if key is None else from_environment(key, "model.key")
        found = written_out([*texts_of_options(options or {}), *texts_of_query(base_url or "")])
        self._client = _client(
            base_url, "none" if secret is None else secret.reveal(), longest_body
        )
        paid.setdefault("name", model)
        super().__init__(
            host=host,
            answers=answers,
            bound=Usage(max_input_tokens, max_tokens),
            keys=[*([] if secret is None else [secret]), *keys, *found],
            **paid,
        )
        self._model, self.template = model, template
        self._encoding, self._detail = encoding or Encoding(), detail
        # OpenAI's newer models refuse the older name; other servers may ignore the newer one.
        limit = "max_completion_tokens" if base_url is None else "max_tokens"
        self._options = {limit: max_tokens, **({"temperature": 0} if options is None else options)}
        self._modes = _modes(yes_from, answers)
        self.hard_answers = self._modes == ["words"]
        self._settled = False

    @property
    def template_hash(self) -> str:  # type: ignore[override]  # follows from the template
        return self.template.hash

    @property
    def takes_words(self) -> bool:  # type: ignore[override]  # follows from the template
        return self.template.takes_words

    def protocol(self) -> dict[str, Any]:
        return self.template.protocol(self._options)

    def statistics(self) -> dict[str, Any]:
        return {**super().statistics(), "yes_from": self._modes[0] if self._settled else None}

    def prepare(self, prompt: Prompt) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if prompt.image is not None:
            data = self._encoding(prompt.image, f"sample {prompt.sample_id!r}")
            text = base64.b64encode(data).decode()
            url = {"url": f"data:{self._encoding.media_type};base64,{text}"}
            if self._detail is not None:
                url["detail"] = self._detail
            content.append({"type": "image_url", "image_url": url})
        content.append({"type": "text", "text": self.template.render(prompt)})
        messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if self.template.system:
            messages.insert(0, {"role": "system", "content": self.template.system})
        return {"model": self._model, "messages": messages, **self._options}

    def _mode(self, prompt: Prompt) -> YesFrom:
        """Where P(yes) is to come from now; questions in words are answered in words."""
        return "words" if in_words(prompt) else self._modes[0]

    def _reply(self, said: Any, prompt: Prompt, mode: YesFrom) -> Reply:
        self._settled = self._settled or not in_words(prompt)
        counts = said.get("usage")
        counts = counts if isinstance(counts, dict) else {}
        usage = self.counted(counts.get("prompt_tokens"), counts.get("completion_tokens"))
        with reading(usage):
            choices = said.get("choices")
            if not choices:
                detail = f"expected a chat completion, got {words_of(json.dumps(said).encode())}"
                raise Trouble("truncated", detail, billed=True, usage=usage)
            return Reply(_said(choices[0], prompt, mode, self.template), usage)

    async def disconnect(self) -> None:
        await self._client.close()

    def _falls_back(self, mode: YesFrom, status: int) -> bool:
        """Whether a refused request is to be sent again, for P(yes) in another way."""
        if mode == "words" or self._settled or status not in (400, 422):
            return False
        if mode == self._modes[0] and len(self._modes) > 1:
            del self._modes[0]
        return mode != self._modes[0]


class OpenAIChat(OpenAIProtocol, Endpoint):
    """Chat completions, one call each; the options are those of `OpenAIProtocol` and `Endpoint`.

    ``max_reply_bytes``: a longer reply is a failed attempt.
    """

    def __init__(
        self, model: str, *, max_reply_bytes: int = MAX_REPLY_BYTES, **options: Any
    ) -> None:
        super().__init__(model, longest_body=max_reply_bytes, **options)

    async def send(self, request: dict[str, Any], prompt: Prompt) -> Reply:
        import openai

        while True:
            mode = self._mode(prompt)
            try:
                raw = await self._client.chat.completions.with_raw_response.create(
                    **worded(mode, request, prompt)
                )
            except openai.APIStatusError as error:
                if not self._falls_back(mode, error.status_code):
                    return _refusal(error)
                continue
            except openai.APIConnectionError as error:
                raise lost_in(error) from None
            return self._reply(parsed(raw.http_response.content), prompt, mode)


def _client(base_url: str | None, key: str, most: int) -> Any:
    try:
        import openai
    except ImportError:
        raise InputError(
            f"OpenAI-compatible endpoints need openai: {pip_install('openai')}"
        ) from None
    # retries and timeouts are the endpoint's, which counts and pays for them
    return openai.AsyncOpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=0,
        timeout=None,
        http_client=openai.DefaultAsyncHttpxClient(**client_options(most)),
    )


def _modes(yes_from: YesFrom, answers: str) -> list[YesFrom]:
    if answers == "all" and yes_from == "logprobs":
        raise InputError("model.yes_from: 'logprobs' needs one question per call, answers = 'one'")
    if yes_from != "auto":
        return [yes_from]
    return [mode for mode in _MODES if answers == "one" or mode != "logprobs"]


def worded(mode: YesFrom, request: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
    """The request, asking for P(yes) in a certain way."""
    if mode == "logprobs":
        return {**request, "logprobs": True, "top_logprobs": _ALTERNATIVES}
    if mode != "structured":
        return request
    names = names_in(prompt)
    schema = {
        "type": "object",
        "properties": {name: {"type": "number"} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    what = {"name": "probabilities", "strict": True, "schema": schema}
    wanted = "Give as JSON the probability, from 0 to 1, that the answer is Yes."
    message = request["messages"][-1]
    content = [*message["content"], {"type": "text", "text": wanted}]
    return {
        **request,
        "messages": [*request["messages"][:-1], {**message, "content": content}],
        "response_format": {"type": "json_schema", "json_schema": what},
    }


# -- what came back ------------------------------------------------------------------------


def _said(
    choice: Mapping[str, Any], prompt: Prompt, mode: YesFrom, template: Template
) -> tuple[Value, ...] | Unanswered:
    """What a reply's first choice says; any exception means that it is malformed."""
    message = choice["message"]
    if message.get("refusal"):
        return Unanswered(f"{REFUSED}{_text(message['refusal'])}")
    if choice.get("finish_reason") == "content_filter":
        return _FILTERED
    text = "" if message.get("content") is None else _text(message["content"])
    if mode == "structured":
        return stated(text, names_in(prompt))
    if mode == "logprobs" and choice.get("logprobs"):
        value = p_yes(choice["logprobs"].get("content") or ())
        if value is not None:
            return (value,)
    parts = template.split(text, len(prompt.concepts))
    return tuple(value_of(part, prompt, k) for k, part in enumerate(parts))


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError(f"expected words, got {type(said).__name__}")
    return said


def _refusal(error: Any) -> Reply:
    """A status that is no success: a refusal of this image, or Trouble."""
    words = words_of(error.response.content)
    return refusal(error.status_code, error.code, words, error.response.headers)


def refusal(status: int, code: object, words: str, headers: Mapping[str, str]) -> Reply:
    """The content filter's refusal is an answer; any other ``code`` and status raises Trouble."""
    if code in _FILTERS:
        return Reply(_FILTERED, Usage())
    raise refused(status, code, words, headers) from None


def refused(status: int, code: object, words: str, headers: Mapping[str, str]) -> Trouble:
    """The trouble with a status that is no success."""
    if code == "insufficient_quota":  # comes as 429, but no waiting helps
        return Trouble(f"http {status}", words, then="stop")
    return of_status(status, headers, words)


def lost_in(error: Any) -> Trouble:
    """The trouble with the connection that an APIConnectionError is about."""
    cause = error.__cause__
    return cause if isinstance(cause, Trouble) else lost(cause or error)
