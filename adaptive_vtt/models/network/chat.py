"""The chat models of all providers: prompts in words, and how P(yes) is asked for."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from ...errors import InputError, check_known
from ...journal.facts import WayFacts
from ...types import CallMode, JsonObject, Prompt
from ...utils.importing import needed
from ...utils.options import Group, Option
from . import http
from .attempts import Reply, Trouble, reading, text_of_bytes
from .elicitation import ALTERNATIVES, IMAGE, LIMITS, WORDS, Elicitation, is_named, kind
from .http import MAX_REPLY_BYTES, Encoding, MaxReplyBytes
from .keys import FILLED, QUERY, Key, from_environment, written_in
from .paid import SERVED, Paid
from .prices import Bill, Usage
from .prompt_templates import TEMPLATES, Template
from .prompt_templates import template as template_named
from .shapes import in_words, received

_MISSING = {
    "logprobs": "no log-probabilities",
    "structured": "no structured output",
    "stated": "no stated probability",
}
"""The kinds of trouble with a reply that lacks what was asked for."""
_NOT_THE_REQUEST = ("http 401", "http 402", "http 407", "http 408", "http 409", "http 429")
"""Refusals that no other request would escape."""
_MAYBE = ("http 403", "http 404")
"""The same, or refusals of an option: one repetition without it decides."""
_STATUSES = range(400, 502)
"""Statuses of refusals: some servers refuse an option by 403, 404, 500 or 501."""
_WRONG_KEY = ("http 401", "http 403")
_SOON = 5.0
"""Seconds that a server has to accept or refuse the key, before it is asked in earnest."""
_APART = ("extra_headers", "extra_query")

WORDING = (
    "prompt template: zero-shot, few-shot, chain-of-thought, endobench, medtest, or a text file "
    "such as my.txt with {question}, {options}, {words}, or with {questions} (default: zero-shot)"
)
YES_FROM = (
    "where P(yes) comes from: log-probabilities, a number in an enforced form, one that is stated, "
    "or Yes and No (auto: the first of the provider's that works)"
)
ADDRESS = f"address, ending in /v1 for OpenAI's protocol (default: the provider's); {QUERY}"
OPTIONS = f"fields of each request (temperature = 0), extra_headers, extra_query; {FILLED}"
KEY = "environment variable of the key (default: ANTHROPIC_API_KEY, or OPENAI_API_KEY without url)"
ModelName = Annotated[str, Option("what the server calls the model")]
Address = Annotated[str | None, Option(ADDRESS, name="url")]
YesFrom = Literal["auto", "logprobs", "structured", "stated", "words"]


class Chat(Paid, ABC):
    """A chat model.

    Args:
        model: The provider's name of the model.
        answers: Questions that one call answers.
        yes_from: The mode of P(yes), or "auto" for the first that works.
        template: The wording of prompts.
        encoding: The format and size in which images are sent.
        max_tokens: Tokens of the longest reply.
        max_input_tokens: Most tokens of a prompt with its image. No provider enforces it.
        **paid: Options of `Paid`.

    Raises:
        InputError: The provider lacks the mode.
    """

    may_judge = True
    modes: ClassVar[Sequence[str]]
    """Modes of P(yes), the best first; see `elicitation.py`."""
    _options: dict[str, Any]
    """Goes into every request."""
    _kept: ClassVar[tuple[str, ...]] = ("model", "extra_headers", "extra_query", "extra_body")
    """Options without which nothing could be asked."""

    def __init__(
        self,
        model: ModelName,
        *,
        answers: Annotated[
            CallMode, Option("questions that one call answers, all or one", name="per_call")
        ] = "one",
        yes_from: Annotated[YesFrom, Option(YES_FROM)] = "auto",
        template: Annotated[Template, Option(WORDING, reads=template_named, type=str)] = (
            TEMPLATES["zero-shot"]
        ),
        encoding: Annotated[Encoding | None, Group(Encoding)] = None,
        max_tokens: Annotated[int, Option("longest reply", ge=1)] = 512,
        max_input_tokens: Annotated[
            int, Option("a prompt and its image are no more; for the cap on cost", ge=0)
        ] = 4096,
        **paid: Any,
    ) -> None:
        check_known("value", yes_from, ["auto", *map(kind, self.modes)], "model.yes_from")
        if answers == "all" and yes_from == "logprobs":
            raise InputError(
                "model.yes_from: 'logprobs' needs one question per call, answers = 'one'"
            )
        asked = [mode for mode in self.modes if yes_from in ("auto", kind(mode))]
        self._elicitation = Elicitation(
            [mode for mode in asked if answers == "one" or mode not in ALTERNATIVES]
        )
        paid.setdefault("name", model)
        super().__init__(bound=Usage(max_input_tokens, max_tokens), answers=answers, **paid)
        self.template, self._wanted_encoding = template, encoding or Encoding()
        self.template_hash, self.takes_words = template.hash, template.takes_words

    @property
    def _encoding(self) -> Encoding:
        """The format in which images are sent: JPEG if the server refuses PNG."""
        refused = IMAGE in self._elicitation.without
        return replace(self._wanted_encoding, format="jpeg") if refused else self._wanted_encoding

    def protocol(self) -> JsonObject:
        return self.template.protocol(self._options)

    def statistics(self) -> JsonObject:
        settled = kind(self._elicitation.now) if self._elicitation.settled else None
        return {**super().statistics(), "yes_from": settled}

    def elicitation(self) -> dict[str, WayFacts]:
        facts = self._elicitation.facts()
        return {} if facts is None else {"": facts}

    def keep_to(self, modes: Mapping[str, WayFacts]) -> None:
        if "" in modes:
            self._elicitation.keep_to(modes[""])

    def decides_mode(self, prompt: Prompt) -> bool:
        return not (self._elicitation.settled or in_words(prompt))

    @abstractmethod
    def prepare(self, prompt: Prompt) -> Any:
        """Return the request of a prompt."""

    def _read(
        self, choice: JsonObject, prompt: Prompt, mode: str, usage: Usage | None, body: JsonObject
    ) -> Reply:
        """Return the reply in a ``choice`` of a chat completion; its ``body`` may name its maker.

        Raises:
            Trouble: It has no P(yes) in this mode, and there is another mode.
        """
        with reading(usage):
            reply = received(choice, prompt, mode, self.template, self._given.output)
        served = {n: body[n] for n in SERVED if isinstance(body.get(n), str) and body[n]}
        reply = replace(reply, usage=usage, served=served)
        if in_words(prompt) or reply.wanted is None:
            return reply
        if reply.wanted:
            self._elicitation.works(mode)
        elif self._elicitation.fall_back(mode, "missing"):
            now = kind(self._elicitation.now)
            detail = f"the server ignores what it was asked for; next: {now}"
            raise Trouble(_MISSING[kind(mode)], detail, billed=True, usage=usage, reply=reply)
        return reply

    async def _asked(self, prompt: Prompt, exchange: Callable[[str], Awaitable[Reply]]) -> Reply:
        """Return the result of ``exchange`` in the mode that works."""
        while True:
            mode = WORDS if in_words(prompt) else self._elicitation.now
            without = self._elicitation.without
            try:
                return await exchange(mode)
            except Trouble as trouble:
                if not self._refuses(mode, without, trouble):
                    raise
                if trouble.usage is not None or trouble.billed or self._refused is None:
                    trouble.then = "again"  # it is paid for, so it counts as an attempt
                    raise

    def _refuses(  # noqa: PLR0911 - a step each
        self, mode: str, without: Sequence[str], trouble: Trouble
    ) -> bool:
        """Return whether to repeat a refused request in another mode, or without more options.

        Options that the refusal names are left out first. A refusal that names none may be about
        the mode, so the next is taken. If all modes are refused, all options are left out.
        """
        modes = self._elicitation
        status = trouble.kind.removeprefix("http ")
        refusal = status.isdecimal() and int(status) in _STATUSES
        if not refusal or trouble.kind in _NOT_THE_REQUEST:
            return False
        if trouble.then == "stop" and trouble.kind not in _MAYBE:
            return False
        if len(modes.without) > len(without):
            return True  # another call learnt what is refused
        droppable = [IMAGE] if self._wanted_encoding.format == "png" else []
        names = [] if self._answered else [*self._options, *droppable]
        fixed = {*without, *self._kept, *(LIMITS if {*LIMITS} & {*without} else ())}
        names = [name for name in names if name not in fixed]
        named = [name for name in names if is_named(name, trouble.detail)]
        about_mode = mode != WORDS and is_named(kind(mode), trouble.detail)
        if trouble.kind == "http 500" and not (named or about_mode):
            return False
        if named and not about_mode:
            modes.leave_out(named)
            return True
        if mode != WORDS and modes.fall_back(mode, "refused"):
            return True
        names = [name for name in names if name != IMAGE]
        if names and not modes.settled:
            modes.leave_out(names)
            return True
        if not (self._answered or modes.settled):
            modes.without = ()  # nothing helped, so it is no option that is refused
            modes.restart()
        return False

    async def _prepared(self, request: Any, prompt: Prompt) -> Any:
        """Return the request, prepared again if its image is now sent in another format."""
        if IMAGE not in self._elicitation.without:
            return request
        return await asyncio.to_thread(self.prepare, prompt)

    def _allowed(self, request: JsonObject) -> JsonObject:
        """Return the request without the options that the server refuses."""
        without = self._elicitation.without
        allowed = {name: value for name, value in request.items() if name not in without}
        for name, other in (LIMITS, LIMITS[::-1]):
            if name in without and name in request:
                allowed[other] = request[name]
        return allowed


class Provider(Chat):
    """A chat model that is asked through a ``library`` of its provider.

    A model that answers single calls has `Endpoint` as a further base.

    Args:
        model: The provider's name of the model.
        base_url: Address of the server. Default: the provider's.
        key: Environment variable that has the key.
        options: Further options of requests.
        max_tokens: Tokens of the longest reply.
        max_reply_bytes: A longer reply is a failed attempt.
        keys: Further keys, which are removed from all texts that are shown or kept.
        **chat: Options of `Chat`.

    Raises:
        InputError: The key is not set, or the library, an extra of its name, is missing.
    """

    library: ClassVar[str]
    client: ClassVar[str]
    address: ClassVar[str]
    """Where requests go unless ``base_url`` says otherwise."""
    variable: ClassVar[str]
    """The default environment variable of the key."""
    always_keyed = False
    """True if servers at other addresses need the key, too."""
    limit = "max_tokens"
    """The field of the longest reply; servers at other addresses may know "max_tokens" alone."""
    bytes_option = "max_reply_bytes"
    """The option, as errors name it, that bounds the bytes of a reply."""
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """The fields of requests where no ``options`` are given."""

    def __init__(
        self,
        model: ModelName,
        *,
        base_url: Address = None,
        key: Annotated[str | None, Option(KEY)] = None,
        options: Annotated[Mapping[str, Any] | None, Option(OPTIONS)] = None,
        max_tokens: int = 512,
        max_reply_bytes: MaxReplyBytes = MAX_REPLY_BYTES,
        keys: Sequence[Key] = (),
        **chat: Any,
    ) -> None:
        if key is None and (base_url is None or self.always_keyed):
            key = self.variable
        secret = None if key is None else from_environment(key, "model.key")
        with needed(self.library, f"this kind of model needs {self.library}"):
            self._library = import_module(self.library)
        keys = [*filter(None, [secret]), *keys, *written_in(options, url=base_url or "")]
        host = http.host_of(base_url or self.address)
        super().__init__(model, host=host, max_tokens=max_tokens, keys=keys, **chat)
        limit = self.limit if base_url is None else "max_tokens"
        given = self.defaults if options is None else options
        self._options = {"model": model, limit: max_tokens, **given}
        self._apart = parted(self._options)[1]
        # retries and timeouts are the endpoint's, which counts and pays for them
        self._client = getattr(self._library, self.client)(
            base_url=self.root(base_url),
            api_key="none" if secret is None else secret.reveal(),
            max_retries=0,
            timeout=None,
            http_client=self._library.DefaultAsyncHttpxClient(
                **http.client_options(max_reply_bytes, self.bytes_option)
            ),
        )
        self._background.at_the_end(self._client.close)

    # -- what a provider defines -----------------------------------------------------------

    def root(self, base_url: str | None) -> str | None:
        """Return the address as the library takes it."""
        return base_url

    @abstractmethod
    def image_part(self, data: str) -> JsonObject:
        """Return an image in base64 as a part of a message."""

    @abstractmethod
    def asking(self, mode: str, request: JsonObject, prompt: Prompt) -> JsonObject:
        """Return the request, asking for P(yes) in a certain mode."""

    @abstractmethod
    def created(self, request: JsonObject) -> Awaitable[Any]:
        """Send a request by the library."""

    @abstractmethod
    def _used(self, body: Any) -> Usage | None:
        """Return the tokens that are counted in a body."""

    @abstractmethod
    def _reply(self, body: Any, prompt: Prompt, mode: str) -> Reply:
        """Return the reply in a body; raise Trouble if that is no answer."""

    @abstractmethod
    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        """Return the trouble with a status, apart from tokens."""

    # -- what follows from it --------------------------------------------------------------

    def prepare(self, prompt: Prompt) -> JsonObject:
        image = self._encoding.base64_of(prompt)
        content = [] if image is None else [self.image_part(image)]
        content.append({"type": "text", "text": self.template.render(prompt)})
        return {**self._options, "messages": [{"role": "user", "content": content}]}

    def check_key(self) -> None:
        """Raise ModelError for a wrong key. Gateways may refuse their list of models to a key that
        is good; a chat without messages, which costs nothing either, then decides."""
        empty = {**self.prepare(Prompt(None, ("key",), "key", "identity", 0)), "messages": []}
        models = self._client.models.with_raw_response
        trouble = None
        for asked in (
            lambda: self._body(models.list(**self._apart)),
            lambda: self._body(self.created({**empty, **self._apart})),
        ):
            trouble = self._background.submit(key_trouble(asked)).result()
            if trouble is None:
                return
        if trouble is not None:
            self._scrub(trouble)
            self._stop_if_hopeless(trouble, Bill())

    def _request(self, mode: str, request: JsonObject, prompt: Prompt) -> JsonObject:
        """Return the request as it is sent, in a mode, without refused options."""
        return self._allowed(request if mode == WORDS else self.asking(mode, request, prompt))

    def _failed(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        """Return the trouble with a status that is no success, and the tokens its body counts."""
        trouble = self._refusal(status, body, headers)
        trouble.usage = trouble.usage or self._used(http.read_or_none(body))
        trouble.text = text_of_bytes(body)
        return trouble

    async def _body(self, exchange: Awaitable[Any]) -> bytes:
        """Return the body of a reply; raise Trouble with the tokens that a failed one counts."""
        try:
            return (await exchange).http_response.content
        except self._library.APIStatusError as error:
            reply = error.response
            raise self._failed(reply.status_code, reply.content, reply.headers) from None
        except self._library.APIConnectionError as error:
            cause = error.__cause__
            raise cause if isinstance(cause, Trouble) else http.lost(cause or error) from None

    async def send(self, request: JsonObject, prompt: Prompt) -> Reply:
        """Make one attempt at a single call; see `Endpoint.send`."""

        async def exchange(mode: str) -> Reply:
            allowed = self._request(mode, await self._prepared(request, prompt), prompt)
            body = await self._body(self.created(allowed))
            with reading(raw=body):
                return self._reply(http.parsed(body), prompt, mode)

        return await self._asked(prompt, exchange)


async def key_trouble(asked: Callable[[], Awaitable[Any]]) -> Trouble | None:
    """Return the trouble with the key that a request used.

    None if there is none, or no reply about the key comes soon.
    """
    try:
        async with asyncio.timeout(_SOON):
            await asked()
    except Trouble as trouble:
        return trouble if trouble.kind in _WRONG_KEY else None
    except Exception:  # it is no answer about the key
        return None
    return None


def with_text(request: JsonObject, text: str) -> JsonObject:
    """Return the request with a text behind its last message."""
    *before, message = request["messages"]
    content = [*message["content"], {"type": "text", "text": text}]
    return {**request, "messages": [*before, {**message, "content": content}]}


def parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of a client library that go into each request, and those that go with each
    exchange."""
    apart = {name: options[name] for name in _APART if name in options}
    inner = {n: v for n, v in options.items() if n not in _APART and n != "extra_body"}
    return {**inner, **options.get("extra_body", {})}, apart
