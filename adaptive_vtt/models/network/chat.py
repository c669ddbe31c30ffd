"""Chat models of all providers: requests in words, and the mode in which P(yes) is asked for.

`Chat` chooses the elicitation mode, and drops options that a server refuses. `Provider` sends
requests through a provider's client library; its subclasses define the fields of requests and
replies (`openai.py`, `anthropic.py`, `batches.py`).
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
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
from .keys import FILLED, QUERY, Key, from_environment, is_planning, written_in
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
"""Mode -> kind of trouble with a reply that lacks what this mode asks for."""
_NOT_THE_REQUEST = ("http 401", "http 402", "http 407", "http 408", "http 409", "http 429")
"""Refusals that do not depend on the options of the request."""
_MAYBE = ("http 403", "http 404")
"""Refusals that may concern an option: one repetition without it shows whether they do."""
_STATUSES = range(400, 502)
"""Statuses of refusals; some servers refuse an option by 403, 404, 500 or 501."""
_WRONG_KEY = ("http 401", "http 403")
_SOON = 5.0
"""Seconds that the check of the key waits for the server, before calls are sent anyway."""
_APART = ("extra_headers", "extra_query")
"""Options that are no fields of a request's body."""

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
        answers: Concepts that one call answers: "all" or "one".
        yes_from: The mode of P(yes), or "auto" for the first that works.
        template: The template of prompts.
        encoding: Format of images. Default None: PNG.
        max_tokens: Maximum length of a reply in tokens.
        max_input_tokens: Maximum length in tokens of a prompt with its image, for the cap on cost.
            No provider enforces it.
        **paid: Options of `Paid`.

    Raises:
        InputError: The provider lacks the mode, or the mode needs one question per call.
    """

    may_judge = True
    modes: ClassVar[Sequence[str]]
    """Modes of P(yes) that the provider offers, the best first; see `elicitation.py`."""
    _options: dict[str, Any]
    """Fields of every request."""
    _kept: ClassVar[tuple[str, ...]] = ("model", "extra_headers", "extra_query", "extra_body")
    """Options that every request needs, so that they are never left out."""

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
        modes = [mode for mode in self.modes if yes_from in ("auto", kind(mode))]
        self._elicitation = Elicitation(
            [mode for mode in modes if answers == "one" or mode not in ALTERNATIVES]
        )
        paid.setdefault("name", model)
        super().__init__(bound=Usage(max_input_tokens, max_tokens), answers=answers, **paid)
        self.template, self._wanted_encoding = template, encoding or Encoding()
        self.template_hash, self.takes_words = template.hash, template.takes_words

    @property
    def _encoding(self) -> Encoding:
        """The format in which images are sent: that of the option, or JPEG if PNG is refused."""
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
        """Return the reply in a choice of a chat completion.

        Args:
            choice: The choice in OpenAI's protocol: message, finish_reason, logprobs.
            prompt: The prompt.
            mode: The mode in which P(yes) was asked for.
            usage: The tokens that the server counted.
            body: The whole reply, which may name the model.

        Raises:
            Trouble: It has no P(yes) in this mode, and there is another mode to try.
        """
        with reading(usage):
            reply = received(choice, prompt, mode, self.template, self._initial_bound.output)
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
        """Return the reply to a prompt, which is repeated while the server refuses its mode or an
        option.

        Args:
            prompt: The prompt.
            exchange: Function from the mode to the reply.

        Raises:
            Trouble: The attempt failed, or has to be paid for and is repeated as a further attempt.
        """
        while True:
            mode = WORDS if in_words(prompt) else self._elicitation.now
            without = self._elicitation.without
            try:
                return await exchange(mode)
            except Trouble as trouble:
                if not self._refuses(mode, without, trouble):
                    raise
                if trouble.usage is not None or trouble.billed or self._usage_of_refusals is None:
                    trouble.then = "again"  # refused for money: the repetition is a new attempt
                    raise

    def _refuses(  # noqa: PLR0911 - a step each
        self, mode: str, without: Sequence[str], trouble: Trouble
    ) -> bool:
        """Return whether to repeat a refused request, and change the mode or the options for it.

        These are tried in turn: leaving out the options that the refusal names, the next mode,
        and leaving out all options.

        Args:
            mode: The mode of the request.
            without: The options that were left out of it.
            trouble: The refusal.
        """
        modes = self._elicitation
        status = trouble.kind.removeprefix("http ")
        is_refusal = status.isdecimal() and int(status) in _STATUSES
        if not is_refusal or trouble.kind in _NOT_THE_REQUEST:
            return False
        if trouble.then == "stop" and trouble.kind not in _MAYBE:
            return False
        if len(modes.without) > len(without):
            return True  # meanwhile, another call left out more options
        # a server that has answered a request accepts the options that it had
        png = [IMAGE] if self._wanted_encoding.format == "png" else []
        options = [] if self._answered else [*self._options, *png]
        # of two names for the limit on the reply's length, at most one is left out
        fixed = {*without, *self._kept, *(LIMITS if {*LIMITS} & {*without} else ())}
        options = [name for name in options if name not in fixed]
        named = [name for name in options if is_named(name, trouble.detail)]
        names_mode = mode != WORDS and is_named(kind(mode), trouble.detail)
        if trouble.kind == "http 500" and not (named or names_mode):
            return False
        if named and not names_mode:
            modes.leave_out(named)
            return True
        if mode != WORDS and modes.fall_back(mode, "refused"):
            return True
        options = [name for name in options if name != IMAGE]
        if options and not modes.settled:
            modes.leave_out(options)
            return True
        if not (self._answered or modes.settled):
            modes.without = ()  # the server refuses the request without options, too
            modes.restart()
        return False

    async def _prepared(self, request: Any, prompt: Prompt) -> Any:
        """Return the request, prepared again if PNG was refused since."""
        if IMAGE not in self._elicitation.without:
            return request
        return await asyncio.to_thread(self.prepare, prompt)

    def _allowed(self, request: JsonObject) -> JsonObject:
        """Return the request without the options that the server refuses; the limit on the reply's
        length takes its other name."""
        without = self._elicitation.without
        allowed = {name: value for name, value in request.items() if name not in without}
        for name, other in (LIMITS, LIMITS[::-1]):
            if name in without and name in request:
                allowed[other] = request[name]
        return allowed


class Provider(Chat):
    """A chat model that is asked through its provider's client library.

    A model that answers single calls has `Endpoint` as a further base.

    Args:
        model: The provider's name of the model.
        base_url: Address of the server. Default None: the provider's.
        key: Environment variable that holds the key. Default None: the provider's usual one.
        options: Further fields of requests. Default None: those of ``defaults``.
        max_tokens: Maximum length of a reply in tokens.
        max_reply_bytes: Maximum length of a reply in bytes; a longer one is a failed attempt.
        keys: Further secrets, which are removed from all texts that are shown or stored.
        **chat: Options of `Chat`.

    Raises:
        InputError: The key is not set, or the library, which the extra of its name installs, is
            missing.
    """

    library: ClassVar[str]
    """Name of the client library, and of the extra that installs it."""
    client: ClassVar[str]
    """Name of the library's class of clients."""
    address: ClassVar[str]
    """Address of the provider's server."""
    variable: ClassVar[str]
    """Default environment variable of the key."""
    always_keyed = False
    """True if servers at other addresses need the key, too."""
    limit = "max_tokens"
    """Field of the maximum length of a reply; other servers may know only "max_tokens"."""
    bytes_option = "max_reply_bytes"
    """Name, in errors, of the option that bounds the bytes of a reply."""
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Default fields of requests, for ``options``."""

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
        self.uninstalled = find_spec(self.library) is None
        if not (self.uninstalled and is_planning()):
            with needed(self.library, f"this kind of model needs {self.library}"):
                self._library = import_module(self.library)
        keys = [*filter(None, [secret]), *keys, *written_in(options, url=base_url or "")]
        host = http.host_of(base_url or self.address)
        super().__init__(model, host=host, max_tokens=max_tokens, keys=keys, **chat)
        limit = self.limit if base_url is None else "max_tokens"
        options = self.defaults if options is None else options
        self._options = {"model": model, limit: max_tokens, **options}
        self._apart = parted(self._options)[1]
        if self.uninstalled:
            return  # a plan calls no model
        # the endpoint itself repeats and times out attempts, as it books their cost
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
        """Return the server's address in the form that the library expects."""
        return base_url

    @abstractmethod
    def image_part(self, data: str) -> JsonObject:
        """Return an image in base64 as a part of a message."""

    @abstractmethod
    def asking(self, mode: str, request: JsonObject, prompt: Prompt) -> JsonObject:
        """Return a request with the fields that ask for P(yes) in a certain mode."""

    @abstractmethod
    def created(self, request: JsonObject) -> Awaitable[Any]:
        """Send a request through the library."""

    @abstractmethod
    def _used(self, body: Any) -> Usage | None:
        """Return the tokens that the JSON of a reply counts, None if it counts none."""

    @abstractmethod
    def _reply(self, body: Any, prompt: Prompt, mode: str) -> Reply:
        """Return the reply in the JSON of a body; raise Trouble if it has none."""

    @abstractmethod
    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        """Return the trouble with a failed request; its tokens need not be counted."""

    # -- requests and replies --------------------------------------------------------------

    def prepare(self, prompt: Prompt) -> JsonObject:
        image = self._encoding.base64_of(prompt)
        content = [] if image is None else [self.image_part(image)]
        content.append({"type": "text", "text": self.template.render(prompt)})
        return {**self._options, "messages": [{"role": "user", "content": content}]}

    def check_key(self) -> None:
        """Raise ModelError for a wrong key.

        The provider's list of models is requested. As gateways may refuse that list to a valid key,
        a chat without messages, which costs nothing either, confirms a refusal.
        """
        empty = {**self.prepare(Prompt(None, ("key",), "key", "identity", 0)), "messages": []}
        models = self._client.models.with_raw_response
        trouble = None
        for request in (
            lambda: self._body(models.list(**self._apart)),
            lambda: self._body(self.created({**empty, **self._apart})),
        ):
            trouble = self._background.submit(key_trouble(request)).result()
            if trouble is None:
                return
        if trouble is not None:
            self._scrub(trouble)
            self._stop_if_hopeless(trouble, Bill())

    def _request(self, mode: str, request: JsonObject, prompt: Prompt) -> JsonObject:
        """Return the request as it is sent: with the fields of a mode, without refused options."""
        return self._allowed(request if mode == WORDS else self.asking(mode, request, prompt))

    def _failed(self, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
        """Return the trouble with a failed request, with the tokens that its body counts."""
        trouble = self._refusal(status, body, headers)
        trouble.usage = trouble.usage or self._used(http.read_or_none(body))
        trouble.text = text_of_bytes(body)
        return trouble

    async def _body(self, exchange: Awaitable[Any]) -> bytes:
        """Return the body of a reply; raise Trouble if the request failed."""
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


async def key_trouble(request: Callable[[], Awaitable[Any]]) -> Trouble | None:
    """Send a request and return its trouble if the key was refused.

    The result is None if the key was accepted, or if no decision about it comes soon.
    """
    try:
        async with asyncio.timeout(_SOON):
            await request()
    except Trouble as trouble:
        return trouble if trouble.kind in _WRONG_KEY else None
    except Exception:  # any other failure says nothing about the key
        return None
    return None


def with_text(request: JsonObject, text: str) -> JsonObject:
    """Return a request with a text appended to its last message."""
    *before, message = request["messages"]
    content = [*message["content"], {"type": "text", "text": text}]
    return {**request, "messages": [*before, {**message, "content": content}]}


def parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options of a client library into fields of a request's body, and headers and query."""
    apart = {name: options[name] for name in _APART if name in options}
    fields = {n: v for n, v in options.items() if n not in _APART and n != "extra_body"}
    return {**fields, **options.get("extra_body", {})}, apart
