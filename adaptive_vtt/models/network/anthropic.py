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
from datetime import datetime
from typing import Annotated, Any, Literal

from ...types import JsonObject, Prompt, Unanswered
from ...utils.options import Option
from ..replies import REFUSED, in_words, names_in, schema_of, stated, stated_in, words_in
from .attempts import Reply, Trouble, of_status, reading
from .batches import GONE, NO_LIST, UNLISTED, ChatBatch, Job, checked_id, known
from .chat import WORDS, ChatEndpoint, MaxTokens, ModelName, PerCall, Provider, Received, lacks
from .elicitation import Elicitation
from .http import fields_of, host_of, read_or_none, words_of
from .keys import QUERY
from .prices import Usage, whole
from .prompt_templates import Template

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
            return self._replied(_received(message, prompt, way, self.template), prompt, way, usage)


class AnthropicMessages(ChatEndpoint, AnthropicProtocol):
    """A model behind Anthropic's messages, one call each.

    The options are those of `ChatEndpoint`, `AnthropicProtocol` and `Endpoint`.
    """

    def created(self, request: JsonObject) -> Awaitable[Any]:
        return self._client.messages.with_raw_response.create(**request)


def _received(message: Mapping[str, Any], prompt: Prompt, way: str, template: Template) -> Received:
    """What a message says; any exception means that it is malformed."""
    text = "".join(part["text"] for part in message["content"] if part["type"] == "text")
    if message.get("stop_reason") == "refusal":
        return Received(Unanswered(f"{REFUSED}{text or 'the model declined'}"), None)
    words, names = words_in(text, prompt, template), names_in(prompt)
    if way == WORDS or in_words(prompt):
        return Received(words, True)
    if way == "structured":
        used = [part["input"] for part in message["content"] if part["type"] == "tool_use"]
        said = stated(used[0], names) if used else None
    else:
        said = stated_in(text, names)
    if said is not None:
        return Received(said, True)
    return Received(words, lacks(text, cut=message.get("stop_reason") == "max_tokens"))


MAX_BYTES = 256_000_000
"""The longest batch that Anthropic takes."""
_BATCHES = "/v1/messages/batches"
_RAW = {"X-Stainless-Raw-Response": "raw"}
"""What makes the library give a reply as it came."""
_PAGE = 20
_HOUR = 3600  # seconds by which two clocks may differ
_ENDED = {"errored": "batch error", "canceled": "batch cancelled", "expired": "batch expired"}


class AnthropicBatch(ChatBatch, AnthropicProtocol):
    """A model behind Anthropic's messages, in batches, which cost less and take longer.

    The options are those of `AnthropicProtocol`, `ChatBatch` and `BatchEndpoint`.
    """

    async def upload(self, requests: Mapping[str, Any]) -> list[JsonObject]:
        listed = [{"custom_id": name, "params": params} for name, params in requests.items()]
        size = len(json.dumps({"requests": listed}))
        self._check_size(size, MAX_BYTES, requests)
        return listed

    async def create(self, key: str, uploaded: list[JsonObject]) -> str:
        made = self._service.create(requests=uploaded, **self._apart)
        return checked_id((await self._said(made)).get("id"))

    async def find(self, key: str, since: int) -> str | None:
        """Raises Trouble, to be tried again, while a batch that may be the one is under way."""
        try:
            page = await self._said(self._service.list(limit=_PAGE, **self._apart))
        except Trouble as trouble:
            raise Trouble(UNLISTED) if trouble.kind in NO_LIST else trouble from None
        late = [one for one in page["data"] if _seconds(one["created_at"]) > since - _HOUR]
        unread = page.get("has_more") and len(late) == len(page["data"])
        for one in late:
            if one["processing_status"] != "ended":
                raise Trouble("batches under way", "one of them may be that of this audit")
            name = checked_id(one["id"])
            try:
                results = await self._results(name)
            except Trouble as trouble:
                if trouble.kind not in GONE:
                    raise
                unread = True
                continue
            if f'"{key}_'.encode() in results:
                return name
        if unread:  # it may be among those
            raise Trouble(UNLISTED)
        return None

    async def look(self, batch: str) -> Job:
        said = await self._said(self._service.retrieve(batch, **self._apart))
        status = said["processing_status"]
        if said["id"] != batch or status not in ("in_progress", "canceling", "ended"):
            raise ValueError(f"expected batch {batch!r} and its status, got {str(status)[:40]!r}")
        told = fields_of(said.get("request_counts"))
        done = sum(whole(told.get(name)) or 0 for name in ("succeeded", *_ENDED))
        # the address of the results is made here: requests carry the key
        return Job(status == "ended", done, (batch,) if status == "ended" else ())

    async def results(self, job: Job) -> list[bytes]:
        return [await self._results(name) for name in job.files]

    def read(self, result: Mapping[str, Any], prompt: Prompt, form: str) -> Reply:
        told = result["result"]
        if told["type"] in _ENDED:
            raise _undone(told["type"], told.get("error"))
        return self._reply(told["message"], prompt, known(form, ELICITATIONS))

    @property
    def _service(self) -> Any:
        return self._client.messages.batches.with_raw_response

    async def _results(self, name: str) -> bytes:
        headers = {**_RAW, **self._apart.get("extra_headers", {})}
        options = {"headers": headers, "params": self._apart.get("extra_query", {})}
        path = f"{_BATCHES}/{name}/results"
        return await self._body(self._client.get(path, cast_to=object, options=options))


def _undone(kind: str, error: Any) -> Trouble:
    """A request that was not answered, and costs nothing."""
    told = fields_of(fields_of(error).get("error"))
    wrong = told.get("type") == "invalid_request_error"
    detail = f"{str(told.get('type'))[:60]}: {str(told.get('message'))[:200]}"
    if wrong:
        return Trouble("http 400", detail, then="leave", refused=True)
    return Trouble(_ENDED[kind], detail, refused=True)


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
