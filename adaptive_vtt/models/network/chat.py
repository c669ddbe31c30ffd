"""What the chat models of all providers share: prompts in words, and how P(yes) is asked for."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal

from ...errors import InputError, check_known
from ...journal.facts import WayFacts
from ...types import CallMode, JsonObject, Prompt
from ...utils.importing import needed
from ...utils.options import Group, Option
from .attempts import Reply, Trouble, reading, text_of_bytes
from .elicitation import ALTERNATIVES, IMAGE, LIMITS, WORDS, Elicitation, is_named, kind
from .endpoint import Endpoint
from .http import (
    MAX_REPLY_BYTES,
    Encoding,
    MaxReplyBytes,
    client_options,
    host_of,
    lost_in,
    parsed,
    read_or_none,
)
from .keys import QUERY, Key, from_environment, texts_of_options, texts_of_query, written_out
from .paid import SERVED, Paid
from .prices import Bill, Usage
from .prompt_templates import TEMPLATES, Template
from .prompt_templates import template as named
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
"""Of refusals: servers know no better one for an option than 403, 404, 500 or 501."""
_WRONG_KEY = ("http 401", "http 403")
_SOON = 5.0
"""Seconds that a server has to say whether the key is good, before it is asked in earnest."""
_APART = ("extra_headers", "extra_query")

WORDING = (
    "words of the prompt: zero-shot, few-shot or chain-of-thought, the papers' own, endobench or "
    "medtest, or a text file such as my.txt with {question}, {options}, {words}, or with "
    "{questions} (default: zero-shot)"
)
ModelName = Annotated[str, Option("what the server calls the model")]
YesFrom = Literal["auto", "logprobs", "structured", "stated", "words"]


class Chat(Paid, ABC):
    """A chat model; ``paid`` are the options of `Paid`.

    ``yes_from``: which of the ``ways`` to P(yes) is taken, "auto" for the first that works. No
    provider enforces ``max_input_tokens``. Raises InputError for a way that the provider lacks.
    """

    may_judge = True
    ways: ClassVar[Sequence[str]]
    """How P(yes) may be asked for, the best first; see `elicitation.py`."""
    _options: dict[str, Any]
    """What goes into every request as it is."""
    _kept: ClassVar[tuple[str, ...]] = ("model", "extra_headers", "extra_query", "extra_body")
    """Options without which nothing could be asked."""

    def __init__(
        self,
        model: ModelName,
        *,
        answers: Annotated[
            CallMode,
            Option("questions that one call answers, all in one list or one", name="per_call"),
        ] = "one",
        yes_from: Annotated[
            YesFrom,
            Option(
                "where P(yes) comes from: log-probabilities, a number in an enforced form, one "
                "that is stated, or Yes and No (auto: the first of the provider's that works)"
            ),
        ] = "auto",
        template: Annotated[Template, Option(WORDING, reads=named, type=str)] = TEMPLATES[
            "zero-shot"
        ],
        encoding: Annotated[Encoding | None, Group(Encoding)] = None,
        max_tokens: Annotated[int, Option("longest reply", ge=1)] = 512,
        max_input_tokens: Annotated[
            int, Option("a prompt and its image are no more; for the cap on cost", ge=0)
        ] = 4096,
        **paid: Any,
    ) -> None:
        check_known("value", yes_from, ["auto", *map(kind, self.ways)], "model.yes_from")
        if answers == "all" and yes_from == "logprobs":
            raise InputError(
                "model.yes_from: 'logprobs' needs one question per call, answers = 'one'"
            )
        asked = [way for way in self.ways if yes_from in ("auto", kind(way))]
        self._elicitation = Elicitation(
            [way for way in asked if answers == "one" or way not in ALTERNATIVES]
        )
        paid.setdefault("name", model)
        super().__init__(bound=Usage(max_input_tokens, max_tokens), answers=answers, **paid)
        self.template, self._wanted_encoding = template, encoding or Encoding()

    @property
    def _encoding(self) -> Encoding:
        """How images are sent: as JPEG where the server refuses PNG."""
        refused = IMAGE in self._elicitation.without
        return replace(self._wanted_encoding, format="jpeg") if refused else self._wanted_encoding

    @property
    def template_hash(self) -> str:  # type: ignore[override]  # follows from the template
        return self.template.hash

    @property
    def takes_words(self) -> bool:  # type: ignore[override]  # follows from the template
        return self.template.takes_words

    def protocol(self) -> JsonObject:
        return self.template.protocol(self._options)

    def statistics(self) -> JsonObject:
        settled = kind(self._elicitation.now) if self._elicitation.settled else None
        return {**super().statistics(), "yes_from": settled}

    def elicitation(self) -> dict[str, WayFacts]:
        facts = self._elicitation.facts()
        return {} if facts is None else {"": facts}

    def keep_to(self, ways: Mapping[str, WayFacts]) -> None:
        if "" in ways:
            self._elicitation.keep_to(ways[""])

    def finds_out(self, prompt: Prompt) -> bool:
        """Whether this call would find out in which way to ask."""
        return not (self._elicitation.settled or in_words(prompt))

    @abstractmethod
    def prepare(self, prompt: Prompt) -> Any:
        """The request of a prompt."""

    # -- what came back --------------------------------------------------------------------

    def _read(
        self,
        choice: Mapping[str, Any],
        prompt: Prompt,
        way: str,
        usage: Usage | None,
        body: Mapping[str, Any],
    ) -> Reply:
        """The reply in a ``choice`` of a chat completion, whose ``body`` may name who made it;
        raises Trouble where it lacks what was asked for and there is another way."""
        with reading(usage):
            reply = received(choice, prompt, way, self.template, self._given.output)
        served = {n: body[n] for n in SERVED if isinstance(body.get(n), str) and body[n]}
        reply = replace(reply, usage=usage, served=served)
        if in_words(prompt) or reply.wanted is None:
            return reply
        if reply.wanted:
            self._elicitation.works(way)
        elif self._elicitation.gives_way(way, "missing"):
            now = kind(self._elicitation.now)
            detail = f"the server passes over what it was asked for; next: {now}"
            raise Trouble(_MISSING[kind(way)], detail, billed=True, usage=usage, reply=reply)
        return reply

    async def _asked(self, prompt: Prompt, exchange: Callable[[str], Awaitable[Reply]]) -> Reply:
        """What ``exchange`` brings in the way that works: in the next one where one is refused."""
        while True:
            way = WORDS if in_words(prompt) else self._elicitation.now
            without = self._elicitation.without
            try:
                return await exchange(way)
            except Trouble as trouble:
                if not self._refuses(way, without, trouble):
                    raise
                if trouble.usage is not None or trouble.billed or self._refused is None:
                    trouble.then = "again"  # it is paid for, so it counts as an attempt
                    raise

    def _refuses(  # noqa: PLR0911 - a step each
        self, way: str, without: Sequence[str], trouble: Trouble
    ) -> bool:
        """Whether a request is to be sent again in another way, or without an option, as this one,
        sent ``without`` some, was refused.

        What the refusal names is left out first. One that names nothing may be about the way to
        P(yes), so the next is taken; where all are refused, about any option, so all are left out.
        """
        ways = self._elicitation
        status = trouble.kind.removeprefix("http ")
        refusal = status.isdecimal() and int(status) in _STATUSES
        if not refusal or trouble.kind in _NOT_THE_REQUEST:
            return False
        if trouble.then == "stop" and trouble.kind not in _MAYBE:
            return False
        if len(ways.without) > len(without):
            return True  # another call found out what is refused
        droppable = [IMAGE] if self._wanted_encoding.format == "png" else []
        names = [] if self._answered else [*self._options, *droppable]
        open_ = [name for name in names if name not in without and name not in self._kept]
        open_ = [n for n in open_ if n not in LIMITS or not set(LIMITS) & set(without)]
        named = [name for name in open_ if is_named(name, trouble.detail)]
        about_way = way != WORDS and is_named(kind(way), trouble.detail)
        if trouble.kind == "http 500" and not (named or about_way):
            return False
        if named and not about_way:
            ways.leaves_out(named)
            return True
        if way != WORDS and ways.gives_way(way, "refused"):
            return True
        open_ = [name for name in open_ if name != IMAGE]
        if open_ and not ways.settled:
            ways.leaves_out(open_)
            return True
        if not (self._answered or ways.settled):
            ways.without = ()  # nothing helped, so it is no option that is refused
            ways.begins_again()
        return False

    async def _prepared(self, request: Any, prompt: Prompt) -> Any:
        """The request, prepared again where its image is to be sent otherwise than before."""
        if IMAGE not in self._elicitation.without:
            return request
        return await asyncio.to_thread(self.prepare, prompt)

    def _allowed(self, request: JsonObject) -> JsonObject:
        """The request without the options that the server refuses."""
        without = self._elicitation.without
        allowed = {name: value for name, value in request.items() if name not in without}
        for name, other in (LIMITS, LIMITS[::-1]):
            if name in without and name in request:
                allowed[other] = request[name]
        return allowed


class Provider(Chat):
    """A chat model through a ``library`` of its provider's, whose ``client`` is a class of it.

    ``wire``: what bounds the bodies that come back, from `client_options`. Raises InputError for a
    key that is not set, and where the library is missing, which is an extra of its name.
    """

    library: ClassVar[str]
    client: ClassVar[str]
    address: ClassVar[str]
    """Where requests go unless ``base_url`` says otherwise."""

    def __init__(
        self,
        model: ModelName,
        *,
        base_url: Annotated[
            str | None,
            Option(
                "address, ending in /v1 where it speaks OpenAI's protocol (default: the "
                f"provider's); {QUERY}",
                name="url",
            ),
        ] = None,
        key: Annotated[
            str | None,
            Option(
                "the environment variable that holds the key (default: ANTHROPIC_API_KEY, or "
                "OPENAI_API_KEY where no url is given)"
            ),
        ] = None,
        options: Annotated[
            Mapping[str, Any] | None,
            Option(
                "goes into the request (temperature = 0); ${NAME} in a text is read from the "
                "environment; extra_headers and extra_query as headers and the url's query"
            ),
        ] = None,
        max_tokens: int = 512,
        wire: Mapping[str, Any] | None = None,
        keys: Sequence[Key] = (),
        **chat: Any,
    ) -> None:
        key = self.own_key(base_url) if key is None else key
        secret = None if key is None else from_environment(key, "model.key")
        with needed(self.library, f"this kind of model needs {self.library}"):
            self._library = import_module(self.library)
        sent = written_out([*texts_of_options(options or {}), *texts_of_query(base_url or "")])
        super().__init__(
            model,
            host=host_of(base_url or self.address),
            max_tokens=max_tokens,
            keys=[*filter(None, [secret]), *keys, *sent],
            **chat,
        )
        self._options = self.requested(model, base_url, max_tokens, options)
        self._apart = parted(self._options)[1]
        # retries and timeouts are the endpoint's, which counts and pays for them
        self._client = getattr(self._library, self.client)(
            base_url=self.root(base_url),
            api_key="none" if secret is None else secret.reveal(),
            max_retries=0,
            timeout=None,
            http_client=self._library.DefaultAsyncHttpxClient(
                **(wire or client_options(MAX_REPLY_BYTES))
            ),
        )
        self._background.at_the_end(self._client.close)

    # -- what a provider says --------------------------------------------------------------

    @abstractmethod
    def own_key(self, base_url: str | None) -> str | None:
        """The environment variable of the key where none is named; None: no key is needed."""

    def root(self, base_url: str | None) -> str | None:
        """The address as the library takes it."""
        return base_url

    @abstractmethod
    def requested(
        self, model: str, base_url: str | None, max_tokens: int, options: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """What goes into every request beside messages."""

    @abstractmethod
    def image_part(self, data: str) -> JsonObject:
        """An image in base64 as a part of a message."""

    @abstractmethod
    def asking(self, way: str, request: JsonObject, prompt: Prompt) -> JsonObject:
        """The request, asking for P(yes) in a certain way."""

    @abstractmethod
    def created(self, request: JsonObject) -> Awaitable[Any]:
        """Send a request by the library."""

    @abstractmethod
    def _used(self, body: Any) -> Usage | None:
        """The tokens that are counted in a body."""

    @abstractmethod
    def _reply(self, body: Any, prompt: Prompt, way: str) -> Reply:
        """What a body says; raises Trouble where that is no answer."""

    @abstractmethod
    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        """The trouble with a status, apart from tokens."""

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

    def _request(self, way: str, request: JsonObject, prompt: Prompt) -> JsonObject:
        """The request as it is sent, in a way to P(yes), without refused options."""
        return self._allowed(request if way == WORDS else self.asking(way, request, prompt))

    def _failed(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        """The trouble with a status that is no success, and the tokens that its body counts."""
        trouble = self._refusal(status, body, headers)
        trouble.usage = trouble.usage or self._used(read_or_none(body))
        trouble.text = text_of_bytes(body)
        return trouble

    async def _body(self, exchange: Awaitable[Any]) -> bytes:
        """What an exchange brings; raises Trouble with the tokens that a failed one counts."""
        try:
            body: bytes = (await exchange).http_response.content
            return body
        except self._library.APIStatusError as error:
            reply = error.response
            raise self._failed(reply.status_code, reply.content, reply.headers) from None
        except self._library.APIConnectionError as error:
            raise lost_in(error) from None


class ChatEndpoint(Provider, Endpoint):
    """A chat model, one call each; first among a provider's bases.

    ``max_reply_bytes``: a longer reply is a failed attempt.
    """

    def __init__(
        self, model: str, *, max_reply_bytes: MaxReplyBytes = MAX_REPLY_BYTES, **options: Any
    ) -> None:
        super().__init__(model, wire=client_options(max_reply_bytes), **options)

    async def send(self, request: JsonObject, prompt: Prompt) -> Reply:
        async def exchange(way: str) -> Reply:
            allowed = self._request(way, await self._prepared(request, prompt), prompt)
            body = await self._body(self.created(allowed))
            with reading(raw=body):
                return self._reply(parsed(body), prompt, way)

        return await self._asked(prompt, exchange)


async def key_trouble(asked: Callable[[], Awaitable[Any]]) -> Trouble | None:
    """Return what is wrong with the key with which a server was asked; None where nothing is, or
    the server says nothing about it soon."""
    try:
        async with asyncio.timeout(_SOON):
            await asked()
    except Trouble as trouble:
        return trouble if trouble.kind in _WRONG_KEY else None
    except Exception:  # it is no answer about the key
        return None
    return None


def with_text(request: JsonObject, text: str) -> JsonObject:
    """The request with a text behind its last message."""
    *before, message = request["messages"]
    content = [*message["content"], {"type": "text", "text": text}]
    return {**request, "messages": [*before, {**message, "content": content}]}


def parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of a client library: what belongs into each request, and what is sent with each
    exchange."""
    apart = {name: options[name] for name in _APART if name in options}
    inner = {n: v for n, v in options.items() if n not in _APART and n != "extra_body"}
    return {**inner, **options.get("extra_body", {})}, apart
