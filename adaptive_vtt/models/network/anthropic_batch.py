"""Anthropic's message batches: requests in one body, and results as lines of JSON.

Documented at https://docs.anthropic.com/en/api/creating-message-batches. Messages carry no
log-probabilities and no enforced format, so P(yes) is asked for in words: a number in JSON
("stated"), or a Yes or No, which is 1 or 0 ("words"). A reply that gives no such number is read
as words. Batches carry no mark of ours either: one whose id was never heard is told by the names
in its results, once it has ended.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from ...errors import InputError
from ...types import CallMode, Prompt, Unanswered, Value
from ...utils.extras import pip_install
from ..replies import REFUSED
from .attempts import Reply, Trouble, of_status
from .batches import MAX_FILE_BYTES, UNLISTED, BatchEndpoint, Job
from .chat_replies import in_words, names_in, stated, value_of
from .exchanges import checked_id
from .http import host_of
from .image_encoding import Encoding
from .key_signs import texts_of_options, texts_of_query, written_out
from .keys import Key, from_environment
from .prices import Usage, whole
from .prompt_templates import TEMPLATES, Template
from .wire import client_options, lost, parsed, words_of

ADDRESS = "https://api.anthropic.com"
MOST_BYTES = 256_000_000
"""The longest batch that Anthropic takes."""
_BATCHES = "/v1/messages/batches"
_VERSION = "2023-06-01"
_PAGE = 20
_HOUR = 3600  # seconds by which two clocks may differ
_NO_LIST = ("http 404", "http 405", "http 501")
_ENDED = {"errored": "batch error", "canceled": "batch cancelled", "expired": "batch expired"}
_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicBatch(BatchEndpoint):
    """``model`` at Anthropic, or at ``base_url``; other options are those of `BatchEndpoint`.

    ``key``: the environment variable that holds the key. ``answers``: one question per call, or
    "all" of an image in one numbered list. ``template``: the words of a prompt. ``yes_from``: see
    the module. ``max_tokens`` bounds the reply, ``max_input_tokens`` text and image: a bound for
    the money, since no protocol enforces it. ``options`` go into the request as they are.
    ``max_file_bytes``: longer results are not read, and count as billed. Raises InputError for a
    key that is not set. Needs httpx, the extra ``http``.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = ADDRESS,
        key: str = "ANTHROPIC_API_KEY",
        template: Template = TEMPLATES["zero-shot"],
        answers: CallMode = "one",
        yes_from: Literal["stated", "words"] = "stated",
        encoding: Encoding | None = None,
        max_tokens: int = 512,
        max_input_tokens: int = 4096,
        max_file_bytes: int = MAX_FILE_BYTES,
        options: Mapping[str, Any] | None = None,
        keys: Sequence[Key] = (),
        **batch: Any,
    ) -> None:
        secret = from_environment(key, "model.key")
        found = written_out([*texts_of_options(options or {}), *texts_of_query(base_url)])
        batch.setdefault("name", model)
        super().__init__(
            host=host_of(base_url),
            answers=answers,
            bound=Usage(max_input_tokens, max_tokens),
            keys=[secret, *keys, *found],
            **batch,
        )
        self.template, self.hard_answers = template, yes_from == "words"
        self._url, self._encoding = base_url.rstrip("/"), encoding or Encoding()
        self._stated = yes_from == "stated"
        self._options = {"model": model, "max_tokens": max_tokens, **(options or {})}
        self._client = _client(max_file_bytes, secret)

    @property
    def template_hash(self) -> str:  # type: ignore[override]  # follows from the template
        return self.template.hash

    @property
    def takes_words(self) -> bool:  # type: ignore[override]  # follows from the template
        return self.template.takes_words

    def protocol(self) -> dict[str, Any]:
        return self.template.protocol(self._options)

    @property
    def form(self) -> str:
        return "stated" if self._stated else "words"

    def request(self, prompt: Prompt, form: str) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if prompt.image is not None:
            data = self._encoding(prompt.image, f"sample {prompt.sample_id!r}")
            source = {"media_type": self._encoding.media_type, "type": "base64"}
            source["data"] = base64.b64encode(data).decode()
            content.append({"type": "image", "source": source})
        content.append({"type": "text", "text": self.template.render(prompt)})
        if form == "stated" and not in_words(prompt):
            content.append({"type": "text", "text": _wanted(prompt)})
        system = {"system": self.template.system} if self.template.system else {}
        return {**self._options, **system, "messages": [{"role": "user", "content": content}]}

    async def upload(self, requests: Mapping[str, Any]) -> bytes:
        listed = [{"custom_id": name, "params": params} for name, params in requests.items()]
        data = json.dumps({"requests": listed}).encode()
        if len(data) > MOST_BYTES:
            raise InputError(
                f"model {self.name!r}: expected batches of at most {MOST_BYTES:,} bytes, got "
                f"{len(data):,} for {len(requests)} calls; lower batch_size, or send "
                "image_format = 'jpeg'"
            )
        return data

    async def create(self, key: str, uploaded: bytes) -> str:
        return checked_id((await self._said(_BATCHES, uploaded)).get("id"))

    async def find(self, key: str, since: int) -> str | None:
        """Raises Trouble, to be tried again, while a batch that may be the one is under way."""
        try:
            page = await self._said(f"{_BATCHES}?limit={_PAGE}")
        except Trouble as trouble:
            raise Trouble(UNLISTED) if trouble.kind in _NO_LIST else trouble from None
        late = [one for one in page["data"] if _seconds(one["created_at"]) > since - _HOUR]
        for one in late:
            if one["processing_status"] != "ended":
                raise Trouble("batches under way", "one of them may be that of this audit")
            name = checked_id(one["id"])
            if f'"{key}_'.encode() in await self._body(f"{_BATCHES}/{name}/results"):
                return name
        if page.get("has_more") and len(late) == len(page["data"]):
            raise Trouble(UNLISTED)
        return None

    async def look(self, batch: str) -> Job:
        said = await self._said(f"{_BATCHES}/{batch}")
        status = said["processing_status"]
        if said["id"] != batch or status not in ("in_progress", "canceling", "ended"):
            raise ValueError(f"expected batch {batch!r} and its status, got {str(status)[:40]!r}")
        counts = said.get("request_counts")
        told = counts if isinstance(counts, dict) else {}
        done = sum(whole(told.get(name)) or 0 for name in ("succeeded", *_ENDED))
        # the address of the results is made here: requests carry the key
        return Job(status == "ended", done, (batch,) if status == "ended" else ())

    async def results(self, job: Job) -> list[bytes]:
        return [await self._body(f"{_BATCHES}/{name}/results") for name in job.files]

    def read(self, result: Mapping[str, Any], prompt: Prompt, form: str) -> Reply:
        told = result["result"]
        if told["type"] in _ENDED:
            raise _undone(told["type"], told.get("error"))
        message = told["message"]
        counts = message.get("usage")
        counts = counts if isinstance(counts, dict) else {}
        sent = [whole(counts.get(name)) for name in _TOKENS]
        total = None if sent[0] is None else sum(count or 0 for count in sent)
        usage = self.counted(total, counts.get("output_tokens"))
        try:
            said = self._values(message, prompt, form)
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"
            raise Trouble("malformed reply", detail, billed=True, usage=usage) from None
        return Reply(said, usage)

    async def disconnect(self) -> None:
        await self._client.aclose()

    def _values(
        self, message: Mapping[str, Any], prompt: Prompt, form: str
    ) -> tuple[Value, ...] | Unanswered:
        parts = [part["text"] for part in message["content"] if part["type"] == "text"]
        text = "".join(parts)
        if message.get("stop_reason") == "refusal":
            return Unanswered(f"{REFUSED}{text or 'the model declined'}")
        if form == "stated" and not in_words(prompt):
            found = re.findall(r"\{[^{}]*\}", text)
            values = stated(found[-1] if found else "", names_in(prompt))
            if not all(isinstance(value, Unanswered) for value in values):
                return values
        split = self.template.split(text, len(prompt.concepts))
        return tuple(value_of(part, prompt, place) for place, part in enumerate(split))

    async def _said(self, path: str, content: bytes | None = None) -> dict[str, Any]:
        said = parsed(await self._body(path, content))
        if not isinstance(said, dict):
            raise TypeError(f"expected a JSON object, got {type(said).__name__}")
        return said

    async def _body(self, path: str, content: bytes | None = None) -> bytes:
        import httpx

        try:
            method = "GET" if content is None else "POST"
            reply = await self._client.request(method, self._url + path, content=content)
        except httpx.TransportError as error:
            raise lost(error) from None
        if not reply.is_success:
            raise of_status(reply.status_code, reply.headers, words_of(reply.content))
        body: bytes = reply.content
        return body


def _client(most: int, key: Key) -> Any:
    try:
        import httpx
    except ImportError:
        raise InputError(f"Anthropic needs httpx: {pip_install('http')}") from None
    options = client_options(most)
    options["headers"] |= {
        "x-api-key": key.reveal(),
        "anthropic-version": _VERSION,
        "content-type": "application/json",
    }
    return httpx.AsyncClient(**options)


def _wanted(prompt: Prompt) -> str:
    example = json.dumps(dict.fromkeys(names_in(prompt), 0.5))
    return (
        "Instead of the words Yes and No, give the probability, from 0 to 1, that the answer is "
        f"Yes, as JSON alone, like this: {example}"
    )


def _undone(kind: str, error: Any) -> Trouble:
    """A request that was not answered, and costs nothing."""
    inner = error.get("error") if isinstance(error, dict) else None
    told = inner if isinstance(inner, dict) else {}
    wrong = told.get("type") == "invalid_request_error"
    detail = f"{str(told.get('type'))[:60]}: {str(told.get('message'))[:200]}"
    return Trouble(_ENDED[kind], detail, then="leave" if wrong else "again")


def _seconds(moment: str) -> float:
    """Seconds since 1970 of a moment in RFC 3339."""
    return datetime.fromisoformat(moment).timestamp()
