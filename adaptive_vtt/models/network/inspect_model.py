"""Models of any provider that Inspect supports, such as "openai/gpt-4o", "google/..." or "hf/...".

Inspect (https://inspect.aisi.org.uk/models.html) knows each provider's protocol. `Endpoint` decides
about retries, rate limits and costs. Retries, caches and batches of Inspect are turned off, and so
are retries of the client libraries of OpenAI, Anthropic and Groq, since they would cost money that
is not booked. Client libraries of other providers may retry calls by themselves.

P(yes) comes from log-probabilities if the provider gives them, else from the words of the reply.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import ValidationError

from ...errors import InputError, check_known, one_line
from ...types import JsonObject, Prompt, Value
from ...utils.importing import needed
from ...utils.options import Option
from .attempts import QUOTED, Reply, Trouble, reading
from .chat import Address, Chat, key_trouble
from .elicitation import ALTERNATIVES, WORDS
from .endpoint import Endpoint
from .http import Encoding, lost
from .keys import FILLED, Key, from_environment, names_secret, scrubbed, written_in
from .openai import DETAIL, refused
from .prices import Bill, Usage
from .prompt_templates import Template
from .shapes import in_words, received

if TYPE_CHECKING:
    from inspect_ai.model import ModelOutput, ModelUsage

Detail = Literal["auto", "low", "high"]
_FREE_LISTS = ("api.openai.com", "api.anthropic.com")
"""Hosts that send their list of models for free to any valid key."""
_FIXED = {
    "max_connections": 1_000_000,  # no limit, as `Endpoint` limits the calls in flight
    "cache_prompt": False,  # writing to a provider's cache costs more than sending tokens
    **{"max_retries": 0, "cache": False, "batch": False},
}
"""Options of Inspect with the values that all calls have."""
_OURS = {
    "max_tokens": "max_tokens",
    "system_message": "template",
    "max_retries": "retries",
    **dict.fromkeys(("timeout", "attempt_timeout", "stream_idle_timeout"), "timeout"),
    **dict.fromkeys(("max_connections", "adaptive_connections"), "in_flight"),
    **dict.fromkeys(("logprobs", "top_logprobs", "prompt_logprobs"), "yes_from"),
    **dict.fromkeys(("cache", "cache_prompt", "batch", "num_choices", "best_of"), ""),
    **dict.fromkeys(("fallback_models", "fail_on_refusal"), ""),
}
"""Options of Inspect that users cannot set -> the field of [model] that sets them, "" for none."""
_CACHED = ("input_tokens_cache_read", "input_tokens_cache_write")
"""Counts of tokens sent that "input_tokens" does not include."""
_FINISH = {"max_tokens": "length", "model_length": "length", "content_filter": "content_filter"}
"""Inspect's stop reason -> the finish reason of OpenAI's protocol."""
_MARKUP = re.compile(r"\[/?(?:bold|blue|italic)\]")
"""Matches the markup in messages of Inspect."""
_CONNECTIONS = ("httpx", "httpcore")
"""Names of libraries whose errors say how a connection failed; successors begin with them."""


class InspectModel(Chat, Endpoint):
    """A model of any provider that Inspect knows, named PROVIDER/NAME.

    ``max_tokens`` bounds the reply with its reasoning. Needs the extra ``inspect``, and the library
    that Inspect needs for the provider.

    Args:
        model: Inspect's name of the model, PROVIDER/NAME.
        base_url: Address of the server. Default None: the provider's.
        key: Environment variable that holds the key. Default None: the provider's usual one.
        detail: How closely the model looks at images.
        options: Fields of Inspect's GenerateConfig. Default None: temperature 0.
        provider: Arguments of Inspect's provider. Default None: none.
        keys: Further secrets, which are removed from all texts that are shown or stored.
        **chat: Options of `Chat` and `Endpoint`.

    Raises:
        InputError: Inspect knows no such model or finds no key, or ``options`` contains one that
            the audit sets.
    """

    modes = (*ALTERNATIVES, WORDS)

    def __init__(
        self,
        model: Annotated[str, Option("Inspect's name of it, PROVIDER/NAME, as in 'inspect eval'")],
        *,
        base_url: Address = None,
        key: Annotated[str | None, Option("environment variable (default: the provider's)")] = None,
        detail: Annotated[Detail, Option(DETAIL)] = "auto",
        options: Annotated[
            Mapping[str, Any] | None, Option(f"fields of Inspect's GenerateConfig; {FILLED}")
        ] = None,
        provider: Annotated[
            Mapping[str, Any] | None, Option(f"arguments of Inspect's provider (-M); {FILLED}")
        ] = None,
        keys: Sequence[Key] = (),
        **chat: Any,
    ) -> None:
        secret = None if key is None else from_environment(key, "model.key")
        # the provider may read its key from any variable of the environment
        ambient = [Key(value) for name, value in os.environ.items() if names_secret(name) and value]
        keys = [*filter(None, [secret]), *keys, *written_in(options, provider), *ambient]
        super().__init__(model, host=f"Inspect's {model.partition('/')[0]}", keys=keys, **chat)
        self._detail: Detail = detail
        self._options = {"temperature": 0} if options is None else dict(options)
        with needed("inspect", "Inspect needs inspect-ai"):
            from inspect_ai.model import get_model
        arguments = {**({} if secret is None else {"api_key": secret.reveal()}), **(provider or {})}
        try:  # not memoized, as connections of a shared model may belong to another event loop
            self._model: Any = get_model(model, base_url=base_url, memoize=False, **arguments)
        except Exception as error:  # providers raise many types of errors
            why = _MARKUP.sub("", one_line(error)).removeprefix("ERROR: ")
            message = f"model.model: Inspect makes no {model!r}: {why}"
            raise InputError(scrubbed(message, self._keys)) from None
        client: Any = getattr(self._model.api, "client", None)  # of the provider's library
        if hasattr(client, "max_retries"):
            client.max_retries = 0
        self._background.at_the_end(self._model.api.aclose)
        self._config({})  # raises for unknown options before the first call

    def prepare(self, prompt: Prompt) -> list[Any]:
        return messages(prompt, self.template, self._encoding, self._detail)

    async def send(self, request: list[Any], prompt: Prompt) -> Reply:
        async def exchange(mode: str) -> Reply:
            number = ALTERNATIVES.get(mode)
            logprobs = {} if number is None else {"logprobs": True, "top_logprobs": number}
            try:
                messages = await self._prepared(request, prompt)
                config = self._config(logprobs)
                output = await self._model.generate(messages, config=config, cache=False)
            except Exception as error:  # providers raise many types of errors
                raise trouble_of(error) from None
            return self._reply(output, prompt, mode)

        return await self._asked(prompt, exchange)

    def check_key(self) -> None:
        """Raise ModelError for a key that OpenAI or Anthropic refuse.

        Any valid key may list their models. Keys of other providers are not checked, as no free
        request is known.
        """
        client: Any = getattr(self._model.api, "client", None)
        if urlsplit(str(getattr(client, "base_url", ""))).hostname not in _FREE_LISTS:
            return

        async def list_models() -> None:
            try:
                await client.models.list()
            except Exception as error:  # providers raise many types of errors
                raise trouble_of(error) from None

        trouble = self._background.submit(key_trouble(list_models)).result()
        if trouble is not None and trouble.kind == "http 401":
            self._scrub(trouble)
            self._stop_if_hopeless(trouble, Bill())

    def _config(self, logprobs: Mapping[str, Any]) -> Any:
        """Return Inspect's configuration of a call, with the options for log-probabilities."""
        from inspect_ai.model import GenerateConfig

        for name in self._options:
            if name in _OURS:
                instead = f"; {_OURS[name]} in [model] decides it" if _OURS[name] else ""
                raise InputError(f"model.options: expected no {name}, which an audit sets{instead}")
            check_known("option", name, GenerateConfig.model_fields, "model.options")
        settings = {**self._allowed(self._options), **_FIXED, **logprobs}
        try:
            return GenerateConfig(**{**settings, "max_tokens": self._initial_bound.output})
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise InputError(f"model.options.{field}: {first['msg']}") from None

    def _reply(self, output: "ModelOutput", prompt: Prompt, mode: str) -> Reply:
        usage = self._used(output.usage)
        if not output.choices:
            detail = f"expected a choice, got {output.error or 'none'}"
            raise Trouble("truncated", detail, billed=True, usage=usage)
        with reading(usage, output.completion.encode(errors="replace")):
            choice = _choice(output)
        return self._read(choice, prompt, mode, usage, {"model": output.model})

    def _used(self, usage: "ModelUsage | None") -> Usage | None:
        """Return the tokens that were counted, with those from a provider's cache; None if they are
        0 in total, as no call uses none."""
        counted = self.counted(None if usage is None else usage.model_dump(), _CACHED)
        return counted if counted is not None and counted.total else None


def messages(
    prompt: Prompt, template: Template, encoding: Encoding, detail: Detail = "auto"
) -> list[Any]:
    """Return a prompt as messages of Inspect, with its image as a data URL."""
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText

    content: list[Any] = []
    if (image := encoding.base64_of(prompt)) is not None:
        url = f"data:{encoding.media_type};base64,{image}"
        content.append(ContentImage(image=url, detail=detail))
    content.append(ContentText(text=template.render(prompt)))
    system = [ChatMessageSystem(content=template.system)] if template.system else []
    return [*system, ChatMessageUser(content=content)]


def value_of(output: "ModelOutput", prompt: Prompt, template: Template) -> Value:
    """Return the answer in an output of Inspect to a prompt with one question.

    It is words if the question is in words, else P(yes): from log-probabilities if there are any.
    """
    mode = WORDS if in_words(prompt) else "logprobs"
    longest = 0 if output.usage is None else output.usage.output_tokens
    values = received(_choice(output), prompt, mode, template, longest).values
    return values[0] if isinstance(values, tuple) else values


def trouble_of(error: Exception) -> Trouble:
    """Return the trouble with a call of Inspect that failed.

    The call may have been billed, unless the HTTP status or the connection excludes that.
    """
    causes = list(_causes(error))
    for cause in causes:
        status = getattr(cause, "status_code", None) or getattr(cause, "code", None)
        if isinstance(status, int) and 400 <= status < 600:
            headers = getattr(getattr(cause, "response", None), "headers", None) or {}
            words = getattr(cause, "provider_message", None) or one_line(cause)
            return refused(status, getattr(cause, "code", None), words[:QUOTED], headers)
    for cause in causes:
        if type(cause).__module__.startswith(_CONNECTIONS):
            return lost(cause)
    detail = one_line(causes[0])[:QUOTED]
    return Trouble("provider error", detail, billed=True)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the causes of an exception, the first cause first, and the exception itself."""
    if error is not None:
        yield from _causes(error.__cause__)
        yield error


def _choice(output: "ModelOutput") -> JsonObject:
    """Return the first choice of an output in OpenAI's protocol."""
    choice = output.choices[0]
    text, filtered = choice.message.text, choice.stop_reason == "content_filter"
    return {
        "message": {"content": text, "refusal": text if filtered else None},
        "finish_reason": _FINISH.get(choice.stop_reason),
        "logprobs": None if choice.logprobs is None else choice.logprobs.model_dump(),
    }
