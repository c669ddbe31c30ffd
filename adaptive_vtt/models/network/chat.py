"""What the chat models of all providers share: the words of prompts, and the way to P(yes)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from ...journal.facts import WayFacts
from ...types import CallMode, JsonObject, Prompt, Unanswered, Value
from ...utils.importing import needed
from ...utils.options import Group, Option
from ..replies import in_words
from ..yes_no import declines
from .attempts import Reply, Trouble
from .elicitation import IMAGE, LIMITS, Elicitation, is_named, kind
from .endpoint import Endpoint
from .http import MAX_REPLY_BYTES, Encoding, MaxReplyBytes, client_options, lost_in, parsed
from .keys import Key, from_environment, texts_of_options, texts_of_query, written_out
from .paid import Paid
from .prices import Bill, Usage
from .prompt_templates import TEMPLATES, Template
from .prompt_templates import template as named

WORDS = "words"
"""The way in which questions in words are asked, and P(yes) where nothing else works."""
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


class Received(NamedTuple):
    """What a reply says, and whether ``wanted``, what was asked for, is in it; None: the reply
    cannot tell, since it was refused, say, or cut. ``text``: its words as they came."""

    said: tuple[Value, ...] | Unanswered
    wanted: bool | None
    text: str


WORDING = (
    "words of the prompt: zero-shot, few-shot or chain-of-thought, the papers' own, endobench or "
    "medtest, or a text file such as my.txt with {question}, {options}, {words}, or with "
    "{questions} (default: zero-shot)"
)
ModelName = Annotated[str, Option("what the server calls the model")]
PerCall = Annotated[
    CallMode,
    Option("questions that one call answers, all in one list or one", name="per_call"),
]
MaxTokens = Annotated[int, Option("longest reply", ge=1)]


class Chat(Paid):
    """A chat model; ``paid`` are the options of `Paid`.

    ``elicitation``: how P(yes) is got out of it. No provider enforces ``max_input_tokens``.
    """

    _options: dict[str, Any]
    """What goes into every request as it is."""
    _kept: ClassVar[tuple[str, ...]] = ("model", "extra_headers", "extra_query", "extra_body")
    """Options without which nothing could be asked."""

    def __init__(
        self,
        model: str,
        *,
        elicitation: Elicitation,
        template: Annotated[Template, Option(WORDING, reads=named, type=str)] = TEMPLATES[
            "zero-shot"
        ],
        encoding: Annotated[Encoding | None, Group(Encoding)] = None,
        max_tokens: MaxTokens = 512,
        max_input_tokens: Annotated[
            int, Option("a prompt and its image are no more; for the cap on cost", ge=0)
        ] = 4096,
        **paid: Any,
    ) -> None:
        paid.setdefault("name", model)
        super().__init__(bound=Usage(max_input_tokens, max_tokens), **paid)
        self.template, self._wanted_encoding = template, encoding or Encoding()
        self._elicitation = elicitation
        self.hard_answers = elicitation.now == WORDS

    @property
    def _encoding(self) -> Encoding:
        """How images are sent: as JPEG where the server refuses PNG."""
        refused = IMAGE in self._elicitation.without
        return replace(self._wanted_encoding, format="jpeg") if refused else self._wanted_encoding

    @property
    def longest(self) -> int:
        """Tokens of the longest reply that is asked for."""
        return self._given.output

    @property
    def template_hash(self) -> str:  # type: ignore[override]  # follows from the template
        return self.template.hash

    @property
    def takes_words(self) -> bool:  # type: ignore[override]  # follows from the template
        return self.template.takes_words

    def protocol(self) -> JsonObject:
        return self.template.protocol(self._options)

    def statistics(self) -> JsonObject:
        found = kind(self._elicitation.now) if self._elicitation.settled else None
        return {**super().statistics(), "yes_from": found}

    def elicitation(self) -> dict[str, WayFacts]:
        found = self._elicitation.facts()
        return {} if found is None else {"": found}

    def keep_to(self, ways: Mapping[str, WayFacts]) -> None:
        if "" in ways:
            self._elicitation.keep_to(ways[""])

    def worded(self, way: str, request: JsonObject, prompt: Prompt) -> JsonObject:
        """The request, asking for P(yes) in a certain way."""
        raise TypeError(f"{type(self).__name__} defines no worded")

    def finds_out(self, prompt: Prompt) -> bool:
        """Whether this call would find out in which way to ask."""
        return not (self._elicitation.settled or in_words(prompt))

    def _way(self, prompt: Prompt) -> str:
        return WORDS if in_words(prompt) else self._elicitation.now

    def _replied(self, received: Received, prompt: Prompt, way: str, usage: Usage | None) -> Reply:
        """The reply; raises Trouble where it lacks what was asked for and there is another way."""
        reply = Reply(received.said, usage, received.text)
        if in_words(prompt) or received.wanted is None:
            return reply
        if received.wanted:
            self._elicitation.works(way)
        elif self._elicitation.gives_way(way, "missing"):
            now = kind(self._elicitation.now)
            detail = f"the server passes over what it was asked for; next: {now}"
            raise Trouble(_MISSING[kind(way)], detail, billed=True, usage=usage, reply=reply)
        return reply

    async def _asked(self, prompt: Prompt, exchange: Callable[[str], Awaitable[Reply]]) -> Reply:
        """What ``exchange`` brings in the way that works: in the next one where one is refused."""
        while True:
            way, without = self._way(prompt), self._elicitation.without
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
        if not _may_be_about_options(trouble):
            return False
        if len(ways.without) > len(without):
            return True  # another call found out what is refused
        names = [] if self._answered else [*self._options, *self._droppable]
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

    @property
    def _droppable(self) -> list[str]:
        """What is left out though it is no option of a request."""
        return [IMAGE] if self._wanted_encoding.format == "png" else []

    async def _prepared(self, request: Any, prompt: Prompt) -> Any:
        """The request, prepared again where its image is to be sent otherwise than before."""
        if IMAGE not in self._elicitation.without:
            return request
        return await asyncio.to_thread(self.prepare, prompt)

    def prepare(self, prompt: Prompt) -> Any:
        raise TypeError(f"{type(self).__name__} defines no prepare")

    def _allowed(self, request: JsonObject) -> JsonObject:
        """The request without the options that the server refuses."""
        without = self._elicitation.without
        allowed = {name: value for name, value in request.items() if name not in without}
        for name, other in (LIMITS, LIMITS[::-1]):
            if name in without and name in request:
                allowed[other] = request[name]
        return allowed


def _may_be_about_options(trouble: Trouble) -> bool:
    """Whether a status may refuse an option, not the caller or the number of calls."""
    status = trouble.kind.removeprefix("http ")
    if not status.isdecimal() or int(status) not in _STATUSES:
        return False
    if trouble.kind in _NOT_THE_REQUEST:
        return False
    return trouble.then != "stop" or trouble.kind in _MAYBE


class Provider(Chat):
    """A chat model through a ``library`` of its provider's, whose ``client`` is a class of it.

    ``key``: the environment variable with the key, None: none is needed. ``wire``: what bounds the
    bodies that come back, from `client_options`. Raises InputError for a key that is not set, and
    where the library is missing, which is an extra of its name.
    """

    library: ClassVar[str]
    client: ClassVar[str]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        key: str | None,
        options: Mapping[str, Any] | None,
        wire: Mapping[str, Any] | None = None,
        keys: Sequence[Key] = (),
        **chat: Any,
    ) -> None:
        secret = None if key is None else from_environment(key, "model.key")
        with needed(self.library, f"this kind of model needs {self.library}"):
            self._library = import_module(self.library)
        found = written_out([*texts_of_options(options or {}), *texts_of_query(base_url or "")])
        super().__init__(model, keys=[*filter(None, [secret]), *keys, *found], **chat)
        # retries and timeouts are the endpoint's, which counts and pays for them
        self._client = getattr(self._library, self.client)(
            base_url=base_url,
            api_key="none" if secret is None else secret.reveal(),
            max_retries=0,
            timeout=None,
            http_client=self._library.DefaultAsyncHttpxClient(
                **(wire or client_options(MAX_REPLY_BYTES))
            ),
        )
        self._background.at_the_end(self._client.close)

    async def _body(self, exchange: Awaitable[Any]) -> bytes:
        """What an exchange brings; raises Trouble with the tokens that a failed one counts."""
        try:
            found: bytes = (await exchange).http_response.content
            return found
        except self._library.APIStatusError as error:
            reply = error.response
            raise self._refusal(reply.status_code, reply.content, reply.headers) from None
        except self._library.APIConnectionError as error:
            raise lost_in(error) from None

    def _reply(self, said: Any, prompt: Prompt, way: str) -> Reply:
        """What a body says; raises Trouble where that is no answer."""
        raise TypeError(f"{type(self).__name__} defines no _reply")

    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        """The trouble with a status that is no success."""
        raise TypeError(f"{type(self).__name__} defines no _refusal")


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
            allowed = self._allowed(self.worded(way, await self._prepared(request, prompt), prompt))
            return self._reply(parsed(await self._body(self.created(allowed))), prompt, way)

        return await self._asked(prompt, exchange)

    def created(self, request: JsonObject) -> Awaitable[Any]:
        raise TypeError(f"{type(self).__name__} defines no created")

    def check_key(self) -> None:
        trouble = self._background.submit(self._key_trouble()).result()
        if trouble is not None:
            trouble.detail = self._shown(trouble.detail)
            self._stop_if_hopeless(trouble, Bill())

    async def _key_trouble(self) -> Trouble | None:
        """What is wrong with the key. Gateways may refuse their list of models to a key that is
        good; a chat without messages, which costs nothing either, then decides."""
        prompt = Prompt(None, ("key",), "key", "identity", 0)
        apart = parted(self._options)[1]
        trouble = None
        for asked in (
            lambda: self._client.models.with_raw_response.list(**apart),
            lambda: self.created({**self.prepare(prompt), "messages": []}),
        ):
            try:
                async with asyncio.timeout(_SOON):
                    await self._body(asked())
            except Trouble as error:
                trouble = error
            except Exception:  # it is no answer about the key
                return None
            else:
                return None
            if trouble.kind not in _WRONG_KEY:
                return None
        return trouble


def lacks(text: str, *, cut: bool) -> Literal[False] | None:
    """`Heard.wanted` of a reply without what was asked for. One that is ``cut``, empty or a refusal
    tells nothing about what the server can do."""
    return None if cut or not text.strip() or declines(text) else False


def parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of a client library: what belongs into each request, and what is sent with each
    exchange."""
    apart = {name: options[name] for name in _APART if name in options}
    inner = {n: v for n, v in options.items() if n not in _APART and n != "extra_body"}
    return {**inner, **options.get("extra_body", {})}, apart
